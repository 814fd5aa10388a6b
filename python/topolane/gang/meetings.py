"""How often the ranks of MPI programs meet, counted by the library of `topolane mpi`, for the policy to know."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from topolane._engine import InputError
from topolane.mpi import build, launch
from topolane.mpi.address import Address
from topolane.mpi.counts import WatchedProgram
from topolane.mpi.receiver import Receiver

SYNCHRONISING = (40, 46, 47, 48, 49, 50, 52, 53, 54)
"""Calls that no rank leaves before all have come, as in native/mpi/skew.c."""
_LOOK = 1.0
_PATIENCE = 10.0


@dataclass
class _ProgramTotals:
    """Of a program so far, for each of its ranks: meetings, seconds waited in them, seconds on a core; and when."""

    meetings: float = 0.0
    waited: float = 0.0
    cpu: float = 0.0
    at: float = 0.0


@dataclass(frozen=True)
class ReportingCommand:
    """A command whose ranks report, what it needs in its environment, and the program that they say they are."""

    command: list[str]
    environment: dict[str, str]
    program: str


class Meetings:
    """Listens to the ranks of watched jobs.

    cpu: seconds on cores of a job, all in all, None where it is no more; tell: told of a job, about once a second,
    the seconds from one meeting to the next while it was let run, and those that a rank waits in one.
    """

    def __init__(self, cpu: Callable[[int], float | None], tell: Callable[[int, float, float], None]) -> None:
        self._cpu, self._tell = cpu, tell
        self._jobs: dict[str, int] = {}
        self._seen: dict[str, _ProgramTotals] = {}
        self._closing, self._ready = threading.Event(), threading.Event()
        self._directory = tempfile.TemporaryDirectory(prefix="topolane-")
        self._address = Address(path=os.path.join(self._directory.name, "receiver"))
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="gang-meetings", daemon=True
        )
        self._thread.start()
        if not self._ready.wait(_PATIENCE):
            raise InputError(f"{self._address}: nothing can listen there")

    def with_reports(self, command: Sequence[str]) -> ReportingCommand:
        """The same command with ranks that report. Raises InputError where the library cannot be had for its MPI."""
        program = f"gang-{secrets.token_hex(8)}"
        wanted = {"TOPOLANE_MPI_PROGRAM": program, "TOPOLANE_MPI_MANAGER": str(self._address)}
        words, around = launch.with_library(command, build.library(build.mpicc_for(command)), wanted)
        needed = {key: value for key, value in around.items() if os.environ.get(key) != value}
        return ReportingCommand(words, needed, program)

    def follow(self, program: str, job: int) -> None:
        """From now on a program is that job."""
        self._jobs[program] = job

    def close(self) -> None:
        """Ends."""
        self._closing.set()
        self._thread.join()
        self._directory.cleanup()

    async def _serve(self) -> None:
        receiver = Receiver()
        await receiver.listen(self._address)
        self._ready.set()
        while not self._closing.is_set():
            for program, job in list(self._jobs.items()):
                watched = receiver.programs.get(program)
                if watched is not None and watched.ranks > 1:
                    self._look(watched, job)
            await asyncio.sleep(_LOOK)
        await receiver.close()

    def _look(self, watched: WatchedProgram, job: int) -> None:
        cpu = self._cpu(job)
        if cpu is None:
            del self._jobs[watched.id]
            return
        every = list(watched.of_rank.values())
        calls = sum(one.calls.get(call, (0, 0, 0.0))[0] for one in every for call in SYNCHRONISING)
        waited = sum(one.skew for one in every)
        ranks = watched.ranks
        now = _ProgramTotals(calls / ranks, waited / ranks, cpu / ranks, time.monotonic())
        then = self._seen.setdefault(watched.id, now)
        met, ran = now.meetings - then.meetings, now.cpu - then.cpu
        if met > 0 and ran > 0:
            # A rank that is stopped within a call seems to wait there.
            share = min(1.0, ran / (now.at - then.at))
            interval = ran / met
            self._tell(job, interval, min(interval, share * (now.waited - then.waited) / met))
            self._seen[watched.id] = now
