"""Loads of the links of runs: load classes that all runs of a page share, and names of links.

The load of a link is the part of its capacity that the run's jobs used in one direction, averaged over the
makespan. Links are those of `links.csv`: level 0 joins a node to its leaf.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import polars

from topolane.units import percent

from .data import MachinePicture
from .style import HEAT

NICE = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
LISTED = 5


class WithLinkLoads(Protocol):
    """An object with link loads, such as a run."""

    @property
    def label(self) -> str:
        """The name of the run."""

    @property
    def links(self) -> polars.DataFrame | None:
        """One row per direction of each link, as in `links.csv`."""


@dataclass(frozen=True)
class HeatScale:
    """Load classes of width `step`: class 0 for no traffic, class 1 for more than 0 up to `step`, and so on."""

    step: float

    @classmethod
    def of(cls, runs: Sequence[WithLinkLoads]) -> HeatScale:
        """The smallest round step with which the classes cover every link of every run."""
        most = max(
            (run.links["mean_load"].max() or 0.0 for run in runs if run.links is not None), default=0.0
        )
        least = max(most / len(HEAT), 1e-6)
        decade = 10.0 ** math.floor(math.log10(least))
        return cls(next(decade * nice for nice in NICE if decade * nice * (1 + 1e-9) >= least))

    def classes(self) -> polars.Expr:
        """The class of each `mean_load`."""
        return (polars.col("mean_load") / self.step - 1e-9).ceil().clip(0, len(HEAT)).cast(polars.Int64)

    def edge(self, index: int) -> str:
        """The upper limit of a class, as text: `5 %`."""
        return f"{100 * self.step * index:.3g} %"

    def words(self, index: int) -> str:
        """The range of a class, as text: `5 % to 10 %`."""
        return f"{self.edge(index - 1)} to {self.edge(index)}" if index else "no traffic"


def level_words(picture: MachinePicture, level: int) -> str:
    """The ends of the links of a level, as text: `node to leaf`, `leaf to pod`, `pod to core`."""
    lower = "node" if level == 0 else picture.level_name(level - 1)
    is_top = level == len(picture.levels) - 1 and level > 0
    return f"{lower} to {'core' if is_top else picture.level_name(level)}"


def by_level(run: WithLinkLoads, picture: MachinePicture) -> list[tuple[str, float, float]]:
    """For each level, from the nodes up: the ends of its links, their mean load and the highest load."""
    loads = run.links.group_by("level").agg(
        polars.col("mean_load").mean().alias("mean"), polars.col("mean_load").max().alias("most")
    )
    rows = {level: (mean, most) for level, mean, most in loads.iter_rows()}
    found = [(level_words(picture, int(level)), *rows[level]) for level in sorted(rows) if level.isdigit()]
    return found + ([("site to site", *rows["wan"])] if "wan" in rows else [])


def most_loaded(run: WithLinkLoads, picture: MachinePicture) -> list[list[str]]:
    """The most loaded links, one row each: name, destination, direction and load."""
    shape = _widths(run.links)
    order = run.links.sort("mean_load", "link", "direction", descending=[True, False, True])
    rows = []
    for link in order.head(LISTED).iter_rows(named=True):
        rows.append([*_name(link, picture, shape), link["direction"], percent(link["mean_load"], 2)])
    return rows


def _widths(links: polars.DataFrame) -> dict[str, tuple[int, int, int]]:
    """For each level: the largest numbers of switches per group, of parents and of parallel cables."""
    most = links.group_by("level").agg(polars.col("switch", "parent", "cable").max().fill_null(0) + 1)
    return {level: tuple(sizes) for level, *sizes in most.iter_rows()}


def _name(
    link: dict[str, str | int | float], picture: MachinePicture, shape: dict[str, tuple[int, int, int]]
) -> tuple[str, str]:
    if link["level"] == "wan":
        return f"link {link['link']}", "between sites"
    level, group = int(link["level"]), link["group"]
    if level == 0:
        leaf = next(leaf for leaf in picture.levels[0] if leaf.start <= group < leaf.end)
        name = f"node {group} of {leaf.name}"
    else:
        name = picture.levels[level - 1][group].name
    switches, parents, cables = shape[link["level"]]
    name += f", switch {link['switch']}" if switches > 1 else ""
    way = level_words(picture, level)
    way += f", parent {link['parent']}" if parents > 1 else ""
    return name, way + (f", cable {link['cable']}" if cables > 1 else "")
