"""The dragonfly at one moment: groups on a circle, nodes in the colours of their jobs, and who may use the cables between groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

from topolane.units import clean, moment, plural

from ..axes import Axes
from ..chart import Figure, LegendEntry
from ..data import MachinePicture, ReportedRun
from ..fat_tree import held
from ..holders import Held
from ..legend import of_nodes
from ..marks import Point
from ..plot import Plot
from ..scale import AxisScale
from ..style import FAINT, MUTED, SHARED
from ..switch_cells import SwitchCells, table, tips, who_meets

NAME = "dragonfly"
TITLE = "Who holds which nodes"
WORDS = (
    "A box is a group, a square in it a router with its nodes. Colours tell jobs apart that span routers; they repeat. "
    "Grey jobs lie on one router and use no link. A line is all cables between two groups: in the colour of the one job that "
    "may use them under minimal routing, or thick and red where two or more jobs may meet. A red bar below nodes: their job may "
    "meet another, there or inside a group; the table names whom. Links inside groups are not drawn."
)
WORDS_OF_MANY = " Cables that no job uses are not drawn."
FEW_GROUPS = 24
"""With more groups, the cables that no job uses would fill the circle."""
SIDE, HEIGHT = 9.6, 9.0
"""Inches."""
RADIUS = 0.8


def words(picture: MachinePicture) -> str:
    """The caption of the picture for this machine."""
    return WORDS + (WORDS_OF_MANY if len(picture.levels[1]) > FEW_GROUPS else "")


def draw(run: ReportedRun, picture: MachinePicture, at: float | None, number: int) -> Plot:
    """The dragonfly of `run` at `at` (seconds since the epoch), by default at its busiest minute."""
    state = held(run, picture, at)
    text = f"{moment(state.time).capitalize()}: {facts(picture, state)}"
    names = {job: f"job {job}" for job in state.size}
    drawn = dragonfly(picture, state, names)
    return Plot(f"{NAME}-{number}", run.label, text, text, drawn, tips(state, names), table(picture, state))


def users_of_pairs(state: Held, picture: MachinePicture) -> dict[tuple[int, int], list[int]]:
    """The jobs that may use the cables between two groups, ascending: those with nodes in both."""
    groups: dict[int, set[int]] = {}
    for group, own in enumerate(picture.levels[1]):
        for job in {job for job in state.holder[own.start : own.end] if job is not None}:
            groups.setdefault(job, set()).add(group)
    users: dict[tuple[int, int], list[int]] = {}
    for job, own_groups in sorted(groups.items()):
        for pair in combinations(sorted(own_groups), 2):
            users.setdefault(pair, []).append(job)
    return users


def facts(picture: MachinePicture, state: Held) -> str:
    """Sentences with the numbers that the picture shows."""
    users = users_of_pairs(state, picture)
    nodes, jobs = plural(picture.nodes, "node"), plural(len(state.size), "job")
    pairs = math.comb(len(picture.levels[1]), 2)
    shared = sum(len(own) > 1 for own in users.values())
    return (
        f"{state.busy:,} of {nodes} in use by {jobs}. Jobs may use the cables between {len(users):,} of {pairs:,} pairs of "
        f"groups; two or more may meet on those of {shared:,}. {who_meets(state)}"
    )


def dragonfly(picture: MachinePicture, state: Held, names: Mapping[int, str]) -> Figure:
    """The picture of one state; `names` are the names of jobs."""
    users = users_of_pairs(state, picture)
    groups = picture.levels[1]
    drawn = Figure(SIDE, HEIGHT + 0.55)
    (axes,) = drawn.grid(1)
    axes.shown = False
    axes.x = AxisScale(-SIDE / HEIGHT, SIDE / HEIGHT)
    axes.y = AxisScale(-1.0, 1.0)
    middles = [_on_circle(place, len(groups), RADIUS) for place in range(len(groups))]
    # Squares side by side on the circle do not overlap if a side is at most their distance over the root of 2.
    half = min(0.17, 0.67 * RADIUS * math.sin(math.pi / max(len(groups), 3)))
    # Inside the corners of all boxes, so that no line is hidden.
    ends = [_on_circle(place, len(groups), RADIUS - 1.35 * half) for place in range(len(groups))]
    _cables(axes, ends, state, users)
    cells = SwitchCells(picture, state)
    for panel, (x, y) in zip(picture.panels.panels, middles):
        cells.add(panel, (x - half, y + half), 2 * half / panel.columns, 2 * half / panel.rows)
    cells.draw(axes)
    if len(groups) <= FEW_GROUPS:
        for group, (x, y) in zip(groups, middles):
            axes.text(
                x,
                y + half + 0.012,
                clean(group.name, 18),
                size=8.0,
                colour=MUTED,
                anchor="middle",
                rise="bottom",
            )
    lines = [LegendEntry("links two jobs may share", SHARED, 2.2)]
    if len(groups) <= FEW_GROUPS:
        lines.insert(0, LegendEntry("cables no job uses", FAINT, 1.0))
    drawn.legend(of_nodes(state, names, picture.switch, *lines), 5, above=False, size=8.0)
    return drawn


def _on_circle(place: int, count: int, radius: float) -> Point:
    """A point of the circle: the first on top, the others clockwise."""
    angle = math.pi / 2 - 2 * math.pi * place / count
    return radius * math.cos(angle), radius * math.sin(angle)


def _cables(axes: Axes, ends: list[Point], state: Held, users: Mapping[tuple[int, int], list[int]]) -> None:
    """Draws the cables between each two groups as one line; those of jobs last."""
    lines: dict[tuple[int, float, str], list[list[Point]]] = {}
    for pair in combinations(range(len(ends)), 2):
        jobs = users.get(pair, [])
        if not jobs and len(ends) > FEW_GROUPS:
            continue
        look = (
            (2, 2.2, SHARED)
            if len(jobs) > 1
            else (1, 1.6, state.colour[jobs[0]])
            if jobs
            else (0, 0.5, FAINT)
        )
        lines.setdefault(look, []).append([ends[pair[0]], ends[pair[1]]])
    for (_, width, colour), drawn in sorted(lines.items()):
        axes.strokes(drawn, colour, width)
