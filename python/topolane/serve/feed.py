"""The difference between consecutive snapshots, computed once and sent to all viewers."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Sequence
from typing import Any

from topolane._engine import LinkUse, Machine
from topolane.cluster.view import View
from topolane.serve.source import ranges, reserved_row, running_row, waiting_row


class PageState:
    """A snapshot in the form that the page reads."""

    def __init__(
        self,
        snapshot: View,
        version: int,
        machine: Machine | None = None,
        before: PageState | None = None,
    ) -> None:
        """machine: says which jobs may meet; None if nothing is known of it."""
        self.snapshot, self.version = snapshot, version
        self.running = {job.id: running_row(job) for job in snapshot.running}
        self.waiting = {job.id: waiting_row(job) for job in snapshot.waiting}
        self.out = ranges(snapshot.out)
        self.reserved = [reserved_row(one) for one in snapshot.reserved]
        self._users = [(job.id, job.nodes, ()) for job in snapshot.claiming]
        is_same = before is not None and before._users == self._users
        self.meeting: frozenset[int] = (
            before.meeting if before is not None and is_same else _meeting(machine, self._users)
        )
        """The jobs that may meet another one on a link."""
        self.change = b""
        """The change from the previous version, as a server-sent event."""

    def whole(self) -> dict[str, Any]:
        """The whole state."""
        return {
            "version": self.version,
            "time": self.snapshot.time,
            "running": list(self.running.values()),
            "waiting": list(self.waiting.values()),
            "meeting": sorted(self.meeting),
            "out": self.out,
            "reserved": self.reserved,
            "problems": list(self.snapshot.problems),
        }

    def since(self, before: PageState) -> dict[str, Any]:
        """The change that turns an earlier state into this one.

        Changed rows are among the new ones. The new queue is the old one without the rows that left and with
        new rows at its end; if its order differs, `order` has the ids in their new order.
        """
        came = [row for id, row in self.waiting.items() if before.waiting.get(id) != row]
        went = [id for id in before.waiting if id not in self.waiting]
        there = [id for id in before.waiting if id in self.waiting]
        there += [row[0] for row in came if row[0] not in before.waiting]
        found = {
            "version": self.version,
            "time": self.snapshot.time,
            "started": [row for id, row in self.running.items() if before.running.get(id) != row],
            "ended": [id for id in before.running if id not in self.running],
            "queued": came,
            "left": went,
        }
        if came_to_meet := self.meeting - before.meeting:
            found["meet"] = sorted(came_to_meet)
        if apart := [id for id in before.meeting - self.meeting if id in self.running]:
            found["apart"] = sorted(apart)
        if there != list(self.waiting):
            found["order"] = list(self.waiting)
        if self.out != before.out:
            found["out"] = self.out
        if self.reserved != before.reserved:
            found["reserved"] = self.reserved
        if self.snapshot.problems != before.snapshot.problems:
            found["problems"] = list(self.snapshot.problems)
        return found


class Feed:
    """The newest state. Belongs to one event loop."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.state: PageState | None = None
        self._packed: tuple[int, bytes] | None = None
        self._changed = asyncio.Condition()

    async def publish(self, snapshot: View) -> None:
        """Makes a snapshot the newest state."""
        state = await asyncio.to_thread(_next, self.state, snapshot, self._machine)
        async with self._changed:
            self.state = state
            self._changed.notify_all()

    async def after(self, version: int) -> PageState:
        """Waits until the newest state has another version, and returns it."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.state is not None and self.state.version != version)
            assert self.state is not None
            return self.state

    def packed(self) -> bytes:
        """The newest state, as gzipped JSON."""
        assert self.state is not None
        if self._packed is None or self._packed[0] != self.state.version:
            self._packed = self.state.version, packed(self.state.whole())
        return self._packed[1]


def _next(before: PageState | None, snapshot: View, machine: Machine) -> PageState:
    state = PageState(snapshot, 1 if before is None else before.version + 1, machine, before)
    if before is not None:
        state.change = event("change", state.since(before))
    return state


def _meeting(
    machine: Machine | None, users: Sequence[tuple[int, Sequence[int], tuple[()]]]
) -> frozenset[int]:
    """The jobs that may use a link together with another one. On a tree none are sought: bars show who owns its links."""
    if machine is None or machine.wiring == "tree":
        return frozenset()
    use = LinkUse(machine, users)
    return frozenset(job for job, *_ in users if use.meetings(job))


def packed(value: Any) -> bytes:
    """A value as gzipped JSON."""
    return gzip.compress(written(value), 5)


def written(value: Any) -> bytes:
    """A value as JSON. Raises ValueError for a number that JSON does not have."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def event(name: str, value: Any) -> bytes:
    """A server-sent event."""
    return b"event: " + name.encode() + b"\ndata: " + written(value) + b"\n\n"
