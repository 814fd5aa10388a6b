"""The load of each link, drawn on the tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from topolane.units import clean, percent

from .. import rail_lines
from ..axes import Axes
from ..chart import Figure
from ..data import MachinePicture
from ..heat import HeatScale, WithLinkLoads, by_level, level_words, most_loaded
from ..link_cells import GAP, HALF, Strip, block_of, cells, strips_of, with_ports
from ..plot import Plot
from ..scale import AxisScale
from ..style import HEAT, IDLE, MUTED, SURFACE
from ..tree_layout import TreeLayout, TreeRow

NAME = "link-heat"
TITLE = "How loaded the links are"
WORDS = (
    "A cell is one direction of one link. Its colour is the share of the link's capacity that the run's "
    "jobs used, in the mean over the makespan. At the bottom a column is a leaf, with the links of its "
    "nodes in order, the first on top; the strip above holds the leaf's links to the pod, and the one "
    "above that a pod's links to the core, a column for each of its switches. The left half of a column "
    "is the way up, the right half the way down. Where there is no cell the cable is missing. All runs "
    "have the same colours."
)
WORDS_OF_RAILS = " The coloured lines under the columns of switches are rails; a node's links are in the order of its leaf's rails."
KEY = 0.62  # inches


def words(picture: MachinePicture) -> str:
    """The caption of the picture for this machine."""
    if picture.wiring != "tree":
        return f"Loads are drawn on trees only, and this machine is a {picture.wiring}. `links.csv` of the run has them."
    return WORDS + (WORDS_OF_RAILS if picture.rails else "")


def draw(run: WithLinkLoads, picture: MachinePicture, scale: HeatScale, number: int) -> Plot:
    """The link loads of `run`, in the classes of `scale`."""
    links = with_ports(run.links).with_columns(kind=scale.classes())
    layout, strips = strips_of(links, picture)
    heights = [layout.row_height] * len(layout.rows) + [KEY]
    drawn = Figure(9.6, sum(heights))
    *axes, key = drawn.grid(len(heights), 1, heights)
    for place, (one, row) in enumerate(zip(axes, layout.rows)):
        one.shown = False
        one.x = AxisScale(-max(layout.margin, 0.5), layout.width + 0.5)
        one.y = AxisScale(layout.bottom, layout.top)
        for level, strip in enumerate(strips):
            for kind, boxes in cells(links, level, strip, layout, row, picture).items():
                colour = HEAT[kind - 1] if kind else IDLE
                one.boxes(boxes.tolist(), colour, f"load-{place}-{level}-{kind}")
        _grid(one, layout, strips, picture)
        _bars(one, layout, row, picture)
        _rails(one, layout, row, strips, picture)
        _names(one, layout, row, strips, picture)
    _key(key, scale)
    if picture.rails:
        drawn.legend(rail_lines.legend(picture), 8, above=False, size=8.0)
    return Plot(
        f"{NAME}-{number}",
        run.label,
        _facts(run, picture),
        _facts(run, picture),
        drawn,
        _tips(layout, strips, picture, scale),
        [["most loaded", "from and to", "direction", "mean load"], *most_loaded(run, picture)],
        "The most loaded links",
    )


def _facts(run: WithLinkLoads, picture: MachinePicture) -> str:
    rows = [
        f"{words} {percent(mean, 2)} / {percent(most, 2)}" for words, mean, most in by_level(run, picture)
    ]
    return f"Mean load of all links / load of the most loaded: {', '.join(rows)}."


def _tips(
    layout: TreeLayout, strips: Sequence[Strip], picture: MachinePicture, scale: HeatScale
) -> dict[str, str]:
    return {
        f"load-{place}-{level}-{kind}": f"{level_words(picture, level)}: {scale.words(kind)}"
        for place in range(len(layout.rows))
        for level in range(len(strips))
        for kind in range(len(HEAT) + 1)
    }


def _grid(axes: Axes, layout: TreeLayout, strips: Sequence[Strip], picture: MachinePicture) -> None:
    """Draws lines between cells in the page's background colour."""
    places = [-float(node) for node in range(1, picture.leaf)]
    for strip in strips[1:]:
        places += [float(y) for y in numpy.linspace(strip.low, strip.high, strip.rows + 1)[1:-1]]
    lines = [((-0.5, y), (layout.width, y)) for y in places]
    axes.strokes(lines, SURFACE, 0.5 if layout.cell_points > 3.5 else 0.25)


def _bars(axes: Axes, layout: TreeLayout, row: TreeRow, picture: MachinePicture) -> None:
    """Draws a bar for the switches of each group, above the links that lead up to it."""
    gap = GAP / layout.cell_points
    leaves = (
        row.leaves if picture.rails_at(0) < 2 else []
    )  # switches of rails are drawn as bars in the rails' colours
    ends = [(layout.x[0][leaf], layout.x[0][leaf], 0.5 * gap) for leaf in leaves]
    inside = set(row.leaves)
    for level in range(1, len(picture.levels)):
        for group in picture.levels[level]:
            inside_group = [
                layout.x[0][index]
                for index in inside
                if group.start <= picture.levels[0][index].start < group.end
            ]
            if inside_group:
                ends.append((min(inside_group), max(inside_group), layout.y[level]))
    for first, last, y in ends:
        width = 1.6 if y < layout.y[-1] and y < gap else 3.0
        axes.strokes([((first - HALF, y), (last + HALF, y))], MUTED, width)


def _rails(
    axes: Axes, layout: TreeLayout, row: TreeRow, strips: Sequence[Strip], picture: MachinePicture
) -> None:
    """Draws a line in the colour of each rail under a group's links, along the columns of the rail's
    switches.
    """
    for level, strip in enumerate(strips[1:], start=1):
        if (rails := picture.rails_at(level - 1)) < 2:
            continue
        y = strip.low - 0.45 * GAP / layout.cell_points
        spans = numpy.array([layout.spans[level - 1][group] for group in row.groups[level - 1]])
        left, width = block_of(*spans.reshape(-1, 2).T, strip.columns, level)
        for rail in range(rails):
            first, end = (-(-number * strip.columns // rails) for number in (rail, rail + 1))
            ends = numpy.stack([left + first * width, left + end * width], axis=1).tolist()
            lines = [((low, y), (high, y)) for low, high in ends]
            axes.strokes(lines, rail_lines.colour(rail), 1.8, f"rail-{level}-{rail}")


def _names(
    axes: Axes, layout: TreeLayout, row: TreeRow, strips: Sequence[Strip], picture: MachinePicture
) -> None:
    middles = [-picture.leaf / 2, *((strip.low + strip.high) / 2 for strip in strips[1:])]
    for level, y in enumerate(middles):
        text = level_words(picture, level).replace(" to ", "\nto ")
        axes.text(-0.5 - 0.012 * layout.width, y, text, size=8.0, colour=MUTED, anchor="end")
    top = len(picture.levels) - 1
    if top > 1 and layout.named:
        for group in row.groups[top - 1]:
            name = clean(picture.levels[top - 1][group].name, 18)
            x, y = layout.x[top - 1][group], layout.bottom + 0.2
            axes.text(x, y, name, size=8.0, colour=MUTED, anchor="middle", rise="bottom")


def _key(axes: Axes, scale: HeatScale) -> None:
    """Draws the key: the colours of the load classes, with the class limits beneath."""
    for kind, colour in enumerate((IDLE, *HEAT)):
        x = kind if kind else -1.6
        width = 1.0 if kind else 1.4
        axes.boxes([(x, x + width, 0.0, 1.0)], colour)
    for index in range(len(HEAT) + 1):
        text = scale.edge(index).removesuffix(" %") if index < len(HEAT) else scale.edge(index)
        axes.text(1.0 + index, -0.25, text, size=8.0, anchor="middle", rise="top")
    axes.text(-0.9, -0.25, "no traffic", size=8.0, anchor="middle", rise="top")
    axes.text(10.0, 0.5, "of its capacity: left half up, right half down", size=8.0)
    axes.x, axes.y = AxisScale(-3.0, 17.0), AxisScale(-1.6, 1.4)
    axes.shown = False
