"""The three tables of the rank-k paper: NPB IS, seconds in all (collectives, point-to-point)."""

from __future__ import annotations

import dataclasses
import functools

ETHERNET, INFINIBAND = "Gigabit Ethernet", "InfiniBand QDR"
ITERATIONS = 10
"""Rankings of a run."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """A row as printed: seconds."""

    shape: str
    """Nodes x processes of each."""
    total: float
    collective: float
    point_to_point: float

    @functools.cached_property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.shape.split("x")[0])

    @functools.cached_property
    def k(self) -> int:
        """Processes of each node."""
        return int(self.shape.split("x")[1])

    @property
    def processes(self) -> int:
        """P."""
        return self.nodes * self.k

    @property
    def computation(self) -> float:
        """What is not collectives: computation and waiting."""
        return self.total - self.collective


@dataclasses.dataclass(frozen=True)
class RankKTable:
    """One table: a cluster and a class."""

    cluster: str
    name: str
    keys: int
    rows: tuple[Measured, ...]

    def row(self, shape: str) -> Measured:
        """The row of that shape."""
        return next(row for row in self.rows if row.shape == shape)

    def sizes(self) -> list[int]:
        """Every P."""
        return sorted({row.processes for row in self.rows})

    def best(self, processes: int) -> Measured:
        """The row of P that ran shortest."""
        return min((row for row in self.rows if row.processes == processes), key=lambda row: row.total)


def _table(cluster: str, name: str, keys: int, *rows: tuple[str, float, float, float]) -> RankKTable:
    return RankKTable(cluster, name, keys, tuple(Measured(*row) for row in rows))


TABLES = (
    _table(
        ETHERNET,
        "C",
        2**27,
        ("1x4", 14.11, 5.99, 1.32),
        ("2x2", 20.74, 14.36, 1.23),
        ("4x1", 18.12, 12.1, 1),
        ("1x8", 13.31, 6.72, 1.92),
        ("2x4", 17.3, 13.4, 1),
        ("4x2", 15.48, 12.3, 1.07),
        ("8x1", 10.79, 7.78, 1.13),
        ("2x8", 16.58, 13.72, 1.78),
        ("4x4", 13.58, 11.96, 0.95),
        ("8x2", 10.6, 9.13, 0.88),
        ("16x1", 30.2, 28.26, 0.71),
        ("4x8", 13.9, 12.89, 1.13),
        ("8x4", 9.83, 9.06, 0.67),
        ("16x2", 30.83, 30.09, 0.65),
        ("8x8", 15.15, 14.73, 0.54),
        ("16x4", 48.77, 48.41, 3.12),
    ),
    _table(
        INFINIBAND,
        "C",
        2**27,
        ("1x4", 5.19, 0.98, 0.94),
        ("2x2", 5.09, 1, 0.94),
        ("4x1", 4.81, 0.78, 0.94),
        ("1x8", 2.8, 0.63, 0.67),
        ("2x4", 6.54, 2.5, 1.41),
        ("4x2", 2.96, 0.75, 0.68),
        ("2x8", 5.31, 3.22, 0.95),
        ("4x4", 5.18, 3.04, 0.93),
    ),
    _table(
        INFINIBAND,
        "D",
        2**31,
        ("1x4", 6360, 3714, 724),
        ("2x2", 109.12, 14.23, 25.76),
        ("4x1", 99.83, 11.01, 18.49),
        ("1x8", 7121, 3506, 514),
        ("2x4", 112.31, 19.19, 31.82),
        ("4x2", 55.88, 11.3, 13.73),
        ("2x8", 61.86, 17.39, 16.86),
        ("4x4", 58.83, 15.03, 16.71),
    ),
)
