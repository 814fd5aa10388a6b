"""Reads a source at intervals, keeps what it read, and answers questions from it."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from topolane import untrusted
from topolane._engine import InputError
from topolane.cluster.view import View
from topolane.serve import outlook
from topolane.serve.comparison import PolicyComparison
from topolane.serve.feed import Feed, packed
from topolane.serve.history import SnapshotHistory
from topolane.serve.outlook import ForecastQuestion
from topolane.serve.source import SnapshotSource

T = TypeVar("T")
LOG = logging.getLogger(__name__)

AT_ONCE = 2
"""The number of questions that the engine works on at a time."""
QUEUED = 16
"""The number of questions that may wait for their turn; further ones are refused."""
OUTLOOK_SECONDS = 5.0
"""Seconds for which one outlook of the present serves all viewers."""
KEPT = 8
"""The number of past moments whose snapshots and outlooks are cached."""


class Busy(Exception):
    """Too many questions are waiting."""


class Live:
    """A source with its history and its viewers' feed. Belongs to one event loop."""

    def __init__(self, source: SnapshotSource, policies: Sequence[str] = ()) -> None:
        """policies: policies to compare with a live system."""
        self.source = source
        self.comparison = (
            PolicyComparison(source.machine, source.title, policies, source.queue) if policies else None
        )
        self.feed = Feed(source.machine)
        self.ended = asyncio.Event()
        """Set when viewers must be disconnected."""
        self.answered = time.monotonic()
        """When the source last answered, by the monotonic clock."""
        self.history = SnapshotHistory(source.machine.nodes, source.title)
        self._lock = threading.Lock()
        self._working = asyncio.Semaphore(AT_ONCE)
        self._asking = 0
        self._outlook: tuple[float, bytes] | None = None
        self._outlook_lock = asyncio.Lock()
        self._past: OrderedDict[tuple[str, float], Any] = OrderedDict()
        self._series: tuple[int, bytes] | None = None
        self._series_lock = asyncio.Lock()

    async def run(self, stopping: asyncio.Event) -> None:
        """Reads the source at intervals until `stopping` is set."""
        while not stopping.is_set():
            began = time.monotonic()
            await self.look()
            rest = self.source.interval - (time.monotonic() - began)
            try:
                await asyncio.wait_for(stopping.wait(), max(rest, 0.05))
            except TimeoutError:
                continue

    async def look(self) -> None:
        """Reads the source once. If that fails, the last snapshot stays, with the failure as its problem."""
        try:
            snapshot = await asyncio.to_thread(self.source.now)
        except InputError as error:
            if self.feed.state is None:
                raise
            snapshot = self._old(str(error))
        except untrusted.WRONG as error:
            # What one user wrote must not end the page for all.
            LOG.exception("the source cannot be read")
            if self.feed.state is None:
                raise InputError(f"the source cannot be read: {type(error).__name__}: {error}") from error
            snapshot = self._old("What the source says cannot be read; the log of topolane serve says why.")
        if not snapshot.is_old:
            self.answered = time.monotonic()
        if self.source.span() is None and await asyncio.to_thread(self._keep, snapshot):
            self._past.clear()
        await self.feed.publish(snapshot)

    def _old(self, problem: str) -> View:
        assert self.feed.state is not None
        return dataclasses.replace(self.feed.state.snapshot, problems=(problem,), is_old=True)

    def _keep(self, snapshot: View) -> bool:
        """Stores a snapshot. Returns whether the times of earlier snapshots have changed."""
        with self._lock:
            has_moved = self.history.add(snapshot)
        if self.comparison is not None and not snapshot.is_old:
            self.comparison.add(snapshot)
        return has_moved

    def span(self) -> tuple[float, float] | None:
        """The first and the last time that viewers can see."""
        return self.source.span() or self.history.span()

    async def series(self) -> bytes:
        """Lines over time as gzipped JSON, computed once for each snapshot."""
        assert self.feed.state is not None
        async with self._series_lock:
            version = self.feed.state.version
            if self._series is None or self._series[0] != version:
                self._series = version, await asyncio.to_thread(self._figures)
            return self._series[1]

    def _figures(self) -> bytes:
        found = self.source.series()
        if found is None and self.comparison is not None:
            found = self.comparison.series()
        if found is None:
            with self._lock:
                found = self.history.series()
        lines = [vars(line) for line in found.lines]
        return packed({"times": found.times, "lines": lines, "span": self.span()})

    async def past(self, at: float) -> View:
        """The snapshot at a past time. Raises KeyError if there is none."""
        found = self._past.get(("snapshot", at)) or await self._work(lambda: self._read(at))
        self._remember(("snapshot", at), found)
        if found is None:
            raise KeyError(at)
        kept: View = found
        return kept

    def _read(self, at: float) -> View | None:
        if self.source.span() is not None:
            return self.source.at(at)
        with self._lock:
            return self.history.at(at)

    def _remember(self, key: tuple[str, float], value: Any) -> None:
        self._past[key] = value
        self._past.move_to_end(key)
        while len(self._past) > 2 * KEPT:
            self._past.popitem(last=False)

    async def moment(self, at: float | None) -> View:
        """The snapshot at a time; the newest one if `at` is None."""
        if at is not None:
            return await self.past(at)
        assert self.feed.state is not None
        return self.feed.state.snapshot

    async def outlook(self, at: float | None) -> bytes:
        """The coming hours, reasons and free slots as gzipped JSON."""
        if at is not None:
            found = self._past.get(("outlook", at))
            if found is None:
                found = await self._looked_ahead(await self.past(at))
                self._remember(("outlook", at), found)
            return bytes(found)
        async with self._outlook_lock:
            if self._outlook is None or time.monotonic() - self._outlook[0] > OUTLOOK_SECONDS:
                snapshot = await self.moment(None)
                self._outlook = time.monotonic(), await self._looked_ahead(snapshot)
            return self._outlook[1]

    async def _looked_ahead(self, snapshot: View) -> bytes:
        source = self.source
        return await self._work(
            lambda: packed(outlook.outlook(source.machine, snapshot, source.policy, source.queue))
        )

    async def why(self, id: int, at: float | None) -> list[str]:
        """Why a job waits, in sentences; of one that runs on a machine that is no tree, whom it may meet on links.

        Raises KeyError for another job.
        """
        snapshot, source = await self.moment(at), self.source
        runs = next((one for one in snapshot.running if one.id == id and one.nodes), None)
        if runs is not None and source.machine.wiring != "tree":
            return await self._work(lambda: outlook.met(source.machine, snapshot, runs))
        job = next((one for one in snapshot.waiting if one.id == id), None)
        if job is None:
            raise KeyError(id)
        # The search for jobs that must end takes seconds, in which other viewers want answers too.
        if at is None and (said := await self._work(lambda: source.explain(snapshot, job))) is not None:
            return said
        if job.why:
            return [f"{job.why[:1].upper()}{job.why[1:]}."]
        return await self._work(
            lambda: outlook.why(source.machine, snapshot, source.policy, source.queue, job)
        )

    async def ask(self, question: ForecastQuestion, at: float | None) -> dict[str, Any]:
        """When and where a job would start. Raises InputError for an unknown reservation."""
        snapshot, source = await self.moment(at), self.source
        if question.reservation and question.reservation not in {one.name for one in snapshot.reserved}:
            raise InputError("there is no such reservation")
        return await self._work(lambda: outlook.ask(source.machine, snapshot, source.queue, question))

    async def _work(self, work: Callable[[], T]) -> T:
        if self._asking >= QUEUED:
            raise Busy
        self._asking += 1
        try:
            async with self._working:
                return await asyncio.to_thread(work)
        finally:
            self._asking -= 1
