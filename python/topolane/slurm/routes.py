"""Installs forwarding tables for jobs that own links, before such a job starts and again after it has ended.

slurmctld calls this as PrologSlurmctld and EpilogSlurmctld, for many jobs at once. One process works at a
time. It installs tables for all jobs whose links are known by then, so most of the waiting processes have
nothing left to do.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from topolane import files, parsing, texts
from topolane._engine import DedicatedRoutes, InputError
from topolane.cluster.allocation import Allocation
from topolane.locks import Locks, TakenError
from topolane.slurm import links_out, plugin_state, route_tables
from topolane.slurm.inspection import on_machine
from topolane.slurm.plugin_machine import read_machine, sum_of_files
from topolane.slurm.route_notes import Notes

WAIT = 60.0
"""The default limit of the seconds that slurmctld waits."""
LEAST = 5.0
"""Seconds that the installing command always gets."""
POLL = 0.05
QUIET = 3.0
"""After this many seconds without a write by the plugin, Slurm is asked instead: the plugin writes only while
Slurm calls it.
"""
UNSEEN = 12.0
"""After this many seconds, the plugin's file counts as outdated if Slurm does not answer either."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The search path for commands, because Slurm sets no PATH."""


@dataclasses.dataclass(frozen=True)
class RoutesSettings:
    """The input of the tables and the place where they go."""

    machines: tuple[Path, ...]
    """The machine file of topolane.conf, or both. The first must be output of ibnetdiscover."""
    out: Path
    """The file of tables. `OUT.state` and `OUT.jobs` next to it belong to this module."""
    install: tuple[str, ...]
    """The command that makes the subnet manager load the file."""
    state: Path
    """Slurm's StateSaveLocation, where the plugin writes."""
    wait: float = WAIT
    service: str | None = None
    """The hosts of storage and services, as a host list."""
    service_uplinks: int = 0


@dataclasses.dataclass(frozen=True)
class ScriptJob:
    """A job, as slurmctld describes it to its scripts."""

    number: int
    array: int | None = None
    """The number of its array, if it is a task. The plugin's file lists a task that has just started under
    the array.
    """
    hosts: str = ""
    """The job's nodes as a host list."""


@dataclasses.dataclass(frozen=True)
class Result:
    """The tables that are now installed."""

    jobs: int
    links: int
    is_new: bool
    """Whether they were installed just now; False if they were there already."""
    skipped: dict[int, str]
    """Jobs that own links but use the subnet's default routes, with the reasons."""
    notes: tuple[str, ...] = ()
    """Sentences on inconsistencies."""


def before_start(settings: RoutesSettings, job: ScriptJob) -> Result | None:
    """Installs the tables that a job needs. Returns None if the job owns no links.

    Raises InputError if the tables cannot be made or installed.
    """
    deadline = time.monotonic() + settings.wait
    notes = Notes(settings.out)
    notes.forget(job.number)  # the job may have been requeued
    if not _owns_links(settings, job, notes, starts=True):
        return None
    return _update(settings, deadline, job.number)


def after_end(settings: RoutesSettings, job: ScriptJob, started: float) -> Result | None:
    """Removes a job's routes as soon as its nodes are free.

    Returns None if the job owned no links, or if the plugin reports for most of the time limit that its nodes
    are not free; then a later call removes the routes. slurmctld calls this while the nodes are still ending
    the job's processes, whose traffic must stay on the job's links. started: when the job started, in seconds
    since 1970. Raises InputError like `before_start`.
    """
    began = time.monotonic()
    notes = Notes(settings.out)
    if not _owns_links(settings, job, notes, starts=False):
        return None
    notes.is_ending(job.number)
    if not _nodes_are_free(settings, job.number, started, job.hosts, began + 0.8 * settings.wait):
        return None
    notes.has_ended(job.number)
    return _update(settings, began + settings.wait)


def install_all(settings: RoutesSettings) -> Result:
    """Installs the tables of all jobs that own links, even if they are installed already. Raises InputError."""
    return _update(settings, time.monotonic() + settings.wait, always=True)


def _links(settings: RoutesSettings) -> plugin_state.OwnedLinks:
    """The links that the plugin has given to jobs."""
    path = settings.state / plugin_state.LINKS
    try:
        text = texts.decoded(texts.read_bytes(path, plugin_state.MOST_LINKS), str(path))
    except texts.NoFileError as error:
        if (settings.state / plugin_state.COUNTERS).exists():
            return plugin_state.OwnedLinks(0, {})
        raise InputError(
            f"--state {settings.state}: the plugin has written nothing there: name Slurm's StateSaveLocation"
        ) from error
    return plugin_state.parse_links(text, str(path))


def _owns_links(settings: RoutesSettings, job: ScriptJob, notes: Notes, *, starts: bool) -> bool:
    """Whether the plugin has given links to the job. An entry under the job's array is noted as the job's."""
    links = _links(settings)
    if job.array is None or (job.number != job.array and job.number in links.jobs):
        return job.number in links.jobs
    own = links.jobs.get(job.array)
    if own is None:
        return False
    if not starts and (task := notes.task_of(job.array, own)) is not None:
        return task == job.number
    # If stock Slurm placed this task, the array's entry may be another task's.
    if job.hosts and own.nodes != _nodes(settings, links, job.hosts):
        return False
    notes.is_of_task(job.number, job.array, own)
    return True


def _nodes(settings: RoutesSettings, links: plugin_state.OwnedLinks, hosts: str) -> set[int]:
    """The nodes in a host list, numbered as in the plugin's file. Raises InputError if that file is of
    another machine.
    """
    _check_sum(settings, links, _Memory(settings.out).sum_of(settings.machines))
    return set(on_machine(hosts, read_machine(settings.machines).machine))


def _check_sum(settings: RoutesSettings, links: plugin_state.OwnedLinks, machine_sum: int) -> None:
    if links.jobs and links.machine_sum != machine_sum:
        raise InputError(
            f"--machine {settings.machines[0]}: {settings.state / plugin_state.LINKS} is of another machine file: name the "
            "one of topolane.conf, or both in its order, and restart slurmctld if it has changed"
        )


def _nodes_are_free(settings: RoutesSettings, job: int, started: float, hosts: str, deadline: float) -> bool:
    """Waits until the plugin no longer lists a job among those that hold nodes, or Slurm says that its nodes
    are free. Returns whether that happened. If neither reports anything before the deadline, the nodes count
    as free.
    """
    pause, began = 2 * POLL, time.monotonic()
    while True:
        try:
            seen = plugin_state.read_jobs(settings.state)
        except texts.NoFileError:
            return True
        age = time.time() - seen.time
        # The file may be older than the job.
        is_known = seen.time > started + 1 or time.monotonic() - began > UNSEEN
        # A record that cannot be read may be the job's.
        is_gone = is_known and job not in seen.running and not seen.problems
        if is_gone or (age > QUIET and _none_completes(hosts)):
            return True
        if time.monotonic() + pause > deadline:
            return age > UNSEEN
        time.sleep(pause)
        pause = min(1.0, 1.5 * pause)


def _none_completes(hosts: str) -> bool:
    """Whether Slurm reports that none of these nodes is completing a job. False if it does not answer."""
    try:
        done = subprocess.run(
            ["sinfo", "--noheader", "--states=completing", f"--nodes={hosts}", "--format=%N"],
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LEAST,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0 and not done.stdout.strip()


def _environment() -> dict[str, str]:
    return os.environ | {"PATH": os.environ.get("PATH", PATH)}


class _Memory:
    """Values kept between processes, in `OUT.state`. A file that cannot be used is treated as missing; then
    the tables are made again.
    """

    def __init__(self, out: Path) -> None:
        self._path = f"{out}.state"
        self.machine: list[Any] | None = None
        """The machine files as last seen, and their checksum."""
        self.installed: str | None = None
        """The fingerprint of the installed tables; None if it is not known."""
        self.skipped: dict[int, str] = {}
        with contextlib.suppress(InputError, ValueError, TypeError, KeyError, AttributeError):
            given = parsing.read_json(self._path)
            self.skipped = {int(job): str(why) for job, why in given["left_out"].items()}
            self.machine, self.installed = given["machine"], given["installed"]

    def write(self) -> None:
        """Writes the file. Raises InputError."""
        said = {"machine": self.machine, "installed": self.installed, "left_out": self.skipped}
        files.write(self._path, json.dumps(said) + "\n", mode=0o644)

    def sum_of(self, machines: Sequence[Path]) -> int:
        """The checksum of the machine files. It is computed only if one of them has changed."""
        stamp: list[str | int] = []
        for path in machines:
            found = path.stat()
            stamp += [str(path), found.st_mtime_ns, found.st_size, found.st_ino]
        if self.machine is None or self.machine[:-1] != stamp:
            self.machine = [*stamp, sum_of_files(machines)]
        return int(self.machine[-1])


def _update(
    settings: RoutesSettings, deadline: float, first: int | None = None, *, always: bool = False
) -> Result:
    """Installs the tables for the present links, unless they are installed.

    first: a starting job, whose entry in the plugin's file is the newest.
    """
    try:
        with _alone(settings.out, deadline):
            return _update_alone(settings, deadline, first, always=always)
    except OSError as error:
        raise InputError(f"{error.filename or settings.out}: {error.strerror}") from error


def _update_alone(settings: RoutesSettings, deadline: float, first: int | None, *, always: bool) -> Result:
    memory, notes = _Memory(settings.out), Notes(settings.out)
    noted = (
        notes.jobs()
    )  # read before the links: a job that is noted later may not be in this version of the plugin's file
    links = _links(settings)
    machine_sum = memory.sum_of(settings.machines)
    _check_sum(settings, links, machine_sum)
    owned = notes.by_job(links.jobs)
    for job in noted - owned.keys():
        notes.forget(job)
    ending, ended = notes.ending(), notes.ended()
    # If two jobs list a node, the job that started last has it.
    order = sorted(owned.keys() - ended, key=lambda job: (job == first, job not in ending, job), reverse=True)
    jobs = {job: owned[job] for job in order}
    wanted = _fingerprint(settings, machine_sum, jobs)
    is_known = memory.installed == wanted and first not in memory.skipped and settings.out.exists()
    is_new = always or not is_known
    said: tuple[str, ...] = ()
    if is_new:
        memory.installed = None
        memory.write()
        memory.skipped, said = route_tables.write(
            settings.out, settings.machines, jobs, settings.service, settings.service_uplinks
        )
        _install(settings.install, max(LEAST, deadline - time.monotonic()))
        memory.installed = wanted
        memory.write()
    have = [own for job, own in jobs.items() if job not in memory.skipped]
    said += _reserved_otherwise(settings, machine_sum) if always else ()
    return Result(len(have), sum(len(own.links) for own in have), is_new, memory.skipped, said)


def _reserved_otherwise(settings: RoutesSettings, machine_sum: int) -> tuple[str, ...]:
    """Sentences for the case that the plugin reserves other links for services than the tables do, or that
    this is not known.
    """
    machine = read_machine(settings.machines).machine
    try:
        reserved = links_out.read(settings.state, machine, machine_sum).reserved
    except InputError as error:
        return (str(error),)
    if set(DedicatedRoutes.set_aside(machine, settings.service_uplinks)) == reserved:
        return ()
    slots = links_out.slots_of(machine, reserved)
    found = f"{len(reserved)} links" if slots is None else f"{slots} uplink slots of every switch"
    wanted = f"--service-uplinks {settings.service_uplinks}"
    return (f"{wanted}: the plugin reserves {found}: run `topolane slurm outages` with {wanted}",)


def _fingerprint(settings: RoutesSettings, machine_sum: int, jobs: Mapping[int, Allocation]) -> str:
    """A digest that differs for other tables."""
    rows = [(job, sorted(own.nodes), own.links) for job, own in sorted(jobs.items())]
    given = [str(settings.out), machine_sum, settings.service, settings.service_uplinks, rows]
    return hashlib.sha256(json.dumps(given).encode()).hexdigest()


def _install(command: Sequence[str], seconds: float) -> None:
    """Runs the command that loads the tables, and ends it after `seconds`. Raises InputError if it fails."""
    shown = f"--install {texts.shown(command[0])}"
    # A file instead of a pipe, because processes that the command leaves behind could keep a pipe open.
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=_environment(),
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(f"{shown}: {error.strerror}") from error
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise InputError(f"{shown}: has not ended after {seconds:.0f} s (--wait)") from error
        finally:
            if process.poll() is None:
                # If this is not root, it may not end a command that runs as root through sudo; then the
                # command goes on.
                with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait(1)
        if code:
            said.seek(0)
            lines = said.read(1 << 16).decode(errors="replace").strip().splitlines()
            raise InputError(
                f"{shown}: ended with {code}: {texts.sentence(lines[-1]) if lines else 'no message'}"
            )


@contextlib.contextmanager
def _alone(out: Path, deadline: float) -> Iterator[None]:
    """Makes sure that no other process works on these tables. Raises InputError if one still does at the
    deadline.
    """
    name = hashlib.sha256(os.path.realpath(out).encode()).hexdigest()[:16]
    with contextlib.closing(Locks("topolane-routes")) as locks:
        while True:
            try:
                locks.take(name)
                break
            except TakenError as error:
                if time.monotonic() > deadline:
                    raise InputError(
                        f"--out {out}: another process is at work on it (process {error.process or 'not known'})"
                    ) from error
            time.sleep(POLL)
        yield
