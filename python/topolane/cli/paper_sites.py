"""`topolane paper sites`: MPI programs on one site and on two, their loss, and what a manager gains."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from topolane.cli import common
from topolane.cli.paper_nova import print_rows

if TYPE_CHECKING:
    from topolane.papers.sites_loss import Times

OWN = ("loss-against-traffic.png", "points.csv")


@click.command("sites")
@click.option("--quick", is_flag=True, help="Fewer latencies and programs: under a minute.")
@click.option("--out", help="A directory for the figure and its points.")
@click.option("--jobs", "workers", type=click.IntRange(1), help="Processes to use [default: all cores].")
@common.json_option
def command(quick: bool, out: str | None, workers: int | None, as_json: bool) -> None:
    """MPI on virtual clusters over several sites (2007), under SimGrid's SMPI."""
    from topolane.papers import sites, sites_loss, sites_predict, sites_scatter

    with common.outputs(out, OWN) as folder, tempfile.TemporaryDirectory(prefix="topolane-sites-") as name:
        times, missing = simulated(Path(name), quick, workers)
        if times is None:
            rows = sites_loss.not_measured(missing)
            tables: list[Table] = []
        else:
            found = sites_scatter.points(times, quick)
            rows = [*sites_loss.rows(times, quick), sites_scatter.row(found)]
            rows += sites_predict.rows(times, sites_scatter.jobs(quick))
            tables = [loss_table(times, quick), scatter_table(times, quick), prediction_table(times, quick)]
            if not quick:
                tables.insert(1, speed_table(times))
            if folder is not None:
                sites_scatter.write(folder, found)
        if as_json:
            common.print_json(
                {
                    "assumed": sites.ASSUMED,
                    "tables": {table.name: table.dicts() for table in tables},
                    "rows": [dataclasses.asdict(row) for row in rows],
                }
            )
            return
        for table in tables:
            table.show()
        print_rows(rows)
        for assumption in sites.ASSUMED:
            click.echo(f"assumed: {assumption}")


@dataclasses.dataclass(frozen=True)
class Table:
    """What is printed as a table or as JSON."""

    name: str
    title: str
    columns: tuple[str, ...]
    lines: list[tuple[Any, ...]]
    text_columns: tuple[str, ...] = ()

    def dicts(self) -> list[dict[str, Any]]:
        """For JSON."""
        return [dict(zip(self.columns, line)) for line in self.lines]

    def show(self) -> None:
        """With its title."""
        click.echo(self.title)
        common.print_table(
            self.columns, [[shown(cell) for cell in line] for line in self.lines], self.text_columns
        )


def shown(cell: Any) -> str:
    """A cell: nothing for what is not there, three or so digits of a number."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
    return str(cell)


def simulated(programs: Path, quick: bool, workers: int | None) -> tuple[Times | None, str]:
    """The times, or none and the reason why."""
    from topolane.papers import sites, sites_loss, sites_scatter, sites_smpi

    try:
        sites_smpi.build(programs)
    except sites_smpi.Missing as missing:
        return None, str(missing)
    runs = sites.unique([*sites_loss.runs(programs, quick), *sites_scatter.runs(programs, quick)])
    with common.counting_bar("simulating", sites_loss.total(runs)) as done:
        return sites_loss.simulated(programs, runs, workers=workers, done=done), ""


def loss_table(times: Times, quick: bool) -> Table:
    """Speed in halves by latency."""
    from topolane.papers import sites_loss

    wans = sites_loss.wans(quick)
    columns = [
        f"{wan.latency * 1e3:g} ms{'' if wan.window else ' free'}"
        for wan in sorted(wans, key=lambda wan: (wan.window is None, wan.latency))
    ]
    lines = []
    for job in sites_loss.jobs(quick):
        speeds = [
            100 * times.speed(job, wan)
            for wan in sorted(wans, key=lambda wan: (wan.window is None, wan.latency))
        ]
        lines.append((job.name, times.one(job) * job.whole, *speeds))
    return Table(
        "loss",
        "speed in two halves, % of one site's, by latency of the WAN; free: without TCP's window",
        ("class C", "one site (s)", *columns),
        lines,
    )


def speed_table(times: Times) -> Table:
    """What the speed of the processes does."""
    from topolane.papers import sites, sites_loss
    from topolane.papers.sites import Job, Wan

    speeds = sorted({*sites_loss.SPEEDS, sites.SPEED})
    lines = []
    for kernel in sites.KERNELS:
        job = Job(kernel, sites.sized(kernel, 32))
        lines.append((job.name, *(100 * times.speed(job, Wan(), speed) for speed in speeds)))
    return Table(
        "speeds",
        "the same at 5 ms with TCP's window, by operations a second of a process",
        ("class C", *(f"{speed:.3g}" for speed in speeds)),
        lines,
    )


def scatter_table(times: Times, quick: bool) -> Table:
    """The points of the figure."""
    from topolane.papers import sites_scatter

    lines = [
        (
            point.job.name,
            point.job.size,
            point.traffic / 1e6,
            point.turns,
            100 * point.loss,
        )
        for point in sites_scatter.points(times, quick)
    ]
    return Table(
        "scatter",
        "between the halves on one site, and loss of speed in halves at 5 ms with TCP's window",
        ("program", "class", "MB/s", "turns/s", "loss (%)"),
        lines,
        ("class",),
    )


def prediction_table(times: Times, quick: bool) -> Table:
    """What the engine is told of a program, and what it says."""
    from topolane.papers import sites_loss, sites_predict

    wans = sorted(sites_loss.wans(quick), key=lambda wan: (wan.window is None, wan.latency))
    chosen = [wan for wan in wans if wan.latency in (1e-3, 5e-3, 10e-3)]
    lines = []
    for job in sites_loss.jobs(quick):
        cut = sites_predict.cut(times, job)
        pairs = [
            f"{100 * sites_predict.loss(times, job, wan):.1f} / {100 * times.loss(job, wan):.1f}"
            for wan in chosen
        ]
        lines.append((job.name, cut.turns, cut.bytes / 1e6, *pairs))
    columns = (f"{wan.latency * 1e3:g} ms{'' if wan.window else ' free'}" for wan in chosen)
    return Table(
        "prediction",
        "loss of speed in halves, %: predicted by the engine / simulated; turns of the rank with the most, MB in the "
        "busier direction",
        ("class C", "turns/s", "MB/s", *columns),
        lines,
    )
