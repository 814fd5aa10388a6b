"""Counts how often the ranks of MPI programs meet, with the library of `topolane mpi`, for the policy."""

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
"""Calls that no rank leaves before all ranks have entered them, as in native/mpi/skew.c."""
_LOOK = 1.0
_PATIENCE = 10.0


@dataclass
class _ProgramTotals:
    """Totals of a program per rank: meetings, seconds waited in them, seconds on a core; and the time of the
    totals.
    """

    meetings: float = 0.0
    waited: float = 0.0
    cpu: float = 0.0
    at: float = 0.0


@dataclass(frozen=True)
class ReportingCommand:
    """A command whose ranks report, its environment, and the program id that the ranks send."""

    command: list[str]
    environment: dict[str, str]
    program: str


class Meetings:
    """Receives the reports of the ranks of watched jobs.

    cpu: returns the total core seconds of a job, or None if it has ended. tell: called about once a second
    for each job, with the running seconds between two meetings and the seconds that a rank waits in one.
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
        """The same command with reporting ranks. Raises InputError if the library cannot be built for its
        MPI.
        """
        program = f"gang-{secrets.token_hex(8)}"
        wanted = {"TOPOLANE_MPI_PROGRAM": program, "TOPOLANE_MPI_MANAGER": str(self._address)}
        words, around = launch.with_library(command, build.library(build.mpicc_for(command)), wanted)
        needed = {key: value for key, value in around.items() if os.environ.get(key) != value}
        return ReportingCommand(words, needed, program)

    def follow(self, program: str, job: int) -> None:
        """Assigns a program to a job."""
        self._jobs[program] = job

    def close(self) -> None:
        """Stops receiving."""
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
