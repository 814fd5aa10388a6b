"""GPUs that were free and that no job could use, by cause, and what operators ask for next to them."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from topolane.units import HOUR, NOTHING, count, decimal, percent

from ..data import MachinePicture, Run, finite
from ..plot import WIDTH, Plot, empty, figure, label, name_rows
from ..room import CAUSES, with_room
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


def draw(runs: Sequence[Run], picture: MachinePicture) -> Plot:
    """A bar for each run by cause, and the table."""
    runs = with_room(runs)
    if not runs:
        reason = "No run was looked at while it had room."
        return Plot(NAME, TITLE, WORDS, reason, empty(reason))
    stranded = [run.summary["room"]["stranded"] for run in runs]
    drawn = figure(WIDTH, 1.15 + 0.3 * len(runs))
    nodes, segments = drawn.subplots(1, 2, sharey=True)
    left = [0.0] * len(runs)
    for (key, words), colour in zip(CAUSES, (SERIES[0], SERIES[4], SERIES[2])):
        widths = [of_run[key] for of_run in stranded]
        nodes.barh(range(len(runs)), widths, left=left, height=0.65, color=colour, label=words)
        left = [start + width for start, width in zip(left, widths)]
    _numbers(nodes, left)
    over = [of_run["left_over_from_segments"] for of_run in stranded]
    segments.barh(range(len(runs)), over, height=0.65, color=SERIES[3])
    _numbers(segments, over)
    nodes.set_title("On their node (GPUs)")
    segments.set_title("Left over from segments (GPUs)")
    name_rows(nodes, [label(run) for run in runs])
    nodes.invert_yaxis()
    for axes in (nodes, segments):
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
    drawn.legend(loc="outside lower left", ncols=len(CAUSES), borderaxespad=0)
    rows = [_row(run) for run in runs]
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
    return Plot(NAME, TITLE, WORDS, alt, drawn, numbers=[heading, *rows], numbers_name="GPUs by run")


def _numbers(axes: Axes, values: Sequence[float]) -> None:
    """The sums behind the bars."""
    for row, value in enumerate(values):
        axes.annotate(
            decimal(value, 1),
            (value, row),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
        )
    axes.set_xlim(0, 1.25 * max([*values, 0.01]))


def _row(run: Run) -> list[str]:
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
