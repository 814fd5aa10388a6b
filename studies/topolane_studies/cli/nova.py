"""`topolane paper nova`: VM groups by stock Nova, by the paper's listing and by ours."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click
from topolane.cli import common
from topolane.cli.explained import ExplainedCommand

from topolane_studies.cli.judged import print_rows, rows_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_studies.nova_study import KernelTimes

KERNELS = ("bt", "sp", "lu", "cg", "mg", "ft", "is", "ep", "dt")


@click.command(
    "nova",
    cls=ExplainedCommand,
    examples={
        "A tenth of the iterations": "--quick",
        "Two kernels only": "--kernel cg --kernel mg",
    },
)
@click.option("--seeds", type=click.IntRange(1), help="Runs of each kind [default: 10; 3 with --quick].")
@click.option("--kernel", "kernels", type=click.Choice(KERNELS), multiple=True, help="Only these kernels.")
@click.option("--quick", is_flag=True, help="A tenth of the iterations, and no changed settings.")
@click.option("--out", help="A directory for figures of the times and of hop-bytes, and their points.")
@click.option("--jobs", "workers", type=click.IntRange(1), help="Processes to use [default: all cores].")
@common.json_option
def command(
    seeds: int | None,
    kernels: tuple[str, ...],
    quick: bool,
    out: str | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """Hop-byte placement of VM groups in OpenStack (2013), under SimGrid's SMPI."""
    from topolane_studies import nova, nova_figure, nova_study

    chosen = range(1, seeds + 1) if seeds else nova_study.seeds_of(quick)
    wanted = [kernel for kernel in KERNELS if kernel in (kernels or KERNELS)]
    hop_bytes = {setting.name: nova.all_hop_bytes(setting, chosen) for setting in (nova.CHOSEN, nova.NO_ROOM)}
    with common.outputs(out, nova_figure.OWN) as folder:
        counting = functools.partial(common.counting_bar, "simulating")
        times, absent = nova_study.simulated(wanted, chosen, quick, workers, counting)
        if folder is not None:
            nova_figure.write(folder, times)
    rows = nova_study.rows(times, absent)
    if as_json:
        common.print_json(
            {
                "assumed": nova.ASSUMED,
                "seeds": len(chosen),
                "hop_bytes": hop_bytes,
                "times": [described(each) for each in times],
                "rows": rows_json(rows),
            }
        )
        return
    print_hop_bytes(hop_bytes)
    print_times(times)
    print_rows(rows)
    for assumption in nova.ASSUMED:
        click.echo(f"assumed: {assumption}")


def described(times: KernelTimes) -> dict[str, Any]:
    """A kernel's times for JSON."""
    return {
        "kernel": times.kernel,
        "iterations": times.iterations,
        "setting": times.setting.name,
        "seconds": times.seconds,
        "spread": {who: times.spread(who) for who in times.seconds},
        "change_of_mean": {who: times.change(who) for who in times.seconds},
        "change_of_most": {who: times.change_of_most(who) for who in times.seconds},
    }


def print_hop_bytes(found: dict[str, dict[str, list[int]]]) -> None:
    """Hop-bytes by setting: the mean and the range over seeds."""
    who = list(next(iter(found.values())))
    lines = [
        [name, *(f"{sum(of[each]) / len(of[each]):.1f} ({min(of[each])}-{max(of[each])})" for each in who)]
        for name, of in found.items()
    ]
    common.print_table(("hop-bytes (switches)", *who), lines)


def print_times(found: Sequence[KernelTimes]) -> None:
    """Times by kernel and by who places."""
    from topolane_studies.nova_smpi import KERNELS

    lines = []
    for times in found:
        iterations = f"{times.iterations} of {KERNELS[times.kernel][1]}"
        for who in times.seconds:
            against = ["", ""]
            if who != "stock":
                against = [f"{times.change(who):+.1%}", f"{times.change_of_most(who):+.1%}"]
            seconds = [f"{times.mean(who):.2f}", f"{times.most(who):.2f}", f"{times.spread(who):.1%}"]
            lines.append([times.kernel, iterations, times.setting.name, who, *seconds, *against])
    columns = ("kernel", "iterations", "setting", "placed by", "mean (s)", "longest (s)", "spread")
    changes = ("mean\nvs stock", "longest\nvs stock")
    if lines:
        common.print_table((*columns, *changes), lines, text_columns=("setting", "placed by"))
