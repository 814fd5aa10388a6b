"""Free GPUs that no job could use, by cause, and related numbers that operators ask for."""

from __future__ import annotations

from collections.abc import Sequence

from topolane.units import HOUR, NOTHING, count, decimal, percent

from ..axes import Axes
from ..chart import Figure, LegendEntry
from ..data import MachinePicture, ReportedRun, finite
from ..plot import WIDTH, Plot, empty, label
from ..room import CAUSES, with_room
from ..scale import linear, rows
from ..style import SERIES

NAME = "stranded-gpus"
TITLE = "Stranded GPUs"
WORDS = (
    "Free GPUs that no job could use, in the mean over the time in which jobs were submitted. On a node: its cores or its memory "
    "are used up, or what is left is less than the smallest job takes. Left over from segments: GPUs of idle nodes that "
    "are too few for one more whole segment in their domain. The table adds how often the largest job of the log could have started, "
    "and how many of the interruptions by failed nodes were absorbed by a spare node."
)
COLUMNS = ("no cores left", "no memory left", "scraps", "left over from segments")


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """A bar per run and cause, and the table."""
    runs = with_room(runs)
    if not runs:
        reason = "No run was looked at while it had room."
        return Plot(NAME, TITLE, WORDS, reason, empty(reason))
    stranded = [run.summary["room"]["stranded"] for run in runs]
    drawn = Figure(WIDTH, 1.15 + 0.3 * len(runs))
    nodes, segments = drawn.grid(1, 2)
    ends = [0.0] * len(runs)
    colours = (SERIES[0], SERIES[4], SERIES[2])
    for (key, _), colour in zip(CAUSES, colours):
        starts, ends = ends, [end + of_run[key] for end, of_run in zip(ends, stranded)]
        nodes.bars(ends, [colour] * len(runs), 0.65, starts)
    _numbers(nodes, ends)
    over = [of_run["left_over_from_segments"] for of_run in stranded]
    segments.bars(over, [SERIES[3]] * len(runs), 0.65)
    _numbers(segments, over)
    nodes.title, segments.title = "On their node (GPUs)", "Left over from segments (GPUs)"
    for axes in (nodes, segments):
        axes.y, axes.has_rows = rows([label(run) for run in runs]), True
    segments.has_y_labels = False
    drawn.legend(
        [LegendEntry(words, colour) for (_, words), colour in zip(CAUSES, colours)], len(CAUSES), above=False
    )
    of_runs = [_row(run) for run in runs]
    heading = [
        "run",
        "free GPUs",
        *COLUMNS,
        "largest job could start",
        "interruptions",
        "absorbed",
        "node hours lost",
    ]
    alt = "; ".join(
        f"{run.label}: {decimal(sum(of_run.values()))} GPUs" for run, of_run in zip(runs, stranded)
    )
    return Plot(NAME, TITLE, WORDS, alt, drawn, numbers=[heading, *of_runs], numbers_name="GPUs by run")


def _numbers(axes: Axes, values: Sequence[float]) -> None:
    """Writes the values next to the bars and sets the scale."""
    for row, value in enumerate(values):
        axes.text(value, row, decimal(value, 1), size=8.5, offset=(3.0, 0.0))
    axes.x = linear(0.0, 1.25 * max([*values, 0.01]))


def _row(run: ReportedRun) -> list[str]:
    room = run.summary["room"]
    parts = [room["stranded"][key] for key in (*(key for key, _ in CAUSES), "left_over_from_segments")]
    failures = run.summary.get("failures") or {}
    interruptions = finite(failures.get("interruptions"))
    absorbed = finite(failures.get("absorbed"))
    lost = finite(failures.get("node_seconds_lost"))
    return [
        run.label,
        count(room["free"]),
        *(decimal(part, 1) for part in parts),
        percent(room["largest"]["share_of_time"]),
        NOTHING if interruptions is None else count(interruptions),
        percent(absorbed / interruptions) if interruptions and absorbed is not None else NOTHING,
        NOTHING if lost is None else count(lost / HOUR),
    ]
