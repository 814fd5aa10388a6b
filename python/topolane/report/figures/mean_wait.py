"""The table of mean waits, by policy and scenario (SC'18: mean wait in hours)."""

from __future__ import annotations

from collections.abc import Sequence

from topolane.units import HOUR, NOTHING, clean

from ..chart import Figure
from ..data import MachinePicture, ReportedRun
from ..plot import WIDTH, Plot
from ..scale import AxisScale
from ..style import FAINT, MUTED

NAME = "mean-wait"
TITLE = "Mean wait, policies by scenarios"
WORDS = (
    "From submission to start, the mean over all jobs, in hours. A row is a policy with its queue, a "
    "column a scenario (how much faster a job runs when it shares no link with another). The shortest "
    "wait of each column is bold."
)


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """The table, in hours. A combination without a run is a dash."""
    rows, columns, cells = table(runs)
    widths = [max(len(clean(row)) for row in (*rows, "policy, queue")) * 0.075 + 0.3]
    widths += [max(0.95, len(clean(column, 22)) * 0.08 + 0.25) for column in columns]
    total = max(sum(widths), 3.0)
    drawn = Figure(min(total, WIDTH * 1.6), 0.32 * (len(rows) + 1) + 0.2)
    (axes,) = drawn.grid(1)
    axes.shown = False
    axes.x, axes.y = AxisScale(0.0, total), AxisScale(len(rows) + 0.5, -0.5)
    edges = [sum(widths[: i + 1]) + widths[i + 1] - 0.1 for i in range(len(columns))]
    axes.text(0.0, 0.0, "policy, queue", colour=MUTED)
    for edge, column in zip(edges, columns):
        axes.text(edge, 0.0, clean(column, 22), anchor="end", colour=MUTED)
    axes.strokes([((0.0, 0.5), (total, 0.5))], MUTED, 0.8)
    for y, row in enumerate(rows, start=1):
        axes.text(0.0, y, clean(row))
        axes.strokes([((0.0, y + 0.5), (total, y + 0.5))], FAINT, 0.6)
        for edge, column in zip(edges, columns):
            value = cells.get((row, column))
            best = value is not None and value == min(
                v for (_, c), v in cells.items() if c == column and v is not None
            )
            axes.text(edge, y, hours(value), anchor="end", bold=best and len(rows) > 1)
    numbers = [
        ["policy, queue", *columns],
        *([row, *(hours(cells.get((row, column))) for column in columns)] for row in rows),
    ]
    alt = "Mean wait in hours. " + " ".join(
        f"{name}: {', '.join(f'{c} {v}' for c, v in zip(columns, values))}." for name, *values in numbers[1:]
    )
    return Plot(NAME, TITLE, WORDS, alt, drawn, numbers=numbers)


def table(runs: Sequence[ReportedRun]) -> tuple[list[str], list[str], dict[tuple[str, str], float | None]]:
    """Row names, column names, and the mean wait in seconds of each cell. If two runs share a cell, each run
    gets its own row.
    """
    names = [f"{run.policy}, {run.queue}" for run in runs]
    if len({(name, run.scenario) for name, run in zip(names, runs)}) < len(runs):
        names = [run.label for run in runs]
    cells = {(name, _heading(run)): run.number("mean_wait") for name, run in zip(names, runs)}
    return list(dict.fromkeys(names)), list(dict.fromkeys(_heading(run) for run in runs)), cells


def _heading(run: ReportedRun) -> str:
    """The heading of a scenario's column; a bare number becomes a percentage."""
    return f"{run.scenario} %" if run.scenario.replace(".", "", 1).isdigit() else run.scenario


def hours(seconds: float | None) -> str:
    """Seconds written as hours: with two decimals, from a hundred hours on with none."""
    if seconds is None:
        return NOTHING
    if 0 < seconds < 0.005 * HOUR:
        return "< 0.01"
    return f"{seconds / HOUR:.2f}" if seconds < 100 * HOUR else f"{seconds / HOUR:,.0f}"
