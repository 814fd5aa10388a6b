"""Panels of switches, drawn: each cell has the nodes of a switch in the colours of their jobs, and below them a red bar if they may meet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from topolane.panels import Panel
from topolane.units import clean, plural

from .axes import Axes
from .data import MachinePicture
from .holders import Held
from .legend import LISTED
from .marks import Box, Point
from .style import SHARED, SURFACE

BAR = 0.16
"""Height of the bar of a switch, as a part of its cell."""
INSET = 0.07
"""Distance from a cell's edge to its nodes, as a part of the cell."""
LAYERS = 0.6
"""Distance between layers of a panel, in cells."""
MEETING = "meeting"
"""The id of the bars."""
Corner = tuple[float, float]
"""The left and the top of a panel."""


def extent(panel: Panel, block: tuple[int, int]) -> tuple[float, float]:
    """The width and the height of a panel, in cells."""
    return _shift(panel.columns - 1, block[0]) + 1, _shift(panel.rows - 1, block[1]) + 1


def _shift(place: int, layer: int) -> float:
    """The start of a column or row, in cells."""
    return place + (place // layer * LAYERS if layer else 0.0)


class SwitchCells:
    """Collects the cells of panels and draws them, with one path for each holder."""

    def __init__(self, picture: MachinePicture, state: Held) -> None:
        self._picture, self._state = picture, state
        self._boxes: dict[int | str, list[Box]] = {}
        self._frames: list[Box] = []
        self._bars: list[Box] = []
        self._meeting = sharing_leaves(picture, state)
        self._columns = math.ceil(math.sqrt(picture.leaf))
        self._rows = math.ceil(picture.leaf / self._columns)
        self._foot = BAR + INSET / 2 if self._meeting else 0.0

    def add(self, panel: Panel, corner: Corner, width: float, height: float) -> None:
        """Adds the cells of a panel of which a cell has this width and height; `corner` is its top left."""
        block = self._picture.panels.block
        left, top = corner
        across, down = extent(panel, block)
        self._frames.append((left, left + across * width, top - down * height, top))
        for leaf, cell in zip(panel.leaves, panel.cells):
            row, column = divmod(cell, panel.columns)
            x, y = left + _shift(column, block[0]) * width, top - _shift(row, block[1]) * height
            self._nodes(leaf, x + INSET * width, y - INSET * height, width, height)
            if leaf in self._meeting:
                foot = y - (1 - INSET) * height
                self._bars.append((x + INSET * width, x + (1 - INSET) * width, foot, foot + BAR * height))

    def _nodes(self, leaf: int, left: float, top: float, width: float, height: float) -> None:
        own = self._picture.levels[0][leaf]
        across = (1 - 2 * INSET) * width / self._columns
        down = (1 - 2 * INSET - self._foot) * height / self._rows
        # A line between nodes only where it can be seen.
        line = 0.06 if len(own) > 1 else 0.0
        for place, node in enumerate(range(own.start, own.end)):
            row, column = divmod(place, self._columns)
            x, y = left + column * across, top - row * down
            box = (x, x + (1 - line) * across, y - (1 - line) * down, y)
            self._boxes.setdefault(self._state.holder_of(node), []).append(box)

    def draw(self, axes: Axes) -> None:
        """Draws everything that was added."""
        axes.boxes(self._frames, SURFACE)
        for holder in sorted(self._boxes, key=str):
            gid = holder if isinstance(holder, str) else f"job-{holder}"
            axes.boxes(self._boxes[holder], self._state.colour_of(holder), gid)
        if self._bars:
            axes.boxes(self._bars, SHARED, MEETING)

    def edge(self) -> list[list[Point]]:
        """The frames of the panels."""
        return [
            [(left, low), (right, low), (right, high), (left, high), (left, low)]
            for left, right, low, high in self._frames
        ]


def sharing_leaves(picture: MachinePicture, state: Held) -> set[int]:
    """The switches with a node of a job that may use a link together with another job."""
    return {
        index
        for index, leaf in enumerate(picture.levels[0])
        if any(job in state.met for job in state.holder[leaf.start : leaf.end])
    }


def who_meets(state: Held) -> str:
    """How many jobs may meet another one, as a sentence."""
    jobs = len(state.met)
    return (
        f"{plural(jobs, 'job')} may meet another on a link." if jobs else "No job may meet another on a link."
    )


def tips(state: Held, names: Mapping[int, str]) -> dict[str, str]:
    """The hover texts of the jobs' cells."""
    found = {}
    for job, nodes in state.size.items():
        others = len(state.met.get(job, ()))
        meets = f", may meet {plural(others, 'other job')} on links" if others else ""
        found[f"job-{job}"] = f"{names[job]}: {plural(nodes, 'node')}{meets}"
    return found | {MEETING: "nodes of jobs that may meet another on a link"}


def table(picture: MachinePicture, state: Held) -> list[list[str]]:
    """A row for each job that spans switches, largest first: its nodes, its panels, and whom it may meet."""
    within: dict[int, list[str]] = {}
    for panel in picture.panels.panels:
        own = {
            job
            for leaf in panel.leaves
            for job in state.holder[picture.levels[0][leaf].start : picture.levels[0][leaf].end]
            if job is not None
        }
        for job in own:
            within.setdefault(job, []).append(clean(panel.name, 18) or "the only one")
    rows = [
        [
            str(job),
            f"{state.size[job]:,}",
            _some(within.get(job, [])),
            _some(map(str, state.met.get(job, ()))),
        ]
        for job in state.spanning
    ]
    return [["job", "nodes", f"{picture.panels.kind}s", "may meet on links"], *rows]


def _some(names: Sequence[str] | map[str]) -> str:
    every = list(names)
    more = f" and {len(every) - LISTED} more" if len(every) > LISTED else ""
    return (", ".join(every[:LISTED]) or "–") + more
