"""An agent that runs jobs as gangs on cores of this machine."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from topolane._engine import GangAgent, GangHeld, GangMeans, GangRound, GangSwitch, InputError
from topolane._engine import GangLimits as Limits

from topolane_gang import agent_files, control_groups, process_start, watchdog
from topolane_gang.control_groups import OwnGroup
from topolane_gang.job import POLL, AgentJob
from topolane_gang.xen import Domain, Taken, XenPool, taken

if TYPE_CHECKING:
    from topolane_gang.meetings import Meetings

__all__ = ["Agent", "AgentJob", "Limits"]

GRACE = 5.0
"""Seconds from SIGTERM to SIGKILL."""
_KILLING = 5.0
"""Seconds that a killed process may take to end: one that waits in the kernel takes longer."""


class Agent:
    """Runs jobs as gangs until it is closed. Closing ends the jobs that it started and releases those that it
    adopted.

    cores: CPU numbers [default: all that this process may use]. switch_by: freeze, freezer or signals
    [default: the best that works]. Raises InputError if another agent uses one of the cores, a core does not
    exist, or the policy is unknown. `means` says what is missing on this machine and what is used instead.
    pool: the pool for domains of Xen; then these are the jobs, and the cores are the pool's.
    """

    def __init__(
        self,
        policy: str = "adaptive",
        cores: Sequence[int] | None = None,
        limits: Limits | None = None,
        *,
        switch_by: str | None = None,
        pool: XenPool | None = None,
    ) -> None:
        self.policy, self._pool = policy, pool
        self.cores = pool.cores if pool else process_start.checked_cores(cores)
        limits = limits or Limits()
        xen_switches = pool is not None and pool.switched_by == "pool"
        self._mark = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._jobs: dict[int, AgentJob] = {}
        self._meetings: Meetings | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        with contextlib.ExitStack() as undo:
            self._locks = agent_files.CoreLocks(self.cores, "xen-core" if pool else "core")
            undo.callback(self._locks.close)
            self.leftovers = agent_files.release_abandoned()
            """How many dead agents left stopped jobs, which this one resumed."""
            ours, theirs = os.pipe()
            self._pipe = (ours, theirs)
            for end in self._pipe:
                undo.callback(os.close, end)
            self._engine = GangAgent(
                "free" if xen_switches else policy,
                list(self.cores),
                limits,
                switch_by=switch_by,
                xen=pool.library if pool else None,
                alive=Path(f"/proc/self/fd/{theirs}"),
            )
            undo.callback(self._engine.close)
            self.means: GangMeans = self._engine.means()
            self.switched_by = pool.switched_by if pool else self.means.stopping
            """freeze, freezer, signals, pause; or pool, if Xen switches."""
            self._stops_threads = self.means.stops_threads and switch_by != "freeze"
            self._record = agent_files.AgentRecord(
                self._mark,
                {
                    "groups": [str(group) for group in self.means.groups],
                    "stopping": self.means.stopping,
                    "ranking": self.means.ranking,
                    "cores": self.cores,
                    **(pool.record() if pool else {}),
                },
            )
            undo.callback(self._record.remove)
            # It must be there before the pool: it puts the cores back if this process dies.
            self._watchdog = self._watch()
            undo.callback(self._watchdog.wait)
            undo.callback(self._watchdog.kill)
            if pool:
                undo.callback(self._put_back)
                pool.make(limits.slice if xen_switches else None)
            undo.pop_all()
        self._watching = threading.Thread(target=self._keep_watched, name="gang-watchdog", daemon=True)
        self._watching.start()

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        threads: int = 1,
        weight: float = 1.0,
        directory: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
        whole_environment: bool = False,
        output: str | Path | IO[Any] | int | None = None,
        errors: IO[Any] | int | None = None,
        watch: bool = False,
    ) -> AgentJob:
        """Starts a command as a job. It runs from its first slice on.

        environment: added to that of this process, or the whole environment. output: a file name or an open
        file [default: the output of this process]. watch: count how often the ranks of an MPI program meet;
        the command must be its mpiexec or srun. Raises InputError if it cannot be started.
        """
        if self._pool:
            raise InputError(f"job {name}: this agent runs domains of Xen, which xl starts")
        around = ({} if whole_environment else dict(os.environ)) | dict(environment or {})
        watched = self._listening().with_reports(command) if watch else None
        if watched is not None:
            command, around = watched.command, around | watched.environment
        program = process_start.program(name, command, directory, around)
        with contextlib.ExitStack() as files:
            if isinstance(output, str | Path):
                output = files.enter_context(Path(output).open("wb"))
                errors = subprocess.STDOUT
            process, gate = process_start.start_gated(
                [program, *command[1:]], directory, around | {watchdog.MARK: self._mark}, output, errors
            )
        try:
            job = self._add(
                name, process.pid, process, processes=[process.pid], threads=threads, weight=weight
            )
        except BaseException:  # an interrupt must not leave it waiting at the gate
            process.kill()
            process.wait()
            raise
        finally:
            # It goes on from here, once it is let run.
            os.close(gate)
        if watched is not None:
            self._listening().follow(watched.program, job.id)
        return job

    def adopt(
        self,
        name: str,
        pids: Sequence[int] | None = None,
        *,
        threads: Sequence[int] | None = None,
        count: int | None = None,
        weight: float = 1.0,
    ) -> AgentJob:
        """Adopts running processes with all their descendants, or single threads by their numbers.

        count: how many threads compute [default: the number of those named]. Raises InputError if one does not
        exist, is this process, or may not be stopped.
        """
        if threads and not self._stops_threads:
            groups = control_groups.of_threads(threads, self._mark)
            try:
                return self.adopt_groups(name, groups, count=count or len(threads), weight=weight)
            except BaseException:  # an interrupt must not leave groups behind
                control_groups.remove(groups)
                raise
        for own in pids or ():
            if own in (os.getpid(), self._watchdog.pid) or own in process_start.ancestors(os.getpid()):
                raise InputError(f"job {name}: process {own} is the agent itself, or started it")
        named = [int(one) for one in (pids or threads or ())]
        return self._add(
            name,
            named[0] if pids else None,
            processes=None if threads else named,
            tids=named if threads else None,
            threads=count if count is not None else max(1, len(named)),
            weight=weight,
        )

    def adopt_groups(
        self, name: str, groups: Sequence[OwnGroup], *, count: int | None = None, weight: float = 1.0
    ) -> AgentJob:
        """Adopts all that is in these control groups, which freezes them in place: nothing is moved out.

        count: how many threads compute [default: the number of cores of the agent]. Raises InputError if one
        cannot be frozen, is frozen already, or has this process.
        """
        return self._add(
            name,
            None,
            groups=list(groups),
            threads=count if count is not None else len(self.cores),
            weight=weight,
        )

    def adopt_domain(self, name: str, domain: Domain, *, weight: float = 1.0) -> AgentJob:
        """Adopts a domain of Xen: moves it to the agent's pool. Raises InputError if it does not fit, is paused, or the
        agent runs processes.
        """
        if self._pool is None:
            raise InputError(
                f"job {name}: this agent runs processes: start one with `topolane gang run --xen`"
            )
        self._pool.check(domain)
        return self._add(name, None, domain=domain, threads=domain.cores, weight=weight)

    def _add(self, name: str, pid: int | None, process: Any = None, **job: Any) -> AgentJob:
        with self._lock:
            if self._closing.is_set():
                raise InputError("the agent has ended")
            groups: list[OwnGroup] = job.pop("groups", [])
            taken = self._taken() if groups else set()
            for group in groups:
                if group.directory in taken:
                    raise InputError(f"job {name}: {group.directory} belongs to another job of the agent")
            domain = self._to_take(name, job.pop("domain", None))
            added = [domain] if domain else []
            # First on record, then stopped.
            processes = [*self._held(), *(job.get("processes") or [])]
            self._record.write(processes, [*self._groups(), *groups], [*self._domains(), *added])
            own = [(group.directory, group.made) for group in groups] or None
            try:
                if self._pool and domain:
                    self._pool.take(domain, job["weight"])
                identity = domain.domain.identity if domain else None
                id = self._engine.add(name, groups=own, domain=identity, **job)
            except BaseException:  # an interrupt must not leave a domain in the pool
                if domain:
                    watchdog.move_back(domain.record())
                # What was not taken may be frozen by others, and is not ours to thaw.
                self._record.write(self._held(), self._groups(), self._domains())
                raise
            made = AgentJob(self, name, id, pid, process, groups, domain)
            self._jobs[made.id] = made
        return made

    def _to_take(self, name: str, domain: Domain | None) -> Taken | None:
        """The domain with what restores it. One that has restarted has another number: it is another job then."""
        if domain is None:
            return None
        if any(held.domain.identity == domain.identity for held in self._domains()):
            raise InputError(f"job {name}: domain {domain.name} belongs to another job of the agent")
        return taken(domain)

    def _listening(self) -> Meetings:
        from topolane_gang.meetings import Meetings

        with self._lock:
            if self._meetings is None:
                self._meetings = Meetings(self._cpu, self._engine.met)
            return self._meetings

    def _cpu(self, id: int) -> float | None:
        return next((one.cpu for one in self.jobs() if one.id == id), None)

    def _held(self) -> list[int]:
        return [job.pid for job in self._jobs.values() if job.pid is not None]

    def _groups(self) -> list[OwnGroup]:
        return [group for job in self._jobs.values() for group in job.groups]

    def _domains(self) -> list[Taken]:
        return [job.domain for job in self._jobs.values() if job.domain is not None]

    def _put_back(self) -> None:
        """Gives the cores and the domains of Xen back to their pools."""
        watchdog.put_back(watchdog.read(self._record.path))

    def _taken(self) -> set[Path]:
        """The groups of jobs that are not over: a unit that has ended may start again in the same group."""
        over = {job.id for job in self.jobs() if job.state in ("ended", "lost")}
        return {group.directory for job in self._jobs.values() if job.id not in over for group in job.groups}

    def jobs(self) -> list[GangHeld]:
        """All jobs that were not released, with the time that each has had."""
        return self._engine.jobs()

    def job(self, id: int) -> AgentJob:
        """A job by its number. Raises KeyError."""
        return self._jobs[id]

    def round(self) -> GangRound:
        """The present slices, and the cores of the jobs in them."""
        return self._engine.round()

    def switches(self, most: int = 4096) -> list[GangSwitch]:
        """The last switches, the newest at the end."""
        return self._engine.switches(most)

    def end(self, job: AgentJob, grace: float = GRACE) -> int | None:
        """Ends a job: SIGTERM, and SIGKILL after `grace` seconds. A job that was adopted as threads, control groups or
        a domain is released instead.

        Returns what `AgentJob.wait` returns.
        """
        self._engine.release(job.id)
        for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, _KILLING)):
            until = time.monotonic() + patience
            self._signal(job, number)
            while not self._over(job) and time.monotonic() < until:
                time.sleep(POLL)
                if number == signal.SIGKILL:
                    # Whom it started meanwhile.
                    self._signal(job, number)
        code = job.returned()
        self.let_go(job)
        return code

    def _signal(self, job: AgentJob, number: int) -> None:
        self._engine.signal(job.id, number)
        if job.started and job.state() == "lost" and job.returned() is None and job.pid is not None:
            # Of its processes, only those of its own process group are still known.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, number)

    def _over(self, job: AgentJob) -> bool:
        """Whether no process is left to be ended."""
        state = job.state()
        if state == "lost" and job.started:
            return job.returned() is not None
        return job.pid is None or state in ("ended", "lost", "gone")

    def let_go(self, job: AgentJob) -> None:
        """Releases a job: it runs on under the operating system alone."""
        self._engine.forget(job.id)
        with self._lock:
            self._jobs.pop(job.id, None)
            if job.domain:
                watchdog.move_back(job.domain.record())
            self._record.write(self._held(), self._groups(), self._domains())

    def close(self) -> None:
        """Ends the agent and the jobs that it started, and releases adopted jobs."""
        if self._closing.is_set():
            return
        try:
            for job in list(self._jobs.values()):
                if job.started:
                    self.end(job)
        finally:
            with self._lock:
                # A job that is being added is added first, so that it is let go as well.
                self._closing.set()
            if self._meetings is not None:
                self._meetings.close()
            self._engine.close()
            self._put_back()
            self._record.remove()
            for end in self._pipe:
                os.close(end)
            self._watchdog.wait()
            self._watching.join()
            self._locks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def watchdog_pid(self) -> int:
        """The process that resumes all jobs if this one dies."""
        return self._watchdog.pid

    def _watch(self) -> subprocess.Popen[bytes]:
        """Starts a watchdog in a session of its own."""
        command = [sys.executable, "-I", "-S", watchdog.__file__, str(self._record.path)]
        discarded = subprocess.DEVNULL
        return subprocess.Popen(
            command, stdin=self._pipe[0], stdout=discarded, stderr=discarded, start_new_session=True, cwd="/"
        )

    def _keep_watched(self) -> None:
        """Starts a new watchdog whenever one dies."""
        while True:
            self._watchdog.wait()
            if self._closing.is_set():
                return
            self._watchdog = self._watch()
