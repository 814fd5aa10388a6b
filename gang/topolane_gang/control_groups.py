"""Control groups that jobs stand in already: those of containers, units and threads."""

from __future__ import annotations

import contextlib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from topolane._engine import InputError

from topolane_gang import watchdog

ID = re.compile(r"[0-9a-f]{8,64}")
SUFFIXES = (".service", ".scope", ".slice")
"""The units of systemd that have control groups."""
MOUNT = re.compile(r"^\S+ \S+ \S+ \S+ (\S+) .* - (cgroup2?) \S+ (\S+)$", re.MULTILINE)
"""Of /proc/self/mountinfo: where, kind, options."""


@dataclass(frozen=True)
class OwnGroup:
    """A control group that a job stands in, or that was made for its threads below the one they stood in."""

    directory: Path
    made: bool = False


def group(named: str) -> Path:
    """The group by its directory, or by its path as /proc/PID/cgroup gives it. Raises InputError."""
    places = [Path(named).absolute(), *(mount / named.lstrip("/") for mount in mounts())]
    for place in places:
        if _freezes(place):
            return place
    raise InputError(f"control group {named}: no such group that freezes (of version 2, or the freezer of 1)")


def unit(named: str) -> Path:
    """The group of a unit of systemd: a service, scope or slice. Raises InputError."""
    if not named:
        raise InputError("unit '': give the name of a service, scope or slice")
    wanted = named if named.endswith(SUFFIXES) else f"{named}.service"
    return _only(f"unit {wanted}", lambda name: name == wanted)


def container(named: str) -> Path:
    """The group of a container, by its ID or the beginning of it, at least 8 characters. Raises InputError."""
    if not ID.fullmatch(named):
        raise InputError(
            f"container {named!r}: give its ID, at least 8 hexadecimal digits (docker inspect -f '{{{{.Id}}}}' NAME)"
        )
    # ID as cgroupfs names it, docker-ID.scope, libpod-ID.scope, cri-containerd-ID.scope, crio-ID.scope
    whole = re.compile(rf"(?:[a-z-]+-)?{named}[0-9a-f]*(?:\.scope)?")
    return _only(f"container {named}", lambda name: whole.fullmatch(name) is not None)


def _only(what: str, matches: Callable[[str], bool]) -> Path:
    """The group of that name with processes. Version 2 comes before the freezer of version 1."""
    for mount in mounts():
        found = [Path(at) for at in _below(mount) if matches(os.path.basename(at)) and _populated(Path(at))]
        if len(found) > 1:
            raise InputError(
                f"{what} is not one group but several: {', '.join(map(str, found))}: use --cgroup"
            )
        if found:
            return found[0]
    raise InputError(f"{what} has no control group with processes on this machine")


def mounts() -> list[Path]:
    """Where version 2 and the freezer of version 1 are mounted."""
    found = MOUNT.findall(Path("/proc/self/mountinfo").read_text())
    v2 = [Path(place) for place, kind, _ in found if kind == "cgroup2"]
    return v2 + [
        Path(place) for place, kind, options in found if kind == "cgroup" and "freezer" in options.split(",")
    ]


def _freezes(place: Path) -> bool:
    return any((place / file).exists() for file in ("cgroup.freeze", "freezer.state"))


def _below(top: Path) -> Iterator[str]:
    """The directories below this one, parents first."""
    for at, _, _ in os.walk(top):
        yield at


def _populated(place: Path) -> bool:
    return any(watchdog.members(Path(at) / "cgroup.procs") for at in _below(place))


def of_threads(threads: Sequence[int], mark: str) -> list[OwnGroup]:
    """Groups of version 2 that have these threads and no others.

    A threaded group that has no other thread is used as it is, as libvirt's for each virtual core. For other
    threads, a threaded group is made below the one that they stand in; the process itself stays there. Raises
    InputError.
    """
    homes: defaultdict[Path, list[int]] = defaultdict(list)
    for thread in threads:
        homes[_home(thread)].append(thread)
    groups: list[OwnGroup] = []
    try:
        for home, there in homes.items():
            if _kind(home) == "threaded" and watchdog.members(home / "cgroup.threads") <= set(there):
                groups.append(OwnGroup(home))
            else:
                groups.append(made := OwnGroup(home / f"topolane-gang-{mark}-{there[0]}", made=True))
                _make(made.directory, there)
    except OSError as error:
        remove(groups)
        raise InputError(
            f"threads {', '.join(map(str, threads))}: no threaded control group can be made for them in {home}: "
            f"{error.strerror}"
        ) from error
    return groups


def allowed(group: OwnGroup) -> dict[int, list[int]]:
    """The CPU numbers that each thread of a group may use."""
    found = {}
    for at in _below(group.directory):
        for thread in watchdog.members(Path(at) / "cgroup.threads") | watchdog.members(Path(at) / "tasks"):
            with contextlib.suppress(OSError):
                found[thread] = sorted(os.sched_getaffinity(thread))
    return found


def _home(thread: int) -> Path:
    """The group of version 2 that a thread stands in."""
    with contextlib.suppress(OSError):
        listed = Path(f"/proc/{thread}/cgroup").read_text()
        for mount in mounts():
            if (mount / "cgroup.procs").exists() and (
                found := re.search(r"^0::(/.*)$", listed, re.MULTILINE)
            ):
                return mount / found[1].lstrip("/")
    raise InputError(f"thread {thread} has ended, or control groups version 2 are not mounted")


def _kind(home: Path) -> str:
    with contextlib.suppress(OSError):
        return (home / "cgroup.type").read_text().strip()
    return "root"


def _make(directory: Path, threads: Sequence[int]) -> None:
    directory.mkdir()
    (directory / "cgroup.type").write_text("threaded")
    for thread in threads:
        (directory / "cgroup.threads").write_text(str(thread))


def remove(groups: Sequence[OwnGroup]) -> None:
    """Removes the groups that were made; their threads go back to the group above."""
    for each in groups:
        if each.made:
            for thread in watchdog.members(each.directory / "cgroup.threads"):
                watchdog.write(each.directory.parent / "cgroup.threads", str(thread))
            with contextlib.suppress(OSError):
                each.directory.rmdir()
