"""The page: words, summary table and figures in one HTML file that loads nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from topolane.sweep.seeds import SeedsRow
from topolane.units import HOUR, NOTHING, clean, count, decimal, percent, plural
from topolane.verdict import are_alike

from .data import MachinePicture, ReportedRun, finite
from .style import HEAT_THEME, THEME

if TYPE_CHECKING:
    from topolane.verdict import Verdict


@dataclass(frozen=True)
class Shown:
    """A figure as the page shows it. `svg` comes from this package, with all texts escaped."""

    name: str
    title: str
    words: str
    svg: Markup
    numbers: list[list[str]]
    numbers_name: str = ""  # if given, the numbers are shown open under this name


@dataclass(frozen=True)
class Section:
    """A heading of the page with words and one or more figures."""

    name: str
    title: str
    words: str
    figures: list[Shown]
    notes: Sequence[str] = ()  # one paragraph each


@dataclass(frozen=True)
class Cell:
    """A cell of the summary: its text, its sort key, and whether it is the best of its column."""

    text: str
    value: float | None
    best: bool = False


def _blocked(run: ReportedRun) -> float | None:
    return finite((run.summary.get("fragmentation") or {}).get("seconds"))


def _of(key: str) -> Callable[[ReportedRun], float | None]:
    return lambda run: run.number(key)


def _while_waiting(run: ReportedRun) -> float | None:
    return run.number("utilization_while_waiting") or None  # the summary has 0 if no job ever waited


def _suffered(key: str) -> Callable[[ReportedRun], float | None]:
    return lambda run: finite((run.summary.get("contention") or {}).get(key))


def _hours_lost(run: ReportedRun) -> float | None:
    seconds = _suffered("node_seconds_lost")(run)
    return None if seconds is None else seconds / HOUR


def _hours(seconds: float | None) -> str:
    return decimal(None if seconds is None else seconds / HOUR)


def _tenths(seconds: float | None) -> str:
    return decimal(None if seconds is None else seconds / HOUR, 1)


def _times(value: float | None) -> str:
    return f"×{decimal(value, 3)}"


# heading, meaning, value, text, and 1 if more is better, -1 if less is better
Column = tuple[str, str, Callable[[ReportedRun], "float | None"], Callable[["float | None"], str], int]
COLUMNS: tuple[Column, ...] = (
    ("Jobs", "jobs that ran", _of("jobs"), count, 0),
    ("Mean wait (h)", "submission to start", _of("mean_wait"), _hours, -1),
    ("Weighted wait (h)", "mean weighted by node-seconds", _of("mean_wait_by_work"), _hours, -1),
    ("p95 wait (h)", "95 of 100 jobs wait no longer", _of("p95_wait"), _hours, -1),
    ("Slowdown", "mean bounded slowdown", _of("mean_slowdown"), decimal, -1),
    ("Utilisation", "mean over the makespan", _of("utilization"), percent, 1),
    ("Utilisation while jobs wait", "mean over the time in which a job waits", _while_waiting, percent, 1),
    ("Makespan (h)", "first submission to last completion", _of("makespan"), _tenths, -1),
    ("APH", "mean average pairwise hops", _of("mean_aph"), decimal, -1),
    ("Least APH", "the least possible", _of("mean_least_aph"), decimal, 0),
    ("Jobs that share links", "jobs whose traffic may meet another's", _of("jobs_sharing_links"), count, -1),
    ("Blocked by links (h)", "time in which the head of the queue was refused though enough nodes were idle",
     _blocked, _hours, -1),
)  # fmt: skip

# Further columns if the machine has GPUs.
GPU_COLUMNS: tuple[Column, ...] = (
    ("GPUs in use", "mean over the makespan", _of("allocated_gpus"), percent, 1),
)  # fmt: skip

# Further columns if a run has a network.
NETWORK_COLUMNS: tuple[Column, ...] = (
    ("Wait + run (h)", "mean, submission to end", _of("mean_turnaround"), _hours, -1),
    ("Slowed by others", "mean run time over that alone, of jobs of several nodes", _suffered("mean"),
     _times, -1),
    ("Worst", "most slowed by others", _suffered("max"), _times, -1),
    ("Node hours lost", "nodes × run time beyond that alone", _hours_lost, count, -1),
)  # fmt: skip


def _other_network_columns(runs: Sequence[ReportedRun]) -> tuple[Column, ...]:
    """Two further columns for each other network of the machine."""
    names = dict.fromkeys(each["name"] for run in runs for each in run.summary.get("networks") or ())
    columns: list[Column] = []
    for name in names:
        shown = clean(name, 20)
        shared, alone = (_on_network(name, key) for key in ("jobs_sharing_links", "mean_bandwidth_alone"))
        columns.append(
            (f"Sharing links on {shown}", "jobs whose traffic there may meet another's", shared, count, -1)
        )
        if any(alone(run) is not None for run in runs):
            what = "to the servers, when no other job sends: share of what the ends of the routes could carry"
            columns.append((f"Bandwidth on {shown}", what, alone, percent, 1))
    return tuple(columns)


def _on_network(name: str, key: str) -> Callable[[ReportedRun], float | None]:
    def value_of(run: ReportedRun) -> float | None:
        networks = run.summary.get("networks") or ()
        return next((finite(each.get(key)) for each in networks if each["name"] == name), None)

    return value_of


def render(
    runs: Sequence[ReportedRun],
    picture: MachinePicture,
    sections: Sequence[Section],
    png: bool,
    sentence: str = "",
    verdict: Verdict | None = None,
) -> str:
    """The page as HTML; `verdict` and then `sentence` begin it. With `png` the page also links to the PNG files."""
    has_network = any(run.network for run in runs)
    has_gpus = any("allocated_gpus" in run.summary for run in runs)
    columns = COLUMNS + (GPU_COLUMNS if has_gpus else ()) + (NETWORK_COLUMNS if has_network else ())
    columns += _other_network_columns(runs)
    columns, same = _folded(runs, columns)
    theme = THEME | (HEAT_THEME if has_network else {})
    return _template().render(
        heading=_heading(runs),
        what=_what(runs, has_network=has_network),
        row_words=_row_words(runs),
        facts=_facts(runs, picture),
        skipped=_skipped(runs),
        columns=columns,
        rows=_rows(runs, columns),
        has_network=has_network,
        sections=sections,
        png=png,
        sentence=sentence,
        verdict=verdict,
        same=same,
        **_colours(theme),
    )


def render_rows(
    *,
    heading: str,
    what: str,
    row_words: str,
    facts: Sequence[tuple[str, str]],
    columns: Sequence[tuple[str, str]],
    rows: Sequence[tuple[SeedsRow, Sequence[Cell]]],
    sections: Sequence[Section],
) -> str:
    """A page whose table rows each stand for several runs."""
    return _template().render(
        heading=heading,
        what=what,
        row_words=row_words,
        facts=facts,
        skipped=[],
        columns=columns,
        rows=rows,
        has_network=any(row.network for row, _ in rows),
        sections=sections,
        png=False,
        sentence="",
        verdict=None,
        same="",
        **_colours(THEME),
    )


FOLDED_IF_CLOSE = {"Utilisation": "utilization", "Makespan (h)": "makespan"}
"""The columns that are folded even if runs differ a little, with their measures."""


def _folded(runs: Sequence[ReportedRun], columns: Sequence[Column]) -> tuple[list[Column], str]:
    """The columns in which runs differ, and a sentence with the others."""
    if len(runs) < 2:
        return list(columns), ""
    shown, same = [], []
    for column in columns:
        name, _, value_of, text_of, _ = column
        values = [value_of(run) for run in runs]
        texts = list(dict.fromkeys(NOTHING if value is None else text_of(value) for value in values))
        known = [value for value in values if value is not None]
        measure = FOLDED_IF_CLOSE.get(name, "") if len(known) == len(runs) else ""
        if are_alike(measure, known, texts):
            ends = texts if len(texts) == 1 else [text_of(min(known)), text_of(max(known))]
            same.append(_with_unit(name, " to ".join(ends)))
        else:
            shown.append(column)
    return shown, f"The same for all: {', '.join(same)}." if same else ""


def _with_unit(name: str, text: str) -> str:
    return f"{name.removesuffix(' (h)')} {text} h" if name.endswith(" (h)") else f"{name} {text}"


def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(files(__package__).joinpath("page.html.j2").read_text("utf-8"))


def _colours(theme: dict[str, tuple[str, str]]) -> dict[str, dict[str, str]]:
    return {
        "light": {name: light for light, (name, _) in theme.items()},
        "dark": dict(theme.values()),
    }


def _what(runs: Sequence[ReportedRun], *, has_network: bool) -> str:
    if len(runs) == 1:
        first = runs[0]
        return f"A Topolane report: the jobs replayed under {first.policy}, {first.queue}, scenario {first.scenario}."
    rules = "queue, scenario and network" if has_network else "queue and scenario"
    return f"A Topolane report: the same jobs, replayed under {len(runs)} combinations of policy, {rules}."


def _row_words(runs: Sequence[ReportedRun]) -> str:
    several = " The best of each column is bold; a column's heading sorts by it." if len(runs) > 1 else ""
    return f"A row is a run.{several}"


def _heading(runs: Sequence[ReportedRun]) -> str:
    workloads = ", ".join(dict.fromkeys(run.workload for run in runs))
    machines = ", ".join(dict.fromkeys(run.machine for run in runs))
    return f"{workloads} on {machines}"


def _facts(runs: Sequence[ReportedRun], picture: MachinePicture) -> list[tuple[str, str]]:
    first = runs[0]
    levels = [
        f"{len(level):,} {picture.level_name(number)}{'s' if number else ''}"
        for number, level in enumerate(picture.levels[:-1])
    ]
    shape = [
        text.replace(" leaf", " leaves") if not text.startswith("1 ") else text.removesuffix("s")
        for text in levels
    ]
    return [
        ("Runs", count(len(runs))),
        ("Machine", plural(picture.nodes, "node") + (f" in {', '.join(shape)}" if shape else "")),
        ("Jobs", count(first.number("jobs"))),
        ("Load of the GPUs", decimal(first.number("gpu_load")))
        if "gpu_load" in first.summary
        else ("Load", decimal(first.number("load"))),
        ("Jobs without a walltime", count(first.number("without_walltime"))),
    ]


def _skipped(runs: Sequence[ReportedRun]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The number of skipped jobs by reason; listed by run if runs differ, since a policy may reject jobs for
    good.
    """
    by_run = [
        (
            run.label,
            [
                (str(reason), count(jobs))
                for reason, jobs in (run.summary.get("left_out") or {}).items()
                if jobs
            ],
        )
        for run in runs
    ]
    if all(reasons == by_run[0][1] for _, reasons in by_run):
        by_run = [("the workload", by_run[0][1])]
    return [(name, reasons) for name, reasons in by_run if reasons]


def _rows(runs: Sequence[ReportedRun], columns: Sequence[Column]) -> list[tuple[ReportedRun, list[Cell]]]:
    rows: list[list[Cell]] = [[] for _ in runs]
    for *_, value_of, text_of, better in columns:
        values = [value_of(run) for run in runs]
        known = [value for value in values if value is not None]
        best = None
        if better and len(set(known)) > 1:
            best = max(known) if better > 0 else min(known)
        for row, value in zip(rows, values):
            text = NOTHING if value is None else text_of(value)
            row.append(Cell(text, value, best is not None and value == best))
    return list(zip(runs, rows))
