"""Cores per node under contention for the interface (rank k): NPB IS on two clusters.

The paper printed measured seconds for every number k of processes a node. Here every k is predicted
from a machine whose few parameters are calibrated on the smallest rows; what is known of the two
clusters is little, so ASSUMED says what was supposed.
"""

from __future__ import annotations

import dataclasses
import math
from statistics import NormalDist
from typing import TYPE_CHECKING

from topolane._engine import Machine, Profile, State, rank_k

from topolane_studies.judging import figure, missing, within_share
from topolane_studies.rank_k_tables import ETHERNET, ITERATIONS, TABLES, Measured, RankKTable

if TYPE_CHECKING:
    from topolane_studies import PaperRow

TOLERANCE = within_share(0.25)
"""Of a time in seconds; fixed before the first run of the study."""
FIGURES = ("total", "collective", "point_to_point")
"""Of a row."""

BYTES_PER_KEY = 24
"""What IS moves per key and ranking, counted in its source: three reads of the key, one write, and a
count read and written."""
HELD_PER_KEY = 18
"""Bytes: three arrays of 4-byte keys, each half as long again as a process's keys."""
MEMORY_BOUND = 1.1
"""Full nodes count as held by memory where they compute longer by this factor."""

GIGABIT = 1.18e8
"""What TCP leaves of a gigabit a second, bytes per second."""

ASSUMED = [
    "class D has 2^31 keys, as in NPB (2^29 times the least number of ranks, 4): times grow 16-fold",
    "computation is the total less the collectives: the point-to-point seconds (p-p) are waiting in it",
    "processes compute unequally long, by a normal law: p-p is the mean wait for the slowest of P; its spread is that of "
    + "4x1 of each table. Chosen with the tables in view; what is held out is the other rows",
    "the Gigabit cluster has two switches of 8 nodes joined by one cable, for only so do 16 nodes take "
    + "thrice as long as 8; 8 GB a node",
    "the InfiniBand cluster has 4 nodes on one switch and 30 GB/s of memory bandwidth; 24 GB a node, and "
    + "any value from 19.4 to 38.6 does the same",
    "MPI_Alltoallv goes in rounds around the ring of ranks without waiting between them, copies inside "
    + "a node going on meanwhile",
    "the form of the model (rounds, the cable, what is waiting) was chosen with these tables in view; what "
    + "is held out is the figures of the rows that no parameter was taken from",
]


@dataclasses.dataclass(frozen=True)
class CalibratedNode:
    """The calibrated inside of a cluster's nodes."""

    flow: float
    """Bytes per second of one message alone."""
    copy: float
    """Bytes per second from one process to another of the node."""
    memory: float
    """Bytes per second to and from memory."""
    penalty: str
    """As machine files have it."""
    trunk: float
    """Bytes per second of the cable between the switches."""


def calibrate(table: RankKTable) -> CalibratedNode:
    """Machine parameters from the smallest rows of the class C table of a cluster.

    One message alone: 4x1, where each node sends three quarters of its keys. A copy: 1x4. Memory:
    what 1x4 computes longer than 4x1, if it does. The cable between switches: 16x1, the smallest row
    that crosses it, where every node sends half of its keys over it. Penalties are those published.
    """
    apart, full = table.row("4x1"), table.row("1x4")
    per_pair = 4 * table.keys / 16 * ITERATIONS
    flow = 3 * per_pair / apart.collective
    copy = 3 * per_pair / full.collective
    slower = full.computation / apart.computation
    memory = BYTES_PER_KEY * table.keys * ITERATIONS / full.computation if slower > MEMORY_BOUND else 3e10
    if table.cluster != ETHERNET:
        return CalibratedNode(flow, copy, memory, '{ model = "infiniband" }', GIGABIT)
    trunk = 4 * per_pair / table.row("16x1").collective
    return CalibratedNode(flow, copy, memory, '{ model = "ethernet" }', trunk)


def imbalance(table: RankKTable) -> float:
    """Standard deviation of a process's computation, as a share of it; from the p-p seconds of 4x1."""
    row = table.row("4x1")
    return row.point_to_point / (row.computation * slowest_of(row.processes))


def slowest_of(processes: int) -> float:
    """By how many standard deviations the slowest of `processes` exceeds the mean (Blom 1958)."""
    return NormalDist().inv_cdf((processes - 0.375) / (processes + 0.25))


CALIBRATED = {
    ("Gigabit Ethernet", "C"): {"4x1", "1x4", "16x1"},
    ("InfiniBand QDR", "C"): {"4x1", "1x4"},
    ("InfiniBand QDR", "D"): {"4x1"},
}
"""Rows that a parameter was taken from; of class D only the core-seconds and the imbalance."""
GAVE = "a parameter was taken from this row"


def gave(table: RankKTable, row: Measured, name: str) -> bool:
    """Whether a parameter was taken from a figure of a row, or from the greater part of it."""
    if name == "point_to_point":
        return row.shape == "4x1"
    if name == "collective" and table.name == "D":
        return False
    return row.shape in CALIBRATED[table.cluster, table.name]


def machine(cluster: str, node: CalibratedNode) -> Machine:
    """A cluster as a machine."""
    ethernet = cluster == ETHERNET
    interface = GIGABIT if ethernet else 3.2e9
    site = (
        f"children = [8, 2]\nbandwidth = [{interface}, {node.trunk}]"
        if ethernet
        else f"children = [4]\nbandwidth = {interface}"
    )
    text = f"""name = "{cluster}"
[node]
sockets = 2
cores-per-socket = 4
memory = {(8 if ethernet else 24) << 30}
nic-bandwidth = {interface}
flow-bandwidth = {node.flow}
latency = {5e-5 if ethernet else 2e-6}
penalty = {node.penalty}
copy-bandwidth = {node.copy}
memory-bandwidth = {node.memory}
[[site]]
name = "cluster"
{site}
"""
    return Machine.parse(text, f"{cluster}.toml", "toml")


@dataclasses.dataclass(frozen=True)
class Predicted:
    """A row of a table, predicted; seconds, or why it does not fit."""

    row: Measured
    total: float
    collective: float
    point_to_point: float
    """Waiting for the slowest process; the message itself is 4 bytes."""
    refusal: str | None
    why: str | None


def predict(table: RankKTable, node: CalibratedNode) -> list[Predicted]:
    """Every row of a table; an empty machine, nodes in order, links by max-min fairness."""
    fabric = machine(table.cluster, node)
    routing = fabric.routing("d-mod-k")
    core_seconds = 4 * table.row("4x1").computation
    predicted = []
    for row in table.rows:
        program = Profile(
            row.processes,
            f"is(class={table.name})",
            iterations=ITERATIONS,
            core_seconds=core_seconds,
            memory_traffic=BYTES_PER_KEY * table.keys * ITERATIONS,
            memory=HELD_PER_KEY * table.keys // row.processes,
        )
        (rank,) = rank_k(State(fabric), routing, "first-fit", program, cores=f"fixed:{row.k}")
        total, collective = (math.inf if s is None else s for s in (rank.total, rank.collective))
        waiting = imbalance(table) * slowest_of(row.processes) * (total - collective)
        predicted.append(Predicted(row, total, collective, waiting, rank.refusal, rank.why))
    return predicted


@dataclasses.dataclass(frozen=True)
class RankKStudy:
    """All tables predicted."""

    nodes: dict[str, CalibratedNode]
    predicted: dict[RankKTable, list[Predicted]]

    def chosen(self, table: RankKTable, processes: int) -> Measured:
        """The measured row that is predicted to be the shortest."""
        of_size = [p for p in self.predicted[table] if p.row.processes == processes]
        return min(of_size, key=lambda p: p.total).row


def study(change: dict[str, float | str] | None = None) -> RankKStudy:
    """Calibrates both clusters and predicts the three tables; `change` replaces parameters of `CalibratedNode`."""
    nodes = {table.cluster: calibrate(table) for table in TABLES if table.name == "C"}
    if change:
        # A mapping of field names; dataclasses checks them.
        nodes = {name: dataclasses.replace(node, **change) for name, node in nodes.items()}  # type: ignore[arg-type]
    return RankKStudy(nodes, {table: predict(table, nodes[table.cluster]) for table in TABLES})


def cells(table: RankKTable, p: Predicted) -> list[PaperRow]:
    """A row of the paper with ours: total, collective, point-to-point. A row that is refused agrees in nothing."""
    found = []
    for name in FIGURES:
        paper = getattr(p.row, name)
        what = f"{table.cluster} {table.name}, {p.row.shape}: {name.replace('_', '-')} (s)"
        if p.refusal is not None:
            found.append(missing(what, f"{paper:,.2f}", f"refused: {p.why}", value=True))
            continue
        given = GAVE if gave(table, p.row, name) else ""
        why = computed(p) if name == "total" and not TOLERANCE.holds(p.total, paper) else ""
        found.append(figure(what, paper, getattr(p, name), TOLERANCE, why=why, given=given))
    return found


def computed(p: Predicted) -> str:
    """What ours would be if it computed as long as measured: whether the collectives are what is wrong."""
    return f"with the measured {p.row.computation:.2f} s of computation ours is {p.collective + p.row.computation:.2f}"


def rows(study: RankKStudy) -> list[PaperRow]:
    """All figures of the tables, then the choices and the orders."""
    from topolane_studies import rank_k_choices

    tables = [
        cell for table, predicted in study.predicted.items() for p in predicted for cell in cells(table, p)
    ]
    return [*tables, *rank_k_choices.rows(study)]


def rows_for_summary(quick: bool, workers: int | None) -> list[PaperRow]:
    """What `topolane paper rank-k` judges; it takes seconds, so both arguments are the same to it."""
    return rows(study())
