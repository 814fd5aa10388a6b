"""Control groups that exist before an agent takes what is in them, made by hand as a container runtime does."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from topolane_gang import control_groups
from waiting import until


def mounts() -> dict[str, Path]:
    """Where groups that freeze can be made, by kind: freeze (version 2), freezer (version 1)."""
    found: dict[str, Path] = {}
    for mount in control_groups.mounts():
        kind = "freeze" if (mount / "cgroup.procs").exists() and not (mount / "tasks").exists() else "freezer"
        if os.access(mount, os.W_OK):
            found.setdefault(kind, mount)
    return found


@contextlib.contextmanager
def group(mount: Path, name: str, *below: str) -> Iterator[Path]:
    """A group of that name, and groups below it; removed at the end with all that is in them."""
    made = mount / name
    places = [made, *(made / one for one in below)]
    for place in places:
        place.mkdir()
    try:
        yield made
    finally:
        thaw(made)
        for place in reversed(places):
            end(place)
            place.rmdir()


def thaw(place: Path) -> None:
    """Lets all in a group run."""
    for file, value in (("cgroup.freeze", "0"), ("freezer.state", "THAWED")):
        if (place / file).exists():
            (place / file).write_text(value)


def frozen(place: Path) -> bool:
    """Whether the kernel was asked to freeze a group."""
    v2 = place / "cgroup.freeze"
    return (v2 if v2.exists() else place / "freezer.self_freezing").read_text().strip() == "1"


def end(place: Path) -> None:
    """Kills all processes of a group, and waits for their end."""

    def ended() -> bool:
        numbers = (place / "cgroup.procs").read_text().split()
        for number in numbers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(number), 9)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        return not numbers

    until(ended, f"{place} is empty")


def start(place: Path, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Starts a process in a group, as the first thing that it does."""
    entered = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(place / "cgroup.procs"), *command]
    return subprocess.Popen(entered, start_new_session=True)
