"""Collectives in two levels against flat ones, over a WAN with latency, under SimGrid's SMPI.

What runs is the code of the preloaded library (`native/mpi/collectives`), compiled into a program that times it.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from topolane.compiling import Missing, compile_with
from topolane.mpi.build import SOURCES as LIBRARY

from topolane_studies import sites
from topolane_studies.nova_smpi import SOURCES as KERNELS
from topolane_studies.nova_smpi import printed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RANKS = 32
SITES = (2, 4)
LATENCIES = (0.0, 1e-3, 2e-3, 5e-3, 10e-3)
"""Of every link between two sites, one way, seconds."""
SELECTORS = ("mpich", "ompi")
"""Whose algorithms the flat collectives have, and the stages inside a site, as SMPI rebuilds them."""
SIZES = (8, 256, 1024, 16384, 65536, 1048576)
"""Bytes of the buffer: what one rank gives or gets."""
LARGEST_BLOCK = 65536
"""Bytes of one rank's block in calls whose buffers hold one for every rank."""
PLACEMENTS = ("blocks", "cyclic")
"""Ranks in a row on one site, or dealt out to the sites in turn."""

OF_BLOCKS = ("gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall")
CALLS = ("barrier", "bcast", "reduce", "allreduce", *OF_BLOCKS)


@dataclasses.dataclass(frozen=True)
class CollectiveCase:
    """One run of all calls; small enough to send to a process."""

    sites: int
    latency: float
    """Between two sites, one way, seconds."""
    selector: str = "mpich"
    placement: str = "blocks"
    window: float | None = None
    """Bytes a connection may have under way, or no limit."""
    ranks: int = RANKS

    def site_of(self, rank: int) -> int:
        """The site of a rank."""
        return rank % self.sites if self.placement == "cyclic" else rank * self.sites // self.ranks


@dataclasses.dataclass(frozen=True)
class CollectiveRow:
    """One collective, one size, both ways."""

    collective: str
    size: int
    """Bytes of one rank's part; 0 for a barrier."""
    sites: int
    latency: float
    flat: float
    """Seconds, from when all ranks begin until the last has done."""
    two_level: float
    selector: str
    placement: str


def build(folder: Path) -> Path:
    """Compiles the program and the platform into a folder. Raises Missing where that cannot be done."""
    absent = [tool for tool in ("smpicc", "smpirun", "g++") if shutil.which(tool) is None]
    if absent:
        raise Missing(f"{', '.join(absent)} not found: needs packages libsimgrid-dev and g++")
    sources = [KERNELS / "collectives" / "measure.c", LIBRARY / "sites.c"]
    sources += sorted((LIBRARY / "collectives").glob("*.c"))
    compile_with(
        ["smpicc", "-std=gnu11", "-O2", "-pthread", "-DSIMULATED", f"-I{LIBRARY}", *sources],
        folder / "collectives",
    )
    compile_with(
        ["g++", "-std=c++17", "-O2", "-shared", "-fPIC", KERNELS / "platform.cpp", "-lsimgrid"],
        folder / "platform.so",
    )
    return folder


def measure(
    programs: Path, case: CollectiveCase, calls: Sequence[str] = CALLS, most: int = SIZES[-1]
) -> list[CollectiveRow]:
    """Simulated seconds of every call and size up to `most` bytes. Raises ChildProcessError if the run fails."""
    with tempfile.TemporaryDirectory(prefix="run-", dir=programs) as name:
        folder = Path(name)
        (folder / "platform").write_text(platform(case))
        (folder / "hosts").write_text("".join(f"n{host}\n" for host in range(case.ranks)))
        command: list[str | Path] = ["smpirun", "-np", str(case.ranks), "-hostfile", folder / "hosts"]
        command += ["-platform", programs / "platform.so", "--log=root.thresh:critical"]
        command += [f"--cfg={option}" for option in options(case)]
        command.append(programs / "collectives")
        command += [f"{call}={','.join(map(str, sizes(call, most)))}" for call in calls]
        environment = {
            "TMPDIR": name,
            "TOPOLANE_PLATFORM": str(folder / "platform"),
            "TOPOLANE_MPI_TWO_LEVEL": "always",
            "TOPOLANE_MPI_SITES": ",".join(str(case.site_of(rank)) for rank in range(case.ranks)),
        }
        return list(rows(case, printed(command, folder, environment).splitlines()))


def rows(case: CollectiveCase, lines: Iterable[str]) -> Iterable[CollectiveRow]:
    """What the program printed."""
    for line in lines:
        call, size, flat, two_level = line.split()
        yield CollectiveRow(
            call,
            int(size),
            case.sites,
            case.latency,
            float(flat),
            float(two_level),
            case.selector,
            case.placement,
        )


def sizes(call: str, most: int) -> tuple[int, ...]:
    """Bytes a call is tried with."""
    if call == "barrier":
        return (0,)
    return tuple(size for size in SIZES if size <= (min(most, LARGEST_BLOCK) if call in OF_BLOCKS else most))


def options(case: CollectiveCase) -> tuple[str, ...]:
    """Of SMPI: those of the kernels' runs."""
    return (
        "smpi/host-speed:1Gf",
        "smpi/simulate-computation:no",
        f"smpi/coll-selector:{case.selector}",
        "smpi/bw-factor:0:1",
        f"smpi/lat-factor:0:1;{sites.EAGER + 1}:2",
        f"smpi/async-small-thresh:{sites.EAGER}",
        f"smpi/send-is-detached-thresh:{sites.EAGER}",
        f"network/TCP-gamma:{case.window or 0.0!r}",
    )


def platform(case: CollectiveCase) -> str:
    """Hosts on one switch a site, a link of their own between every two sites, each way; for `platform.cpp`."""
    hosts, pairs = case.ranks, case.sites * case.sites
    lines = [f"{hosts} {sites.SPEED!r} {2 * hosts + pairs} {hosts * (hosts - 1)} 0"]
    lines += [f"{sites.GIGABIT!r} {sites.HOST_LATENCY!r}"] * (2 * hosts)
    lines += [f"{sites.GIGABIT!r} {case.latency!r}"] * pairs
    for source in range(hosts):
        for target in range(hosts):
            if source != target:
                here, there = case.site_of(source), case.site_of(target)
                across = [] if here == there else [2 * hosts + here * case.sites + there]
                way = [2 * source, *across, 2 * target + 1]
                lines.append(" ".join(map(str, (source, target, len(way), *way))))
    return "\n".join(lines) + "\n"
