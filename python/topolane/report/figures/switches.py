"""A torus, a HyperX or a pod of cubes at one moment: a panel for each plane or cube, nodes in the colours of their jobs."""

from __future__ import annotations

from collections.abc import Mapping

from topolane.panels import Panel
from topolane.units import clean, moment, plural

from ..chart import INCH, Figure, LegendEntry
from ..data import MachinePicture, ReportedRun
from ..fat_tree import held
from ..holders import Held
from ..legend import of_nodes
from ..plot import Plot
from ..scale import AxisScale
from ..style import FAINT, MUTED, SHARED
from ..switch_cells import SwitchCells, extent, table, tips, who_meets

NAME = "switches"
TITLE = "Who holds which nodes"
ROUTINGS = {"torus": " in the order of the dimensions", "HyperX": " by any shortest route"}
WIDTH = 9.6
"""Inches."""
TALLEST = 8.6 * INCH
"""Of all panels, if their cells may be smaller."""
CELLS = (26.0, 22.0, 18.0, 15.0, 12.5, 10.5, 9.0, 7.5, 6.5, 5.5, 4.7, 4.0, 3.4, 2.8)
"""Sides of a cell that are tried, in points."""
BETWEEN = 9.0
"""Distance between panels, in points."""
TITLED = 30.0
"""The least width of a panel, in points, for its name above it."""
LETTERS = 7.5

Places = list[tuple[Panel, float, float]]
"""Each panel with its left and its top, in points."""


def words(picture: MachinePicture) -> str:
    """The caption of the picture for this machine."""
    switch, kind = picture.switch, picture.panels.kind
    layers = ", its layers side by side" if picture.panels.block[0] else ""
    return (
        f"A panel is a {kind}{layers}, a square in it a {switch} with its nodes. Colours tell jobs apart that span {_plural(switch)}; "
        f"they repeat. Grey jobs lie on one {switch} and use no link. A red bar below nodes: their job may meet another on a link if "
        f"messages go{ROUTINGS.get(picture.wiring, '')}; the table names whom. Links are not drawn."
    )


def _plural(switch: str) -> str:
    return "switches" if switch == "switch" else switch + "s"


def draw(run: ReportedRun, picture: MachinePicture, at: float | None, number: int) -> Plot:
    """The machine of `run` at `at` (seconds since the epoch), by default at its busiest minute."""
    state = held(run, picture, at)
    text = f"{moment(state.time).capitalize()}: {facts(picture, state)}"
    names = {job: f"job {job}" for job in state.size}
    drawn = switches(picture, state, names)
    return Plot(f"{NAME}-{number}", run.label, text, text, drawn, tips(state, names), table(picture, state))


def facts(picture: MachinePicture, state: Held) -> str:
    """A sentence with the numbers that the picture shows."""
    nodes, jobs = plural(picture.nodes, "node"), plural(len(state.size), "job")
    return f"{state.busy:,} of {nodes} in use by {jobs}. {who_meets(state)}"


def switches(picture: MachinePicture, state: Held, names: Mapping[int, str]) -> Figure:
    """The picture of one state; `names` are the names of jobs."""
    cell, places, tall = _laid_out(picture)
    drawn = Figure(WIDTH, tall / INCH + 0.55)
    (axes,) = drawn.grid(1)
    axes.shown = False
    axes.x, axes.y = AxisScale(0.0, WIDTH * INCH), AxisScale(-tall, 0.0)
    cells = SwitchCells(picture, state)
    for panel, x, y in places:
        cells.add(panel, (x, -y), cell, cell)
        if panel.name and extent(panel, picture.panels.block)[0] * cell >= TITLED:
            axes.text(x, 2.0 - y, clean(panel.name, 18), size=LETTERS, colour=MUTED, rise="bottom")
    axes.strokes(cells.edge(), FAINT, 0.6)
    cells.draw(axes)
    bars = LegendEntry("job may meet another on a link", SHARED, 2.2)
    drawn.legend(of_nodes(state, names, picture.switch, bars), 5, above=False, size=8.0)
    return drawn


def _laid_out(picture: MachinePicture) -> tuple[float, Places, float]:
    """The side of a cell, the places of the panels, and the height of all, with the largest cells that fit."""
    for cell in CELLS:
        places, tall, wide = _placed(picture, cell)
        if tall <= TALLEST and wide <= WIDTH * INCH:
            break
    return cell, places, tall


def _placed(picture: MachinePicture, cell: float) -> tuple[Places, float, float]:
    places: Places = []
    x, y, tallest, widest = 0.0, 0.0, 0.0, 0.0
    for panel in picture.panels.panels:
        across, down = (cells * cell for cells in extent(panel, picture.panels.block))
        title = LETTERS * 1.4 if panel.name and across >= TITLED else 0.0
        if x and x + across > WIDTH * INCH - 8.0:
            x, y, tallest = 0.0, y + tallest + BETWEEN, 0.0
        places.append((panel, x, y + title))
        tallest, widest = max(tallest, title + down), max(widest, x + across)
        x += across + BETWEEN
    return places, y + tallest + BETWEEN, widest + 8.0
