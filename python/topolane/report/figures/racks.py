"""The machine's floor plan at one moment: domains as racks and GPUs as cells in the colours of their jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topolane.units import clean, count, decimal, moment, plural

from ..axes import Axes
from ..chart import Figure, LegendEntry
from ..data import MachinePicture, ReportedRun
from ..gpus import DUST, GpuState, gpu_state
from ..legend import largest
from ..marks import Box, Outline, Point, corners
from ..plot import Plot, empty
from ..rack_boxes import boxes, parts
from ..rack_layout import WIDTH, RackLayout, lay_out
from ..scale import AxisScale
from ..style import IDLE, INK, LOCAL, MUTED, SURFACE

NAME = "racks"
TITLE = "Who holds which GPUs"
HOVERED = 500
"""The number of largest jobs that have a path and a hover text each. Smaller jobs of one colour share one
path.
"""
NAMES_OF_A_TIP = 6


def words(picture: MachinePicture) -> str:
    """The caption of the picture for this machine."""
    unit = _unit(picture)
    if picture.domains:
        box = "A box is a domain (a rack of NVL72 for example)"
    else:
        box = "A box is a part of a leaf, because no file of this machine names domains"
    spanning = f"jobs in several {unit}s" if _racks(picture) > 1 else "jobs on several nodes"
    inside = f"one {unit}" if _racks(picture) > 1 else "one node"
    return (
        f"{box}, a row in it is a node and a cell is a GPU. Colours tell {spanning} apart; they repeat, but neighbours "
        f"differ. Jobs inside {inside} are grey. A cell that is filled in part is a GPU of which jobs have parts. A free "
        "GPU with a stroke is stranded: its node has too little left for the smallest job. Nodes without GPUs are not drawn. "
        "All runs are drawn at the same time, by default the minute at which the emptiest of them is fullest. Rest the "
        "pointer on a cell for its job or its name."
    )


def draw(run: ReportedRun, picture: MachinePicture, at: float, number: int) -> Plot:
    """The GPUs of `run` at `at`, in seconds since the epoch."""
    state = gpu_state(run, picture, at)
    words = f"{moment(state.time).capitalize()}: {facts(picture, state)}"
    if not any(state.gpus):
        return Plot(f"{NAME}-{number}", run.label, words, words, empty("The machine has no GPUs."))
    return Plot(f"{NAME}-{number}", run.label, words, words, floor_plan(picture, state), tips(picture, state))


def floor_plan(picture: MachinePicture, state: GpuState) -> Figure:
    """The floor plan with the GPUs in one state."""
    layout = lay_out(state.racks, picture)
    drawn = Figure(WIDTH / 72 + 0.2, layout.height / 72 + 0.5)
    (axes,) = drawn.grid(1)
    axes.shown = False
    axes.x, axes.y = AxisScale(-3.0, WIDTH), AxisScale(layout.height, -2.0)
    frames = _draw_racks(axes, layout, state)
    hovered = set(sorted(state.jobs, key=lambda job: (-state.jobs[job], job))[:HOVERED])
    for gid, colour, shapes in boxes(layout, state, hovered):
        axes.boxes(shapes, colour, gid)
    _draw_grid(axes, layout)
    tops = [
        ((left, low), (right, low))
        for column in layout.columns
        for _, (left, right, low, _) in parts(column, layout, state)
    ]
    axes.strokes(tops, SURFACE, 0.5 if layout.cell[0] > 5 else 0.25, "parts")
    axes.strokes(list(_strokes(layout, state)), INK, 0.5 if layout.cell[0] > 2 else 0.25, "stranded")
    axes.items.append(Outline(corners(frames), None, MUTED, 0.35, closed=True))
    for name, x, y in layout.pods:
        axes.text(x, y, clean(name, 18), size=7.0, colour=MUTED, rise="bottom")
    drawn.legend(_legend(state, picture), 5, above=False, size=8.0)
    return drawn


def facts(picture: MachinePicture, state: GpuState) -> str:
    """A sentence with the numbers that the picture shows."""
    gpus = sum(len(of_node) for of_node in state.gpus)
    free, stranded, failed = (state.total(what) for what in ("free", "stranded", "failed"))
    parts = [
        f"{_short(gpus - free - failed)} of {plural(gpus, 'GPU')} in use by {plural(len(state.jobs), 'job')}"
    ]
    parts.append(
        f"{_short(free)} free" + (f", of them {_short(stranded)} stranded" if stranded > DUST else "")
    )
    if failed:
        parts.append(f"{_short(failed)} on nodes that have failed")
    text = f"{'; '.join(parts)}."
    if (racks := len(state.racks)) > 1:
        unit = _unit(picture)
        inside = [0] * racks
        for own in state.places.values():
            for rack in own:
                inside[rack] += 1
        text += (
            f" {count(inside.count(0))} of {count(racks)} {unit}s are empty, the others have {decimal(_mean(inside), 1)} "
            f"jobs each in the mean. {plural(len(state.split), 'job')} that one {unit} could hold "
            f"{'lies' if len(state.split) == 1 else 'lie'} in several."
        )
    return text


def _mean(inside: Sequence[int]) -> float:
    taken = [jobs for jobs in inside if jobs]
    return sum(taken) / len(taken) if taken else 0.0


def _short(gpus: float) -> str:
    return f"{gpus:,.2f}".rstrip("0").rstrip(".")


def _gpus(gpus: float) -> str:
    return f"{_short(gpus)} GPU{'' if gpus == 1 else 's'}"


def _unit(picture: MachinePicture) -> str:
    return "domain" if picture.domains else "leaf"


def _racks(picture: MachinePicture) -> int:
    return len(picture.domains) or len(picture.levels[0])


def _strokes(layout: RackLayout, state: GpuState) -> Iterator[Sequence[Point]]:
    wide, high = layout.cell
    for column in layout.columns:
        for row, node in enumerate(column.nodes):
            for gpu in state.gpus[node]:
                if gpu.stranded > DUST:
                    left, top = column.x + gpu.index * wide, column.y + row * high
                    yield (left, top + gpu.free * high), (left + wide, top)


def _draw_racks(axes: Axes, layout: RackLayout, state: GpuState) -> list[Box]:
    """Draws the cells of all columns; returns a frame around each column."""
    wide, high = layout.cell
    frames: list[Box] = []
    cells: dict[int, list[Box]] = {}
    first_node = {column.rack: column.nodes[0] for column in reversed(layout.columns)}
    for column in layout.columns:
        top = column.y
        for row, node in enumerate(column.nodes, start=1):
            gpus, last = len(state.gpus[node]), row == len(column.nodes)
            if last or len(state.gpus[column.nodes[row]]) != gpus:
                bottom = column.y + row * high
                cells.setdefault(column.rack, []).append((column.x, column.x + gpus * wide, top, bottom))
                top = bottom
        edge = min(1.2, 0.3 * wide)
        frames.append(
            (column.x - edge, column.x + column.gpus * wide + edge, column.y - edge, top + edge),
        )
        if layout.named and column.nodes[0] == first_node[column.rack]:
            name = clean(state.racks[column.rack].name, 12)
            axes.text(column.x, top + 3, name, size=7.0, colour=MUTED, rise="top")
    for rack, shapes in cells.items():
        axes.boxes(shapes, IDLE, f"rack-{rack}")
    return frames


def _draw_grid(axes: Axes, layout: RackLayout) -> None:
    """Draws lines between GPUs in the page's background colour."""
    wide, high = layout.cell
    lines = []
    rows: dict[
        float, tuple[float, float]
    ] = {}  # both ends of a separating line between nodes, through all racks side by side
    for column in layout.columns:
        low, right = column.y + len(column.nodes) * high, column.x + column.gpus * wide
        lines += [[(column.x + gpu * wide, y) for y in (column.y, low)] for gpu in range(1, column.gpus)]
        for row in range(1, len(column.nodes)):
            y = column.y + row * high
            rows[y] = (rows.get(y, (column.x,))[0], right)
    lines += [[(left, y), (right, y)] for y, (left, right) in rows.items()]
    axes.strokes(lines, SURFACE, 0.5 if wide > 5 else 0.12 if wide > 1 else 0.05, "grid")


def tips(picture: MachinePicture, state: GpuState) -> dict[str, str]:
    """The hover texts of jobs, racks and marks, by gid."""
    unit = _unit(picture)
    nodes: dict[int, int] = {}
    for of_node in state.gpus:
        for job in {job for gpu in of_node for job, _ in gpu.holders}:
            nodes[job] = nodes.get(job, 0) + 1
    found = {
        "stranded": "free, but its node has too little left for the smallest job",
        "failed": "the node has failed",
    }
    for job, gpus in state.jobs.items():
        names = [state.racks[rack].name for rack in state.places[job]]
        where = ", ".join(names[:NAMES_OF_A_TIP])
        if len(names) > NAMES_OF_A_TIP:
            where = f"{count(len(names))} {unit}s: {where}, ..."
        text = f"job {job}: {_gpus(gpus)} on {plural(nodes.get(job, 0), 'node')} of {where}"
        found[f"job-{job}"] = text
    for index, rack in enumerate(state.racks):
        free = sum(gpu.free for node in rack.nodes for gpu in state.gpus[node])
        gpus = sum(len(state.gpus[node]) for node in rack.nodes)
        found[f"rack-{index}"] = f"{rack.name}: {_short(free)} of {plural(gpus, 'GPU')} free"
    return found


def _legend(state: GpuState, picture: MachinePicture) -> list[LegendEntry]:
    spanning = sorted(
        (job for job, colour in state.colour.items() if colour != LOCAL),
        key=lambda job: (-state.jobs[job], job),
    )
    entries = largest([(f"job {job}: {_gpus(state.jobs[job])}", state.colour[job]) for job in spanning])
    inside = f"one {_unit(picture)}" if len(state.racks) > 1 else "one node"
    entries += [LegendEntry(f"jobs inside {inside}", LOCAL), LegendEntry("free", IDLE)]
    if state.total("stranded") > DUST:
        entries.append(LegendEntry("stranded", INK, 0.8))
    if state.total("failed"):
        entries.append(LegendEntry("failed", MUTED))
    return entries
