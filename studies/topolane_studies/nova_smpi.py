"""The kernels of `native` under SimGrid's SMPI, on a platform of our routes with the others' traffic."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from topolane.compiling import Missing, compile_with, ended, first_error

from topolane_studies import nova

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_studies.nova import NovaSetting

SOURCES = Path(__file__).parent / "native"
TOOLS = ("smpicc", "smpirun", "g++")
OPTIONS = (
    "smpi/host-speed:1Gf",
    "smpi/simulate-computation:no",
    "smpi/coll-selector:mpich",
)

KERNELS = {
    "bt": (200, 200),
    "sp": (100, 400),
    "lu": (50, 250),
    "cg": (75, 75),
    "mg": (20, 20),
    "ft": (20, 20),
    "is": (10, 10),
    "ep": (1, 1),
    "dt": (1, 1),
}
"""Iterations that are run, and those of the benchmark's class B."""


@dataclasses.dataclass(frozen=True)
class KernelRun:
    """One run of a kernel, small enough to send to a process."""

    programs: Path
    kernel: str
    iterations: int
    setting: NovaSetting
    seed: int
    hosts: tuple[int, ...]
    """Of every rank."""
    size: str = "B"
    """The benchmark's class."""


def build(folder: Path) -> Path:
    """Compiles the kernels and the platform into a folder. Raises Missing where that cannot be done."""
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    if absent:
        raise Missing(f"{', '.join(absent)} not found: needs packages libsimgrid-dev and g++")
    kernels = sorted(SOURCES.glob("*.c"))
    compile_with(["smpicc", "-std=c99", "-O2", *kernels, "-lm"], folder / "kernels")
    compile_with(
        ["g++", "-std=c++17", "-O2", "-shared", "-fPIC", SOURCES / "platform.cpp", "-lsimgrid"],
        folder / "platform.so",
    )
    return folder


def platform(run: KernelRun) -> str:
    """The fabric by our routes and capacities, and who else sends, as `native/platform.cpp` reads it."""
    network, routing = run.setting.network, run.setting.machine().routing("d-mod-k")
    # A host with several ranks is named once.
    own = tuple(dict.fromkeys(run.hosts))
    groups = [own, *(group.hosts for group in nova.other_groups(run.setting, run.seed))]
    pairs = [pair for hosts in groups for pair in itertools.permutations(hosts, 2)]
    paths = [routing.path(*pair) for pair in pairs]
    ends = {channel for path in paths for channel in (path[0], path[-1])}
    senders = background(run.setting, run.seed)
    hosts = nova.LEAVES * nova.HOSTS
    lines = [f"{hosts} {run.setting.speed!r} {routing.channels} {len(paths)} {len(senders)}"]
    for channel, capacity in enumerate(routing.capacity.tolist()):
        lines.append(f"{capacity!r} {network.host_latency if channel in ends else network.uplink_latency!r}")
    for pair, path in zip(pairs, paths):
        lines.append(" ".join(map(str, (*pair, len(path), *path))))
    return "\n".join([*lines, *senders]) + "\n"


def background(setting: NovaSetting, seed: int) -> list[str]:
    """A line for every VM of the other groups."""
    if not setting.others:
        return []
    lines = []
    for group in nova.other_groups(setting, seed):
        for host in group.hosts:
            others = [other for other in group.hosts if other != host]
            own = seed * nova.LEAVES * nova.HOSTS + host
            values = (own, host, group.duty, nova.TRANSFER, setting.network.bandwidth, len(others), *others)
            lines.append(" ".join(map(str, values)))
    return lines


def seconds(run: KernelRun) -> float:
    """Simulated seconds of the iterations of a run."""
    return float(play(run).split()[-1])


def play(run: KernelRun, *options: str) -> str:
    """What a run prints. Raises ChildProcessError with its complaint if it fails."""
    with tempfile.TemporaryDirectory(prefix="run-", dir=run.programs) as name:
        folder = Path(name)
        (folder / "platform").write_text(platform(run))
        (folder / "hosts").write_text("".join(f"n{host}\n" for host in run.hosts))
        command: list[str | Path] = ["smpirun", "-np", str(len(run.hosts)), "-hostfile", folder / "hosts"]
        command += ["-platform", run.programs / "platform.so", "--log=root.thresh:critical"]
        command += [f"--cfg={option}" for option in OPTIONS]
        command += [*options, run.programs / "kernels", run.kernel, run.size, str(run.iterations)]
        command.append(str(len(run.hosts)))
        # smpirun leaves files of its own where it runs and where TMPDIR says.
        return printed(command, folder, {"TMPDIR": name, "TOPOLANE_PLATFORM": str(folder / "platform")})


def printed(command: Sequence[str | Path], folder: Path, environment: dict[str, str]) -> str:
    """What a command prints; it and all it started end with this process."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )

    def leave(*_: object) -> NoReturn:
        os.killpg(process.pid, signal.SIGKILL)
        os._exit(128 + signal.SIGTERM)

    # A worker of a sweep is ended by this signal; the command line has a handler that raises.
    before = signal.getsignal(signal.SIGTERM)
    if before == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)
    try:
        output, complaint = process.communicate()
    except BaseException:  # it has a session of its own, which an interrupt does not reach
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
    if process.returncode != 0:
        raise ChildProcessError(f"{command[0]} {ended(process.returncode)}{first_error(complaint)}")
    return output
