"""The tree at one moment: nodes in the colours of their jobs, uplinks that two jobs may share in red (SC'18)."""

from __future__ import annotations

from collections.abc import Mapping

from topolane.units import clean, moment, plural

from .. import legend, rail_lines
from ..axes import Axes
from ..chart import Figure, LegendEntry
from ..data import MachinePicture, ReportedRun
from ..fat_tree import held
from ..holders import Held
from ..marks import Box
from ..plot import Plot
from ..scale import AxisScale
from ..style import FAINT, MUTED, SHARED, SURFACE
from ..tree_layout import TreeLayout, TreeRow, lay_out

NAME = "fat-tree"
TITLE = "Who holds which nodes"
WORDS = (
    "A column is a leaf, its cells the nodes in order. Colours tell jobs apart that span leaves; they "
    "repeat, but neighbours differ. Grey jobs lie inside one leaf and use no link. Above each leaf its "
    "links up to the pod, above each pod those to the core, drawn as one line: in the colour of the one "
    "job that may use them, or thick and red where two or more jobs may meet, whatever the routing; lines side by "
    "side are jobs that each keep to links of their own. Where the pods take several rows, the core is drawn on each."
)
WORDS_OF_RAILS = (
    " A link of several rails is a line for each, in the rail's colour, pale where no job uses it. The bar at the foot of the lines says "
    "who uses the links of all these rails: grey for none, a job's colour, or red. Bars of switches have the colours of rails up to "
    "where the rails meet."
)
SPREAD = 0.8
"""Width, in leaves, over which the lines of jobs with links of their own are spread."""


def words(picture: MachinePicture) -> str:
    """The caption of the picture for this machine."""
    return WORDS + (WORDS_OF_RAILS if picture.rails else "")


def draw(run: ReportedRun, picture: MachinePicture, at: float | None, number: int) -> Plot:
    """The tree of `run` at `at` (seconds since the epoch), by default at its busiest minute."""
    state = held(run, picture, at)
    names = {job: f"job {job}" for job in state.size}
    words = f"{moment(state.time).capitalize()}: {facts(picture, state)}"
    tips = {f"job-{job}": f"job {job}: {plural(nodes, 'node')}" for job, nodes in state.size.items()}
    tips |= rail_lines.tips(picture) if picture.rails else {}
    return Plot(f"{NAME}-{number}", run.label, words, words, tree(picture, state, names), tips)


def tree(picture: MachinePicture, state: Held, names: Mapping[int, str]) -> Figure:
    """The tree in one state, of a run or of a live system; `names` are the names of jobs."""
    layout = lay_out(picture)
    if picture.rails:
        step = layout.y[1] - layout.y[0] if len(layout.y) > 1 else 0.0
        layout = lay_out(picture, rail_lines.room(picture, layout.cell_points, step))
    drawn = Figure(9.6, len(layout.rows) * layout.row_height + 0.55)
    for axes, row in zip(drawn.grid(len(layout.rows)), layout.rows):
        axes.shown = False
        # The wider right side has space for the number of jobs at the last pod.
        axes.x = AxisScale(-layout.margin, 1.04 * layout.width + 0.5)
        axes.y = AxisScale(layout.bottom, layout.top)
        _cells(axes, row, layout, picture, state)
        _links(axes, row, layout, picture, state)
    width = 5.0 if picture.rails else 2.6
    lines = (
        LegendEntry("links no job uses", FAINT, width / 2.6),
        LegendEntry("links two jobs may share", SHARED, width),
    )
    entries = [*legend.of_nodes(state, names, "leaf", *lines), *rail_lines.legend(picture)]
    drawn.legend(entries, 5, above=False, size=8.0)
    return drawn


def facts(picture: MachinePicture, state: Held) -> str:
    """A sentence with the numbers that the picture shows."""
    nodes, jobs, shared = plural(picture.nodes, "node"), plural(len(state.size), "job"), []
    text = f"{state.busy:,} of {nodes} in use by {jobs}."
    for level in range(len(picture.levels) - 1):
        name, total = picture.level_name(level), len(picture.levels[level])
        groups = ("leaves" if name == "leaf" else name + "s") if total != 1 else name
        shared.append(f"{state.shared(level):,} of {total:,} {groups}")
    return text + (f" Two or more may meet on the uplinks of {' and of '.join(shared)}." if shared else "")


def _cells(axes: Axes, row: TreeRow, layout: TreeLayout, picture: MachinePicture, state: Held) -> None:
    """Draws one path per job; neighbouring cells of a leaf form one rectangle."""
    boxes: dict[int | str, list[Box]] = {}
    for index in row.leaves:
        leaf, x = picture.levels[0][index], layout.x[0][index]
        start = leaf.start
        for node in range(leaf.start + 1, leaf.end + 1):
            if node == leaf.end or state.holder_of(node) != state.holder_of(start):
                boxes.setdefault(state.holder_of(start), []).append(
                    (x - 0.42, x + 0.42, leaf.start - node, leaf.start - start)
                )
                start = node
    colours = {holder: state.colour_of(holder) for holder in boxes}
    for holder, colour in sorted(colours.items(), key=lambda item: item[1]):
        axes.boxes(boxes[holder], colour, holder if isinstance(holder, str) else f"job-{holder}")
    between = [[(-0.5, -node), (layout.width, -node)] for node in range(1, picture.leaf)]
    axes.strokes(between, SURFACE, 0.6 if layout.cell_points > 3.5 else 0.25)


def _links(axes: Axes, row: TreeRow, layout: TreeLayout, picture: MachinePicture, state: Held) -> None:
    """Draws the uplinks of each group as one line, from its bar to the bar of the level above."""
    top = len(picture.levels) - 1
    for level in range(top):
        by_kind: dict[tuple[str, float], list[list[tuple[float, float]]]] = {}
        by_group: list[tuple[int, list[str]]] = []
        for group in row.groups[level]:
            x = layout.x[level][group]
            kinds = _uplinks(state, level, group)
            by_group.append((group, [colour for (colour, _), _ in kinds]))
            for kind, shift in kinds:
                ends = [(x + shift, layout.y[level]), (x + shift, layout.y[level + 1])]
                by_kind.setdefault(kind, []).append(ends)
            if level and len(jobs := state.crossing[level][group]) > 1:
                middle = (layout.y[level] + layout.y[level + 1]) / 2
                gap = rail_lines.half_of(layout, level) + 0.3 if picture.rails else 0.5
                axes.text(x + gap, middle, plural(len(jobs), "job"), size=8.0)
        if picture.rails_at(level) > 1:
            rail_lines.uplinks(axes, layout, picture, level, by_group, FAINT)
            continue
        for (colour, width), segments in sorted(by_kind.items(), key=lambda item: item[0][1]):
            axes.strokes(segments, colour, width)
    for level in range(1, top + 1):
        for first, last in _bars(level, row, layout, picture):
            rail_lines.bar(axes, layout, picture, level, (first, last))
    for level in range(1, top + 1):
        name = "core" if level == top else picture.level_name(level) + "s"
        axes.text(-1.0, layout.y[level], name, size=8.0, colour=MUTED, anchor="end")
    axes.text(-1.0, -picture.leaf / 2, "nodes", size=8.0, colour=MUTED, anchor="end")
    if top > 1 and layout.named:
        for group in row.groups[top - 1]:
            name, x = clean(picture.levels[top - 1][group].name, 18), layout.x[top - 1][group]
            axes.text(x, layout.bottom + 0.2, name, size=8.0, colour=MUTED, anchor="middle", rise="bottom")


def _uplinks(state: Held, level: int, group: int) -> list[tuple[tuple[str, float], float]]:
    """The lines for a group's uplinks: colour and width, and distance from the group's middle in leaves."""
    jobs = state.crossing[level][group]
    if not jobs:
        return [((FAINT, 0.8), 0.0)]
    if state.meeting(level, group) > 1:
        return [((SHARED, 2.6), 0.0)]
    step = SPREAD / len(jobs)
    middle = (len(jobs) - 1) / 2
    return [
        ((state.colour[job], 1.6 / len(jobs) ** 0.5), step * (at - middle)) for at, job in enumerate(jobs)
    ]


def _bars(level: int, row: TreeRow, layout: TreeLayout, picture: MachinePicture) -> list[tuple[float, float]]:
    """The bars for the switches of a level, one per group, cut to this row."""
    bars = []
    for group in picture.levels[level]:
        inside = [
            layout.x[0][leaf]
            for leaf in row.leaves
            if group.start <= picture.levels[0][leaf].start < group.end
        ]
        if inside:
            bars.append((min(inside), max(inside)))
    return bars
