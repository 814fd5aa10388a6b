"""Domains of Xen as jobs: the pool of cores that they run in, and what Xen's tools say of them. The agent runs in dom0."""

from __future__ import annotations

import contextlib
import ctypes
import re
import secrets
import shutil
import subprocess
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topolane._engine import InputError

from topolane_gang import agent_files

DOM0 = "Pool-0"
"""The pool that dom0 runs in."""
LISTED = re.compile(
    r"^(?P<name>\S.*?)\s+(?P<number>\d+)\s+\d+\s+(?P<cores>\d+)\s+[-rbpscd]{6}\s+[\d.]+"
    r"\s+(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\s+\S+\s+(?:-\s*|\S+\s+)(?P<pool>\S.*)$",
    re.MULTILINE,
)
"""A line of `xl list -v -c`. A pool with a long name follows the label `-` without a blank."""
POOL = re.compile(r"^(\S.*?) *\d+ +(\S+) +y +\d+$", re.MULTILINE)
"""A line of `xl cpupool-list`: name and scheduler."""
PINNED = re.compile(r"^\S.*?\s+\d+\s+(\d+)\s+\S+\s+\S+\s+[\d.]+\s+(\S+) / (\S+)$", re.MULTILINE)
"""A line of `xl vcpu-list`: virtual processor, hard and soft affinity."""
SOCKET = re.compile(r"^\s*(\d+):\s+\d+\s+(\d+)\s+\d+$", re.MULTILINE)
"""A line of the topology in `xl info -n`: core and socket."""
SHARES = re.compile(r"^\S.*?\s+\d+\s+(\d+)\s+(\d+)$", re.MULTILINE)
"""A line of `xl sched-credit -d` or `xl sched-credit2 -d`: weight and cap."""
GRANULARITY = {"gang": "socket", "free": "cpu"}
"""The policies that Xen itself has, with the granularity by which it schedules then."""
WEIGHT, MOST_WEIGHT = 256, 65535
"""Xen's weight of a domain that was given none, and the largest."""


@dataclass(frozen=True)
class Domain:
    """A domain, as `xl list` shows it."""

    name: str
    number: int
    uuid: str
    cores: int
    """Virtual processors."""
    pool: str

    @property
    def identity(self) -> tuple[int, bytes]:
        """Its number and UUID, as the engine wants them."""
        return self.number, uuid.UUID(self.uuid).bytes


@dataclass(frozen=True)
class Taken:
    """A domain that an agent takes, with what puts it back."""

    domain: Domain
    restore: list[list[str]]
    """Commands of `xl` that give it the affinity and the weight that it had in its own pool."""

    def record(self) -> dict[str, Any]:
        """What the watchdog must know, see `watchdog.put_back`."""
        return {
            "number": self.domain.number,
            "uuid": self.domain.uuid,
            "pool": self.domain.pool,
            "restore": self.restore,
        }


def library() -> str:
    """The name of the libxenctrl of the Xen that runs. Raises InputError if Xen cannot be controlled from here."""
    try:
        dom0 = "control_d" in Path("/proc/xen/capabilities").read_text()
    except OSError:
        dom0 = False
    if not dom0:
        raise InputError("this is not dom0 of a Xen (/proc/xen/capabilities does not say control_d)")
    for tool in ("xl", "xenhypfs", "xenstore-read"):
        if shutil.which(tool) is None:
            raise InputError(
                f"{tool} is missing: install Xen's tools in dom0 (Debian: xen-utils, xenstore-utils)"
            )
    version = Path("/sys/hypervisor/version")
    name = ".".join(["libxenctrl.so", *((version / part).read_text().strip() for part in ("major", "minor"))])
    try:
        ctypes.CDLL(name)
    except OSError as error:
        raise InputError(f"{name}, the library of this version of Xen, cannot be loaded: {error}") from error
    return name


def xl(*words: str) -> str:
    """What a command of `xl` prints. Raises InputError if it fails."""
    return _ran("xl", *words)


def _ran(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())
        raise InputError(f"{' '.join(words)}: {said or f'exit code {done.returncode}'}")
    return done.stdout


def domains() -> list[Domain]:
    """All domains, dom0 too. Raises InputError."""
    return parse_domains(xl("list", "-v", "-c"))


def parse_domains(listed: str) -> list[Domain]:
    """The domains in the answer of `xl list -v -c`."""
    return [
        Domain(found["name"], int(found["number"]), found["uuid"], int(found["cores"]), found["pool"])
        for found in LISTED.finditer(listed)
    ]


def domain(named: str) -> Domain:
    """A domain by its name, number or UUID. Raises InputError if there is none, or it is dom0."""
    for one in domains():
        if named in (one.name, str(one.number), one.uuid):
            if one.number == 0:
                raise InputError(f"domain {named} is dom0, in which the agent runs")
            return one
    raise InputError(f"Xen knows no domain {named}")


def pools() -> dict[str, tuple[list[int], str]]:
    """The cores and the scheduler of each pool. Raises InputError."""
    return parse_pools(xl("cpupool-list"), xl("cpupool-list", "-c"))


def parse_pools(listed: str, with_cores: str) -> dict[str, tuple[list[int], str]]:
    """The pools in the answers of `xl cpupool-list` and `xl cpupool-list -c`."""
    found = {}
    for name, scheduler in POOL.findall(listed):
        # Names may have blanks, and a long one is not followed by any.
        cores = re.search(rf"^{re.escape(name)} *([\d,]*)$", with_cores, re.MULTILINE)
        found[name] = ([int(core) for core in cores[1].split(",") if core] if cores else [], scheduler)
    return found


def switched_by(policy: str, asked: str | None) -> str:
    """What was asked for; else pool for the policies that Xen itself has, and pause for others."""
    return asked or ("pool" if policy in GRANULARITY else "pause")


class XenPool:
    """The pool of an agent's cores. `make` makes it; `watchdog.put_back` undoes that."""

    def __init__(self, policy: str, cores: Sequence[int] | None, switch_by: str | None = None) -> None:
        """switch_by: pool, which Xen switches, or pause [default: pool for the policies that Xen itself has].
        Nothing is changed yet. Raises InputError if it cannot be made.
        """
        self.library = library()
        # An agent that died with its watchdog has left its domains paused and its pool full.
        agent_files.release_abandoned()
        if not cores:
            raise InputError(
                "domains of Xen need cores of their own: name them by --cores, and leave dom0 others"
            )
        self.cores = tuple(sorted(set(cores)))
        self.switched_by = switched_by(policy, switch_by)
        if self.switched_by not in ("pool", "pause"):
            raise InputError(f"domains of Xen are switched by pool or pause, not by {switch_by}")
        if self.switched_by == "pool" and policy not in GRANULARITY:
            raise InputError(
                f"Xen itself knows the policies {', '.join(GRANULARITY)}, not {policy}: use --switch-by pause"
            )
        self.granularity = GRANULARITY[policy] if self.switched_by == "pool" else "cpu"
        self.name = f"topolane-{secrets.token_hex(3)}"
        self.homes = _homes(self.cores)
        """The pool that each core comes from; empty if it is in none."""
        sockets: dict[int, set[int]] = {}
        for core, socket in SOCKET.findall(xl("info", "-n")):
            sockets.setdefault(int(socket), set()).add(int(core))
        self.sockets = {number: of for number, of in sockets.items() if of & set(self.cores)}
        if self.granularity == "socket":
            self._check_sockets()

    def _check_sockets(self) -> None:
        for number, of in self.sockets.items():
            if missing := sorted(of - set(self.cores)):
                raise InputError(
                    f"cores {_listed(self.cores)}: Xen switches whole sockets, and socket {number} also has the cores "
                    f"{_listed(missing)}"
                )

    def record(self) -> dict[str, Any]:
        """What the watchdog must know."""
        return {
            "library": self.library,
            "pool": self.name,
            "homes": {str(core): home for core, home in self.homes.items()},
        }

    def make(self, slice: float | None = None) -> None:
        """Makes the pool. slice: seconds of Xen's own slices [default: Xen's]. Raises InputError."""
        for core, home in self.homes.items():
            if home and core in pools()[home][0]:
                xl("cpupool-cpu-remove", home, str(core))
        xl("cpupool-create", f'name="{self.name}"', 'sched="credit"')
        place = f"/cpupool/{_number(self.name)}/sched-gran"
        if _ran("xenhypfs", "cat", place).strip() != self.granularity:
            try:
                _ran("xenhypfs", "write", place, self.granularity)
            except InputError as error:
                raise InputError(
                    f"{place} of hypfs cannot be set to {self.granularity}, so that this Xen does not schedule by it: {error}"
                ) from error
        for core in self.cores:
            if core not in pools()[self.name][0]:
                xl("cpupool-cpu-add", self.name, str(core))
        # `xl` does not fail where Xen refuses a core.
        if refused := set(self.cores) - set(pools()[self.name][0]):
            raise InputError(f"cores {_listed(refused)}: Xen does not move them to another pool")
        if slice is not None:
            xl("sched-credit", "-s", "-p", self.name, "-t", str(round(1e3 * slice)))

    def check(self, wanted: Domain) -> None:
        """Raises InputError if a domain does not fit."""
        most = len(self.cores)
        if wanted.cores > most:
            raise InputError(
                f"domain {wanted.name} has {wanted.cores} virtual processors, and the pool has {most} cores"
            )
        smallest = min((len(of) for of in self.sockets.values()), default=most)
        if self.granularity == "socket" and wanted.cores > smallest:
            raise InputError(
                f"domain {wanted.name} has {wanted.cores} virtual processors, and a socket has {smallest} cores: Xen "
                "switches each socket on its own, so use --switch-by pause"
            )

    def take(self, taken: Taken, weight: float) -> None:
        """Moves a domain into the pool. Raises InputError."""
        number = str(taken.domain.number)
        xl("cpupool-migrate", number, self.name)
        if self.switched_by == "pool":
            xl("sched-credit", "-d", number, "-w", str(max(1, min(MOST_WEIGHT, round(WEIGHT * weight)))))


def taken(wanted: Domain) -> Taken:
    """The domain with what restores it. Raises InputError."""
    number = str(wanted.number)
    restore = [
        ["vcpu-pin", number, core, hard, soft]
        for core, hard, soft in PINNED.findall(xl("vcpu-list", number))
        if (hard, soft) != ("all", "all")
    ]
    if (scheduler := pools()[wanted.pool][1]) in ("credit", "credit2"):
        for weight, cap in SHARES.findall(xl(f"sched-{scheduler}", "-d", number)):
            restore.append([f"sched-{scheduler}", "-d", number, "-w", weight, "-c", cap])
    return Taken(wanted, restore)


def _homes(cores: Sequence[int]) -> dict[int, str]:
    """The pools of these cores, which are free to be taken out of them. Raises InputError."""
    known, inside = pools(), domains()
    every = {core for core, _ in SOCKET.findall(xl("info", "-n"))}
    homes = {}
    for core in cores:
        if str(core) not in every:
            raise InputError(f"cores: {core} is not a core of this machine")
        homes[core] = next((name for name, (of, _) in known.items() if core in of), "")
        there = [one.name for one in inside if one.pool == homes[core]]
        if homes[core] not in ("", DOM0) and there:
            raise InputError(
                f"core {core} is in the pool {homes[core]}, which has domains in it: {', '.join(there)}"
            )
    if not set(known[DOM0][0]) - set(cores):
        raise InputError(f"cores {_listed(cores)}: dom0 needs at least one core in {DOM0}")
    return homes


def _number(pool: str) -> int:
    """The number of a pool. Raises InputError."""
    for entry in _ran("xenhypfs", "ls", "/cpupool").split():
        number = entry.rstrip("/")
        with contextlib.suppress(InputError):
            if number.isdecimal() and _ran("xenstore-read", f"/local/pool/{number}/name").strip() == pool:
                return int(number)
    raise InputError(f"hypfs has no pool {pool}: this Xen was built without it, or it is not readable")


def _listed(cores: Collection[int]) -> str:
    return ",".join(map(str, sorted(cores)))
