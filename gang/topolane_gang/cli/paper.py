"""`topolane paper gang`: how even, how coupled and how soon jobs are under batch, free, gang and adaptive."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
from topolane.cli import common
from topolane.cli.explained import ExplainedCommand

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane_gang.study.gang import Play, PlayOutcome
    from topolane_gang.study.gang_real import Real
    from topolane_gang.study.gang_studies import Seen

OWN = ("gang-timeline.png",)
DISTURBED = 0.05
"""Share of the cores above which others are named: barriers wait for whom they delay."""


@click.command(
    "gang",
    cls=ExplainedCommand,
    examples={
        "Both parts of the study": "",
        "The simulated part": "--simulated",
    },
)
@click.option("--real", is_flag=True, help="Only on this machine's cores [default: both].")
@click.option("--simulated", is_flag=True, help="Only simulated [default: both].")
@click.option(
    "--xen",
    is_flag=True,
    help="Only the micro-benchmark, in domains of a real Xen in emulation. Needs root and what make test installs.",
)
@click.option(
    "--full",
    is_flag=True,
    help="With --xen: also slices of 100 ms, the agent's pauses, and a CoEVP-like mix.",
)
@click.option(
    "--widths",
    metavar="LIST",
    help="With --xen: virtual processors of each domain, out of 2, 4 and 8 [default: 2,4].",
)
@click.option(
    "--seconds",
    type=common.Number(0.5, 600),
    default=6.0,
    show_default=True,
    help="Of each run: how long the cores are full, or how long is counted.",
)
@click.option("--out", help="A directory for the pictures.")
@common.json_option
def command(
    real: bool,
    simulated: bool,
    xen: bool,
    full: bool,
    widths: str | None,
    seconds: float,
    out: str | None,
    as_json: bool,
) -> None:
    """Gang scheduling for predictable performance (poster), on real and simulated cores."""
    if xen:
        if real or simulated:
            raise click.UsageError("--xen goes with neither --real nor --simulated")
        from topolane_gang.cli import paper_xen

        paper_xen.run(seconds, out, as_json, full, paper_xen.widths(widths))
        return
    if full or widths:
        raise click.UsageError("--full and --widths are for --xen")
    from topolane_studies.cli.judged import print_rows, rows_json

    from topolane_gang.cli import paper_tables as tables
    from topolane_gang.study import gang, gang_judged, gang_timeline

    drawing = out is not None
    seen: dict[str, Seen] = {}
    pictures: dict[str, list[PlayOutcome]] = {}
    remark = ""
    found = gang_judged.Simulated({}, [], [])
    with common.outputs(out, OWN) as folder, tempfile.TemporaryDirectory(prefix="topolane-gang-") as name:
        if real or not simulated:
            remark = on_real_cores(Path(name), seconds, drawing, seen, pictures)
        if simulated or not real:
            with common.counting_bar("simulating", len(gang_judged.tasks(seconds))) as done:
                found = gang_judged.simulated(seconds, workers=1, done=done)
            seen |= {f"{cores} simulated": one for cores, one in found.seen.items()}
            if drawing:
                pictures[f"{gang_timeline.CORES} simulated cores"] = gang_timeline.simulated()
        if folder is not None:
            gang_timeline.write(folder, pictures)
    rows = gang_judged.judged(found) if found.seen else []
    shown = tables.every(seen, found.causes, found.mixes)
    if as_json:
        common.print_json(
            {
                "assumed": gang.ASSUMED,
                "real": remark,
                "tables": {table.name: table.dicts() for table in shown},
                "rows": rows_json(rows),
            }
        )
        return
    for table in shown:
        table.show()
    if rows:
        print_rows(rows)
    if remark:
        click.echo(remark)
    for assumption in gang.ASSUMED:
        click.echo(f"assumed: {assumption}")


def on_real_cores(
    folder: Path, seconds: float, drawing: bool, seen: dict[str, Seen], pictures: dict[str, list[PlayOutcome]]
) -> str:
    """Runs all on this machine's cores; a sentence where that could not be done, or not in peace."""
    from topolane_gang.study import gang_real, gang_studies, gang_timeline

    try:
        real = gang_real.Real(folder)
        cores = len(real.cores)
        asked = gang_studies.plays(cores, seconds)
        drawn = gang_timeline.plays(cores) if drawing else []
        others = gang_real.Others()
        with common.counting_bar("on real cores", len(asked) + len(drawn)) as done:
            played = [counted(real, play, False, done) for play in asked]
            traced = [counted(real, play, True, done) for play in drawn]
    except gang_real.CannotRun as unable:
        return f"not measured on real cores: {unable}"
    seen[f"{cores} real"] = gang_studies.seen(asked, played)
    if drawing:
        pictures[f"{cores} real cores"] = traced
    share = others.share(cores)
    return f"other programs took {share:.0%} of the real cores meanwhile" if share > DISTURBED else ""


def counted(real: Real, play: Play, trace: bool, done: Callable[[], None]) -> PlayOutcome:
    """A play, and a step of the bar."""
    played = real.play(play, trace=trace)
    done()
    return played
