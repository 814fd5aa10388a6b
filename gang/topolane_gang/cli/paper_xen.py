"""`topolane paper gang --xen`: the micro-benchmark in domains of a real Xen, next to the simulated hypervisor's."""

from __future__ import annotations

import resource
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import click
from topolane._engine import InputError
from topolane.cli import common
from topolane.cli.table import PrintedTable
from topolane.sweep.seeds import mean_of
from topolane_studies.cli.judged import print_rows, rows_json

from topolane_gang.study import gang, gang_studies, gang_xen, xen_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_gang.study.gang import Done
    from topolane_gang.study.gang_xen import Found, InStep, XenMix

SIDE_BY_SIDE = 2
"""Emulated machines at the same time: each takes one core of this machine."""

SHOWN = (
    "time is counted in instructions of all emulated cores, which take turns in one thread and do not get equally many. "
    "So an iteration is a span of Xen's own clock. This shows which virtual processor Xen lets run when, not how fast"
)


PANICS = "Xen panicked, so often: {}. Each time the machine was booted again, and what was not measured yet was measured there"


def widths(text: str | None) -> tuple[int, ...]:
    """Virtual processors of each domain: 2,4. Raises UsageError."""
    try:
        chosen = tuple(sorted({int(word) for word in text.split(",")})) if text else gang_xen.WIDTHS
    except ValueError:
        chosen = ()
    if not chosen or not set(chosen) <= set(gang_xen.ALLOWED):
        allowed = ", ".join(map(str, gang_xen.ALLOWED))
        raise click.UsageError(f"--widths: {text} is not a list of numbers out of {allowed}")
    return chosen


def run(seconds: float, out: str | None, as_json: bool, full: bool, chosen: Sequence[int]) -> None:
    """Measures, simulates the same, prints both."""
    from topolane_gang.study import gang_judged, gang_xen_pictures

    iterations = gang.even_iterations(seconds)
    began, before = time.monotonic(), processor_time()

    with (
        common.outputs(out, gang_xen_pictures.OWN) as folder,
        tempfile.TemporaryDirectory(prefix="topolane-xen-") as name,
    ):
        found = measured(Path(name), seconds, full, chosen)
        simulated = [gang_xen.simulated(one, iterations) for one in found.steps]
        if folder is not None:
            gang_xen_pictures.write(folder, found.steps, simulated)
    rows = gang_judged.judged_on_xen(found.steps)
    tables = [table(found.steps, simulated), *([mixes(found.mixes)] if found.mixes else [])]
    took = f"{(time.monotonic() - began) / 60:.1f} minutes, and {(processor_time() - before) / 60:.1f} minutes of processors"
    if as_json:
        common.print_json(
            {
                "tables": {one.name: one.dicts() for one in tables},
                "rows": rows_json(rows),
                "emulation": SHOWN,
                "panics": found.panics,
                "took": took,
            }
        )
        return
    for one in tables:
        one.show()
    print_rows(rows)
    if found.panics:
        click.echo(PANICS.format(len(found.panics)))
    click.echo(f"emulated: {SHOWN}")
    click.echo(f"took {took}")


def processor_time() -> float:
    """Seconds of all programs that were started here and have ended: the emulated machines."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(folder: Path, seconds: float, full: bool, chosen: Sequence[int]) -> Found:
    """All settings, the widest domains first."""
    iterations = gang.even_iterations(seconds)

    def one(width: int) -> Found:
        own = folder / str(width)
        own.mkdir()
        more, mix = (gang_xen.MORE, gang_xen.MIXED) if full else ((), ())
        schedulers = (*gang_xen.SCHEDULERS, *more)
        return gang_xen.measure(own, width, gang_xen.COUNTS, iterations, schedulers, mix, seconds)

    try:
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            each = list(pool.map(one, sorted(chosen, reverse=True)))
    except (xen_machine.NoXenMachine, xen_machine.Failed) as error:
        raise InputError(f"not measured on Xen: {error}") from error
    each.reverse()
    return gang_xen.Found(
        [step for some in each for step in some.steps],
        [mixed for some in each for mixed in some.mixes],
        [panic for some in each for panic in some.panics],
    )


def table(found: Sequence[InStep], simulated: Sequence[InStep | None]) -> PrintedTable:
    """What was seen, and what the simulated hypervisor makes of the same."""
    return PrintedTable(
        "xen",
        "iterations in step: they end at most one iteration after the other threads of the domain; mean of the domains, "
        "and half of its 95 % interval. Counted: by Xen's count of the time that each virtual processor ran, whether or "
        "not its thread has looked at the clock then",
        (
            "cores",
            "domains",
            "next to",
            "scheduler",
            "in step (%)",
            "give or take",
            "worst lag (ms)",
            "counted (%)",
            "counted lag (ms)",
            "simulated (%)",
            "simulated lag (ms)",
        ),
        [
            (
                real.setting.width,
                real.setting.domains,
                "one that blocks" if real.setting.blocking else "",
                real.setting.scheduler.name,
                *(*in_step(real.done), 1e3 * gang_xen.worst(real.done)),
                in_step(real.counted)[0],
                1e3 * gang_xen.worst(real.counted),
                *((in_step(model.done)[0], 1e3 * gang_xen.worst(model.done)) if model else (None, None)),
            )
            for real, model in zip(found, simulated)
        ],
        ("next to", "scheduler"),
    )


def in_step(done: Sequence[Done]) -> tuple[float | None, float | None]:
    """The mean of the domains' shares and half of its interval, in per cent."""
    shares = gang_xen.shares(done)
    if not shares:
        return None, None
    mean = mean_of(shares)
    return 100 * mean.mean, 100 * (mean.half or 0.0)


def mixes(found: Sequence[XenMix]) -> PrintedTable:
    """How soon the jobs of the mix ended, on Xen and simulated."""
    lines = []
    for one in found:
        real = gang_studies.mixed(one.scheduler.name, one.done)
        simulated = gang_xen.simulated_mix(one)
        model = gang_studies.mixed(one.scheduler.name, simulated) if simulated else None
        figures = (model.turnaround, model.last) if model else (None, None)
        lines.append((one.width, one.scheduler.name, real.turnaround, real.last, *figures))
    return PrintedTable(
        "mix",
        "the CoEVP-like mix: mean seconds from arrival to end, and until all have ended",
        ("cores", "scheduler", "mean", "all", "simulated mean", "simulated all"),
        lines,
        ("scheduler",),
    )
