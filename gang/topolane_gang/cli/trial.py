"""`topolane gang try`: what gangs gain for a program of the user's."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from topolane.cli import common

from topolane_gang.cli import shared

if TYPE_CHECKING:
    from topolane_gang.trial import TrialRun


@click.command(
    "try",
    cls=shared.WithCommand,
    options_metavar="[OPTIONS] -- PROGRAM...",
    examples={
        "What gangs gain for two copies": "-- mpiexec -n 2 ./program",
        "Three copies, three runs of each kind": "--copies 3 --repeat 3 -- mpiexec -n 2 ./program",
    },
)
@click.option(
    "--copies",
    type=click.IntRange(2, 64),
    default=2,
    show_default=True,
    help="Number of copies that share the cores.",
)
@click.option(
    "--repeat", type=click.IntRange(1, 99), default=1, show_default=True, help="Number of runs of each kind."
)
@shared.cores_option
@shared.policy_option
@shared.slice_option
@shared.threads_option
@common.json_option
@click.pass_context
def try_(ctx: click.Context, /, as_json: bool, **options: Any) -> None:
    """Measure what gangs gain for PROGRAM, which must do the same work in each run.

    PROGRAM runs alone, then in copies that share the cores plainly, then in copies that are gangs. The output of the
    copies is discarded.
    """
    from topolane_gang import process_start, trial

    if not ctx.obj:
        raise click.UsageError("no program after --", ctx)
    cores = process_start.checked_cores(options["cores"])
    tried = trial.Trial(
        ctx.obj,
        options["copies"],
        options["threads"] or len(cores),
        cores,
        shared.limits(slice=options["slice_"]),
        options["policy"],
        options["repeat"],
    )
    with shared.interruptible(), common.counting_bar("runs", tried.runs) as done:
        runs = trial.run_all(tried, done)
    said = trial.notes(runs, len(cores))
    if as_json:
        shown = [asdict(run) | {"of_ideal": trial.of_ideal(run, runs[0])} for run in runs]
        common.print_json({"command": list(ctx.obj), "cores": list(cores), "runs": shown, "notes": said})
        return
    common.print_table(COLUMNS, [_row(run, trial.of_ideal(run, runs[0])) for run in runs])
    for sentence in said:
        click.echo(sentence)


COLUMNS = ("run", "copies", "first ended", "last ended", "work, of ideal", "cores used by others")


def _row(run: TrialRun, of_ideal: float | None) -> list[str]:
    return [
        run.how,
        str(run.copies),
        f"{run.first:.2f} s",
        f"{run.last:.2f} s" if run.ended else f"> {run.last:.0f} s",
        "–" if of_ideal is None else f"{100 * of_ideal:.0f} %",
        "–" if run.others is None else f"{run.others:.1f}",
    ]
