"""The kernels of `native` under SimGrid's SMPI on two sites and a WAN."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from topolane.compiling import Missing

from topolane_studies import sites
from topolane_studies.nova_smpi import build, printed

if TYPE_CHECKING:
    from topolane_studies.sites import SmpiRun

__all__ = ["Missing", "SentCounts", "build", "ends", "play", "seconds", "sent"]

OPTIONS = (
    "smpi/host-speed:1Gf",
    "smpi/simulate-computation:no",
    "smpi/coll-selector:mpich",
    "smpi/bw-factor:0:1",
    # SMPI itself lets a large message pay two ways, asking and data; the answer is the third.
    f"smpi/lat-factor:0:1;{sites.EAGER + 1}:2",
    f"smpi/async-small-thresh:{sites.EAGER}",
    f"smpi/send-is-detached-thresh:{sites.EAGER}",
)


def platform(run: SmpiRun) -> str:
    """Hosts at their sites, as `native/platform.cpp` reads it: every host's two channels, then the WAN's two, then the
    tunnel's one if there is one."""
    hosts = len(run.sites)
    wan = run.wan or sites.Wan(0.0, None)
    links = [f"{sites.GIGABIT!r} {sites.HOST_LATENCY!r}"] * (2 * hosts)
    links += [f"{wan.bandwidth!r} {wan.latency!r}"] * 2
    links += [f"{wan.tunnel.rate!r} {wan.tunnel.latency!r}"] if wan.tunnel else []
    inside = tunnelled(run)
    lines = [f"{hosts} {run.speed!r} {len(links)} {hosts * (hosts - 1)} 0", *links]
    for source, here in enumerate(run.sites):
        for target, there in enumerate(run.sites):
            if source != target:
                through = [2 * hosts + 2] if inside[source] and inside[target] else []
                across = [] if here == there else [2 * hosts + here, *through]
                way = [2 * source, *across, 2 * target + 1]
                lines.append(" ".join(map(str, (source, target, len(way), *way))))
    return "\n".join(lines) + "\n"


def tunnelled(run: SmpiRun) -> list[bool]:
    """Of every rank, whether what it sends to another site passes the tunnel."""
    through = run.wan is not None and run.wan.tunnel is not None
    inside = [through and place not in run.outside for place in range(len(run.jobs))]
    return [each for job, each in zip(run.jobs, inside) for _ in range(job.ranks)]


def seconds(run: SmpiRun) -> list[float]:
    """Simulated seconds of the iterations of every program."""
    return [of[-1] for of in ends(run)]


def ends(run: SmpiRun) -> list[list[float]]:
    """Of every program, when each of its iterations ended."""
    found: list[list[float]] = [[] for _ in run.jobs]
    for line in play(run).splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[0].isdigit():
            found[int(fields[0])].append(float(fields[2]))
    return found


@dataclasses.dataclass(frozen=True)
class SentCounts:
    """What a program sends."""

    pairs: dict[tuple[int, int], tuple[int, int, int]]
    """Messages, bytes and turns of every pair in the iterations that are run."""
    broadcasts: int
    """Calls of MPI_Bcast in the whole run: all at its start."""


def sent(run: SmpiRun) -> SentCounts:
    """The counts of a run that counts."""
    pairs, broadcasts = {}, 0
    for line in play(run).splitlines():
        fields = line.split()
        if fields[0] == "sent":
            pair = (int(fields[1]), int(fields[2]))
            pairs[pair] = (int(fields[3]), int(fields[4]), int(fields[5]))
        elif fields[0] == "broadcasts":
            broadcasts = int(fields[1])
    return SentCounts(pairs, broadcasts)


def play(run: SmpiRun) -> str:
    """What a run prints. Raises ChildProcessError with its complaint if it fails."""
    with tempfile.TemporaryDirectory(prefix="run-", dir=run.programs) as name:
        folder = Path(name)
        (folder / "platform").write_text(platform(run))
        (folder / "hosts").write_text("".join(f"n{host}\n" for host in range(len(run.sites))))
        command: list[str | Path] = ["smpirun", "-np", str(len(run.sites)), "-hostfile", folder / "hosts"]
        command += ["-platform", run.programs / "platform.so", "--log=root.thresh:critical"]
        window = run.wan.window if run.wan and run.wan.window else 0.0
        command += [f"--cfg={option}" for option in (*OPTIONS, f"network/TCP-gamma:{window!r}")]
        command.append(run.programs / "kernels")
        iterations = run.iterations or tuple(sites.ITERATIONS[job.kernel][0] for job in run.jobs)
        for job, count in zip(run.jobs, iterations):
            command += [job.kernel, job.size, str(count), str(job.ranks)]
        environment = {"TMPDIR": name, "TOPOLANE_PLATFORM": str(folder / "platform")}
        if run.counting:
            environment["TOPOLANE_COUNTS"] = "1"
        if run.wan and run.wan.tunnel:
            # A rank outside the tunnel pays nothing for it: it is on one site with all that it sends to.
            where = (site if inside else 0 for site, inside in zip(run.sites, tunnelled(run)))
            environment["TOPOLANE_TUNNEL"] = f"{sites.EXTRA!r} {sites.EAGER} {' '.join(map(str, where))}"
        return printed(command, folder, environment)
