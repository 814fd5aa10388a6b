"""`topolane paper gang --xen`: the micro-benchmark in domains of a real Xen, next to the simulated hypervisor's."""

from __future__ import annotations

import dataclasses
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topolane._engine import InputError
from topolane.cli import common
from topolane.studies import gang, gang_xen, xen_machine
from topolane.studies.cli.sites_tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane.studies.gang import Expectation
    from topolane.studies.gang_xen import InStep

SIDE_BY_SIDE = 2
"""Emulated machines at the same time: each takes one core of this machine."""

SHOWN = (
    "time is counted in instructions of all emulated cores, which take turns in one thread and do not get equally many. "
    "So an iteration is a span of Xen's own clock. This shows which virtual processor Xen lets run when, not how fast"
)


def run(seconds: float, out: str | None, as_json: bool) -> None:
    """Measures, simulates the same, prints both."""
    from topolane.studies import gang_xen_pictures

    iterations = gang.even_iterations(seconds)

    with (
        common.outputs(out, gang_xen_pictures.OWN) as folder,
        tempfile.TemporaryDirectory(prefix="topolane-xen-") as name,
    ):
        found = measured(Path(name), iterations)
        simulated = [gang_xen.simulated(one.setting, iterations) for one in found]
        if folder is not None:
            gang_xen_pictures.write(folder, found, simulated)
    rows = gang_xen.expectations(found)
    shown = table(found, simulated)
    if as_json:
        common.print_json(
            {
                "table": shown.dicts(),
                "expectations": [dataclasses.asdict(row) for row in rows],
                "emulation": SHOWN,
            }
        )
        return
    shown.show()
    print_expectations(rows)
    click.echo(f"emulated: {SHOWN}")


def measured(folder: Path, iterations: int) -> list[InStep]:
    """All settings, the widest domains first."""

    def one(width: int) -> list[InStep]:
        own = folder / str(width)
        own.mkdir()
        return gang_xen.measure(own, width, gang_xen.COUNTS, iterations)

    try:
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            each = list(pool.map(one, sorted(gang_xen.WIDTHS, reverse=True)))
    except (xen_machine.Unable, xen_machine.Failed) as error:
        raise InputError(f"not measured on Xen: {error}") from error
    return [one for some in reversed(each) for one in some]


def table(found: Sequence[InStep], simulated: Sequence[InStep | None]) -> Table:
    """What was seen, and what the simulated hypervisor makes of the same."""
    return Table(
        "xen",
        "iterations in step: they end at most one iteration after the other threads of the domain; mean of the domains, "
        "and half of its 95 % interval",
        (
            "cores",
            "domains",
            "scheduler",
            "in step (%)",
            "give or take",
            "worst lag (ms)",
            "simulated (%)",
            "lag (ms)",
        ),
        [
            (
                real.setting.width,
                real.setting.domains,
                real.setting.scheduler.name,
                100 * real.mean.mean,
                100 * (real.mean.half or 0.0),
                1e3 * real.worst,
                *((100 * model.mean.mean, 1e3 * model.worst) if model else (None, None)),
            )
            for real, model in zip(found, simulated)
        ],
        ("scheduler",),
    )


def print_expectations(rows: Sequence[Expectation]) -> None:
    """What was not met has failed."""
    common.print_table(
        ("what", "expected", "seen", "met", "why"),
        [[row.what, row.expected, row.seen, "yes" if row.met else "failed", row.why] for row in rows],
        text_columns=("what", "expected", "seen", "why"),
    )
