"""Runs as tables."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import click

from topolane._engine import assumed_traffic, traffic_policies
from topolane.cli import common
from topolane.sources import skipped_notes
from topolane.units import duration, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane.baseline import Baseline
    from topolane.run import Run, Settings
    from topolane.verdict import Verdict

RUN_COLUMNS = (
    "policy",
    "queue",
    "mean wait\n(h)",
    "weighted\nwait (h)",
    "p95 wait\n(h)",
    "utilisation",
    "utilisation\nwhile jobs wait",
    "makespan\n(h)",
    "APH",
    "least\nAPH",
    "jobs that\nshare links",
    "blocked by\nlinks (h)",
)


def run_row(run: Run) -> list[str]:
    """A run in the columns of `RUN_COLUMNS`."""
    summary = run.summary
    return [
        run.label,
        run.queue,
        common.hours(summary["mean_wait"]),
        common.hours(summary["mean_wait_by_work"]),
        common.hours(summary["p95_wait"]),
        f"{summary['utilization']:.1%}",
        f"{summary['utilization_while_waiting']:.1%}",
        f"{summary['makespan'] / common.HOUR:,.1f}",
        f"{summary['mean_aph']:.3f}",
        f"{summary['mean_least_aph']:.3f}",
        f"{summary['jobs_sharing_links']:,}",
        common.hours(summary["fragmentation"]["seconds"]),
    ]


BASELINE_COLUMNS = (
    "waits, recorded / replayed",
    "jobs",
    "mean",
    "median",
    "p95",
    "rank\ncorrelation",
)


def print_baseline(baseline: Baseline) -> None:
    """Prints the waits of a replay next to the recorded ones, and what else differs."""
    rows = []
    for waits in baseline.waits:
        pairs = (" / ".join(map(duration, pair)) for pair in (waits.mean, waits.median, waits.p95))
        rank = "-" if waits.rank is None else f"{waits.rank:.2f}"
        rows.append([waits.what, f"{waits.jobs:,}", *pairs, rank])
    common.print_table(BASELINE_COLUMNS, rows)
    for note in baseline.notes:
        click.echo(note)


NETWORK_COLUMNS = ("network", "wait + run\n(h)", "slowed by\nothers", "95 %", "worst", "node hours\nlost")


def network_row(run: Run) -> list[str]:
    """A run in the columns of `NETWORK_COLUMNS`."""
    cells = [run.network or "none", common.hours(run.summary["mean_turnaround"])]
    suffered = run.summary.get("contention")
    if suffered is None:
        return [*cells, "-", "-", "-", "-"]
    stretch = [f"x{suffered[name]:.3f}" for name in ("mean", "p95", "max")]
    return [*cells, *stretch, f"{suffered['node_seconds_lost'] / common.HOUR:,.0f}"]


LEAST_NEEDED = (
    "worst",
    "95 %",
    "least\nAPH",
    "makespan\n(h)",
    "p95 wait\n(h)",
    "utilisation",
    "node hours\nlost",
    "blocked by\nlinks (h)",
    "GPUs\nin use",
    "APH",
    "utilisation\nwhile jobs wait",
    "wait + run\n(h)",
    "queue",
    "mean wait\n(h)",
)
"""The columns that a narrow terminal hides, the first of them first."""
FOLDED_IF_CLOSE = {"utilisation": "utilization", "makespan\n(h)": "makespan"}
"""The columns that are folded even if runs differ a little, with their measures."""
EDGES = 3
"""Characters between two columns."""


def print_runs(runs: Sequence[Run]) -> None:
    """Prints a row for every run. A line names the measures that are the same for all; another, on a narrow terminal, those for
    which it has no room.
    """
    columns, rows = [*RUN_COLUMNS], [run_row(run) for run in runs]
    if any("allocated_gpus" in run.summary for run in runs):
        columns.append("GPUs\nin use")
        rows = [[*row, f"{run.summary.get('allocated_gpus', 0):.1%}"] for row, run in zip(rows, runs)]
    if any(run.network for run in runs):
        columns += NETWORK_COLUMNS
        rows = [[*row, *network_row(run)] for row, run in zip(rows, runs)]
    cells = {name: [row[index] for row in rows] for index, name in enumerate(columns)}
    same = [name for name in columns[1:] if len(runs) > 1 and _is_same(runs, name, cells[name])]
    shown = [name for name in columns if name not in same]
    hidden = []
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for name in LEAST_NEEDED:
        if room is None or _width({each: cells[each] for each in shown}) <= room:
            break
        if name in shown:
            shown.remove(name)
            hidden.append(name)
    common.print_table(shown, [list(row) for row in zip(*(cells[name] for name in shown))], ["queue"])
    if same:
        said = (f"{_one_line(name)} {_range(name, cells[name])}".strip() for name in same)
        common.print_lines(f"The same for all: {', '.join(said)}.")
    if hidden:
        names = ", ".join(_one_line(name) for name in columns if name in hidden)
        common.print_lines(f"Hidden in {room} columns: {names}. A wider terminal or --json shows them.")


def _is_same(runs: Sequence[Run], name: str, cells: Sequence[str]) -> bool:
    """Whether a measure does not differ between the rows."""
    from topolane import verdict

    measure = FOLDED_IF_CLOSE.get(name, "")
    return verdict.are_alike(measure, [run.summary[measure] for run in runs] if measure else [], cells)


def _range(name: str, cells: Sequence[str]) -> str:
    """The value of all rows, or the least and the largest, with their unit."""
    ends = list(dict.fromkeys(sorted(cells, key=lambda cell: (len(cell), cell))))
    text = ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
    return f"{text} h" if "(h)" in name and text[-1:].isdigit() else text


def _one_line(name: str) -> str:
    """The heading of a column in running text, without its unit."""
    return name.replace("\n", " ").replace(" (h)", "")


def _width(cells: dict[str, list[str]]) -> int:
    """The width of a table in characters."""
    widest = (max(map(len, [*name.split("\n"), *column])) for name, column in cells.items())
    return sum(width + EDGES for width in widest)


def print_verdict(verdict: Verdict) -> None:
    """Prints which policy is the best trade, the numbers behind it, and a line for each other one."""
    for line in (verdict.sentence, f"  {verdict.numbers}", *verdict.lines, verdict.rule):
        common.print_lines(line)


def print_networks(runs: Sequence[Run]) -> None:
    """Prints what the jobs do on other networks of the machine, with a row for every run and network."""
    rows = []
    for run in runs:
        for network in run.summary.get("networks", []):
            alone = network["mean_bandwidth_alone"]
            rows.append(
                [
                    f"{run.label}, {run.queue}",
                    network["name"],
                    f"{network['jobs_sharing_links']:,}",
                    "-" if alone is None else f"{alone:.1%}",
                ]
            )
    if rows:
        columns = ["on other networks", "network", "jobs that\nshare links", "bandwidth to\nservers, alone"]
        common.print_table(columns, rows, ["network"])


def print_patterns(runs: Sequence[Run]) -> None:
    """Prints the slowdown of each pattern's jobs by other jobs, with a column for every run that has it."""
    runs = [run for run in runs if "contention" in run.summary]
    if not runs:
        return
    rows = []
    for index, first in enumerate(runs[0].summary["contention"]["by_pattern"]):
        own = [run.summary["contention"]["by_pattern"][index] for run in runs]
        rows.append([first["pattern"], *(f"x{row['mean']:.3f} / x{row['max']:.2f}" for row in own)])
    titles = [f"{run.label}\n{run.queue}" for run in runs]
    common.print_table(["slowed by others, mean / worst", *titles], rows)


def workload_notes(run: Run) -> list[str]:
    """Notes on the workload: its size, its load, and what was skipped."""
    summary = run.summary
    load = "" if summary["load"] is None else f", load {summary['load']:.2f}"
    if "gpu_load" in summary:
        load = f", load {summary['gpu_load']:.2f} of the GPUs"
    notes = [
        f"{run.workload} on {run.machine}: {plural(summary['jobs'], 'job')}, {plural(summary['nodes'], 'node')}{load}"
    ]
    if summary["without_walltime"]:
        expected = "the run time"
        if "default_walltime" in summary:
            expected = f"{summary['default_walltime']:,g} s"
        count = plural(summary["without_walltime"], "job")
        notes.append(f"{count} without a walltime: {expected} is assumed for each")
    if suffered := summary.get("contention"):
        # The queue expects what names no walltime to end after its run time.
        limit = "walltime (without one, the run time)" if summary["without_walltime"] else "walltime"
        notes.append(f"{plural(suffered['overran'], 'job')} ran past the {limit}, slowed down by other jobs")
    if summary["killed_at_walltime"]:
        notes.append(f"{plural(summary['killed_at_walltime'], 'job')} ended at the walltime")
    if summary["late_against_log"]:
        notes.append(
            f"{plural(summary['late_against_log'], 'job')} started later than the log says: "
            "it gives some nodes to two jobs at once (if jobs share nodes, give --shared)"
        )
    notes += summary.get("notes", [])
    return notes + skipped_notes(summary["left_out"])


LISTED = 10
"""How many jobs are named one by one."""


def notes(
    runs: Sequence[Run], settings: Settings, trace: str | None, described: Run | None = None
) -> list[str]:
    """All notes on runs of one workload. described: the run that describes the workload best; by default the first."""
    return [
        *common.machine_note(trace),
        *workload_notes(described or runs[0]),
        *limit_notes(runs),
        *ignored_notes(runs, settings),
        *assumed_notes(runs),
        *outage_notes(runs),
        *failure_notes(runs),
        *preemption_notes(runs),
        *inferred_notes(runs),
    ]


def limit_notes(runs: Sequence[Run]) -> list[str]:
    """Notes on parts of the machine where policies cannot give jobs dedicated links, or not all of them."""
    return list(
        dict.fromkeys(f"{run.policy}: {limit}" for run in runs for limit in run.summary.get("limits", []))
    )


def ignored_notes(runs: Sequence[Run], settings: Settings) -> list[str]:
    """Notes on options that changed nothing, because no policy gave a job links of its own."""
    given = {"--min-bandwidth": settings.min_bandwidth is not None, "--defrag": settings.defrag is not None}
    if any("job-links" in run.tables for run in runs):
        return []
    return [f"{name} changes nothing: no job had dedicated links" for name, set_ in given.items() if set_]


def assumed_notes(runs: Sequence[Run]) -> list[str]:
    """Notes on the traffic that policies assume when there is no simulated network."""
    reading = [run.policy for run in runs if run.network is None and run.policy in traffic_policies()]
    pattern, communication = assumed_traffic()
    return [
        f"{policy}: without --network every job is assumed to send by {pattern} for {communication:.0%} of its time, "
        "over the default routes of the machine"
        for policy in dict.fromkeys(reading)
    ]


def outage_notes(runs: Sequence[Run]) -> list[str]:
    """Notes on the jobs that failed links affected: a line for every run with outages."""
    notes = []
    for run in runs:
        if failed := run.summary.get("outages"):
            ids = ", ".join(map(str, failed["ids"][:LISTED])) + (
                ", ..." if failed["affected"] > LISTED else ""
            )
            notes.append(
                f"{run.label}, {run.queue}: {plural(failed['outages'], 'outage')}, "
                f"{plural(failed['affected'], 'running job')} affected" + (f" ({ids})" if ids else "")
            )
    return notes


def inferred_notes(runs: Sequence[Run]) -> list[str]:
    """A line on what was inferred from the recorded starts; runs of one workload infer the same."""
    inferred = next((run.summary["inferred"] for run in runs if "inferred" in run.summary), None)
    if inferred is None:
        return []
    said = []
    if "held_jobs" in inferred:
        hours = inferred["held_seconds"] / common.HOUR
        said.append(f"{plural(inferred['held_jobs'], 'job')} held, {plural(round(hours), 'hour')} in all")
    if "node_seconds_out" in inferred:
        said.append(f"{_node_hours(inferred['node_seconds_out'])} out of service")
    return [f"inferred from the recorded starts: {'; '.join(said) or 'the order of the queue'}"]


def _node_hours(seconds: float) -> str:
    """Node-seconds as `12 node hours`."""
    return plural(round(seconds / common.HOUR), "node hour")


def failure_notes(runs: Sequence[Run]) -> list[str]:
    """Notes on nodes that failed: a line for every run with failures or spare nodes."""
    notes = []
    for run in runs:
        failed = run.summary.get("failures")
        if not failed:
            continue
        lost = f"{_node_hours(failed['node_seconds_lost'])} lost"
        if failed["failures"] or failed["spares"] or not failed["interruptions"]:
            spare = f", {_node_hours(failed['node_seconds_spare'])} of spare nodes"
            notes.append(
                f"{run.label}, {run.queue}: {plural(failed['failures'], 'node failure')}, "
                f"{plural(failed['interruptions'], 'job')} interrupted, {failed['absorbed']:,} of them went on with a spare "
                f"node; {lost}" + (spare if failed["spares"] else "")
            )
        else:
            notes.append(
                f"{run.label}, {run.queue}: nodes that were down in the records interrupted "
                f"{plural(failed['interruptions'], 'job')}; {lost}"
            )
    return notes


def preemption_notes(runs: Sequence[Run]) -> list[str]:
    """Notes on jobs that made room for others: a line for every run in which some did."""
    return [
        f"{run.label}, {run.queue}: {plural(found['requeued'] + found['cancelled'], 'run')} ended to make room for other jobs, "
        f"{found['cancelled']:,} of them for good; {_node_hours(found['node_seconds_lost'])} lost"
        for run in runs
        if (found := run.summary.get("preemption"))
    ]


def print_room(runs: Sequence[Run]) -> None:
    """Prints what more would have fitted on a machine with GPUs, with a row for every run; nothing without GPUs."""
    runs = [run for run in runs if "room" in run.summary]
    if not runs:
        return
    sizes = [fit["size"] for fit in runs[0].summary["room"]["fits"] if 8 <= fit["size"] <= MOST_SHOWN]
    places = [_place(runs, size) for size in sizes]
    columns = [
        "more that fit, in the mean",
        "free\nGPUs",
        "stranded\non nodes",
        "left over from\nsegments",
        *(f"{size:,} GPUs\n({place})" for size, place in zip(sizes, places)),
        "largest job\ncould start",
    ]
    common.print_table(columns, [_room_row(run, sizes, places) for run in runs])


MOST_SHOWN = 512
"""GPUs of the largest jobs for which the table has a column."""


def _fits(run: Run, size: int) -> dict[str, float]:
    """How many more jobs of a size fit, by level."""
    room = run.summary["room"]
    (fit,) = [fit for fit in room["fits"] if fit["size"] == size]
    return dict(zip(room["levels"], fit["jobs"]))


def _place(runs: Sequence[Run], size: int) -> str:
    """The closest place that has room for jobs of a size in one of the runs."""
    for place in ("domain", "segments", "leaf", "pod"):
        if any(_fits(run, size).get(place) for run in runs):
            return place
    return "site"


def _room_row(run: Run, sizes: Sequence[int], places: Sequence[str]) -> list[str]:
    room = run.summary["room"]
    stranded = room["stranded"]
    on_nodes = stranded["without_cores"] + stranded["without_memory"] + stranded["scraps"]
    return [
        f"{run.label}, {run.queue}",
        f"{room['free']:,.0f}",
        f"{on_nodes:,.1f}",
        f"{stranded['left_over_from_segments']:,.0f}",
        *(f"{_fits(run, size).get(place, 0.0):,.1f}" for size, place in zip(sizes, places)),
        f"{room['largest']['share_of_time']:.1%}",
    ]
