"""The micro-benchmarks of the rank-k paper, as the calibrated machines predict them (its figures 2 and 3).

The paper measured bandwidth between two nodes while 1 to 8 pairs of processes send at once, and MPI_Alltoall against the
processes of a node. Of its numbers we know that both fall; so they are drawn, and are no rows.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from topolane._engine import Profile, State, Traffic, rank_k

from topolane_studies.rank_k import machine
from topolane_studies.rank_k_choices import SWITCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from matplotlib.figure import Figure
    from topolane._engine import Machine

    from topolane_studies.rank_k import RankKStudy

OWN = ("pairs.png", "pairs.csv", "alltoall.png", "alltoall.csv")
PROCESSES = range(1, 9)
"""Of a node."""
SIZES = tuple(2**power for power in range(10, 23))
"""Bytes of a message between a pair."""
TOTALS = (2**20, 2**16)
"""Bytes that a process sends to each other process in MPI_Alltoall."""


@dataclasses.dataclass(frozen=True)
class BenchmarkPoint:
    """Predicted bandwidth of a process, while all processes of its node send."""

    cluster: str
    processes: int
    """Of a node."""
    bytes: int
    """Of a message."""
    bandwidth: float
    """Bytes per second that a process sends."""


def seconds(fabric: Machine, traffic: Traffic, processes: int, *, collective: bool) -> float:
    """Predicted time of one iteration with that number of processes on each node."""
    profile = Profile(traffic.ranks, traffic, collective=collective)
    (found,) = rank_k(
        State(fabric), fabric.routing("d-mod-k"), "first-fit", profile, cores=f"fixed:{processes}"
    )
    return found.total or 0.0


def pairs(found: RankKStudy) -> list[BenchmarkPoint]:
    """Bandwidth of a pair between two nodes, by how many pairs send at once."""
    points = []
    for cluster, node in found.nodes.items():
        fabric = machine(cluster, node)
        for count in PROCESSES:
            senders = list(range(count))
            receivers = [count + sender for sender in senders]
            for size in SIZES:
                traffic = Traffic.of(2 * count, senders, receivers, [float(size)] * count)
                taken = seconds(fabric, traffic, count, collective=False)
                points.append(BenchmarkPoint(cluster, count, size, size / taken))
    return points


def alltoall(found: RankKStudy) -> list[BenchmarkPoint]:
    """Bandwidth of a process in MPI_Alltoall on all nodes of a switch, by processes of a node."""
    points = []
    for cluster, node in found.nodes.items():
        fabric = machine(cluster, node)
        for count in PROCESSES:
            ranks = SWITCH[cluster] * count
            for size in TOTALS:
                traffic = Traffic.pattern(f"alltoall(bytes={size})", ranks)
                taken = seconds(fabric, traffic, count, collective=True)
                points.append(BenchmarkPoint(cluster, count, size, size * (ranks - 1) / taken))
    return points


def drawn(
    points: list[BenchmarkPoint],
    title: str,
    lines: Iterable[int],
    of_line: Callable[[BenchmarkPoint], int],
    across: Callable[[BenchmarkPoint], int],
    words: tuple[str, str],
) -> Figure:
    """A panel for each cluster, a line for each value of `of_line`. words: of a line with its value, of the x axis."""
    from topolane.report.style import series
    from topolane.report.with_matplotlib import figure as blank

    clusters = list(dict.fromkeys(point.cluster for point in points))
    made = blank(8.4, 3.6)
    for place, cluster in enumerate(clusters):
        axes = made.add_subplot(1, len(clusters), place + 1)
        for number, value in enumerate(lines):
            own = [point for point in points if point.cluster == cluster and of_line(point) == value]
            rates = [point.bandwidth / 1e6 for point in own]
            axes.plot(
                list(map(across, own)), rates, marker=".", color=series(number), label=words[0].format(value)
            )
        if max(map(across, points)) > max(PROCESSES):
            axes.set_xscale("log", base=2)
            axes.set_xticks([2**10, 2**16, 2**22], ["1 KiB", "64 KiB", "4 MiB"])
        axes.set_ylim(bottom=0)
        axes.set_xlabel(words[1])
        axes.set_title(f"{title}: {cluster}")
    made.axes[0].set_ylabel("MB/s of a process")
    made.axes[-1].legend(loc="best")
    return made


def write(folder: Path, found: RankKStudy) -> None:
    """Both figures and their points."""
    import polars
    from topolane.report.with_matplotlib import drawing

    sent, exchanged = pairs(found), alltoall(found)
    with drawing():
        figures = (
            drawn(
                sent,
                "pairs",
                (1, 2, 4, 8),
                lambda point: point.processes,
                lambda point: point.bytes,
                ("pairs: {}", "bytes of a message"),
            ),
            drawn(
                exchanged,
                "all-to-all",
                TOTALS,
                lambda point: point.bytes,
                lambda point: point.processes,
                ("{:,} bytes to each", "processes of a node"),
            ),
        )
        for name, made in zip(OWN[::2], figures):
            made.savefig(folder / name, dpi=150, metadata={"Software": None})
    for name, points in zip(OWN[1::2], (sent, exchanged)):
        polars.DataFrame([dataclasses.asdict(point) for point in points]).write_csv(folder / name)
