"""`topolane slurm status` and `topolane slurm explain`: what the plugin does, and why a job waits."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topolane import texts
from topolane.cli.common import json_option, options, print_json
from topolane.cli.explained import ExplainedCommand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Group

    from topolane.slurm.inspection import InspectionSettings, SlurmInspection
    from topolane.slurm.status import Calls, JobOutage, Outages, PluginLiveness, SlurmStatus

RUNNING = ("name", "user", "nodes", "lies in", "policy", "since", "ends by")
WAITING = ("name", "user", "nodes", "policy", "expected", "Slurm says", "why")

state_option = click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory of the plugin's state [default: slurmctld's StateSaveLocation].",
)
look_options = options(
    state_option,
    click.option(
        "--slurmrestd",
        metavar="ADDRESS",
        help="Read Slurm through slurmrestd at unix:PATH or http(s)://HOST:PORT [default: by scontrol].",
    ),
    click.option("--token-file", metavar="FILE", help="A JWT, if slurmrestd requires one."),
)


@click.command(
    cls=ExplainedCommand,
    examples={
        "Is the plugin at work, and what runs where": "",
        "Look again every 10 seconds": "--watch 10",
    },
)
@look_options
@click.option("--svg", metavar="FILE", help="Also draw the tree with its jobs into this SVG file.")
@click.option("--watch", type=click.FloatRange(1, 3600), metavar="SECONDS", help="Repeat at this interval.")
@json_option
def status(
    state: Path | None,
    slurmrestd: str | None,
    token_file: str | None,
    svg: str | None,
    watch: float | None,
    as_json: bool,
) -> None:
    """Show whether the plugin works, what it decided, what runs, and why jobs wait.

    Nothing is changed. Run it as root or as the user of slurmctld, who may read the plugin's state. The exit code is 1 if the
    plugin is not active, if it writes no state, or if the engine does not decide.
    """
    settings = settings_of(state, slurmrestd, token_file)
    if watch is not None and sys.stdout.isatty() and not as_json:
        _live(settings, svg, watch)
        return
    while True:
        found = _look(settings, svg)
        _print(found, as_json)
        if watch is None:
            sys.exit(0 if found.liveness.is_well else 1)
        sys.stdout.flush()
        time.sleep(watch)


@click.command(
    cls=ExplainedCommand,
    examples={
        "Why job 97 waits": "97",
        "A task of an array, as JSON": "97_3 --json",
    },
)
@look_options
@click.argument("job", metavar="JOBID")
@json_option
def explain(
    state: Path | None, slurmrestd: str | None, token_file: str | None, job: str, as_json: bool
) -> None:
    """Explain why a job waits, or where it runs. JOBID is as squeue prints it: 97, 97_3, 97_[2-6%1], 97+1."""
    from topolane.slurm.explain import explain as explanation
    from topolane.slurm.inspection import inspect

    look = inspect(settings_of(state, slurmrestd, token_file))
    said = explanation(look, job)
    if as_json:
        print_json(dataclasses.asdict(said))
        return
    for sentence in (*said.sentences, *look.problems):
        click.echo(texts.printable(sentence))


def settings_of(state: Path | None, slurmrestd: str | None, token_file: str | None) -> InspectionSettings:
    """Where to look."""
    from topolane.slurm.inspection import InspectionSettings

    return InspectionSettings(state, slurmrestd, token_file)


def _look(settings: InspectionSettings, svg: str | None) -> SlurmStatus:
    from topolane.slurm.inspection import inspect
    from topolane.slurm.status import status as rows

    look = inspect(settings)
    if svg is not None:
        _draw(look, svg)
    return rows(look)


def _draw(look: SlurmInspection, file: str) -> None:
    from topolane._engine import InputError
    from topolane.cli.live_status import draw
    from topolane.slurm.view import view

    if look.machine is None:
        raise InputError(
            f"--svg {file}: the machine is not known: {' '.join(look.problems) or 'no state names it'}"
        )
    draw(file, look.machine, view(look), frozenset(look.closed))


def _print(found: SlurmStatus, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    from rich.console import Console

    width = None if sys.stdout.isatty() else 200
    Console(width=width, highlight=False, markup=False).print(_shown(found))


def _live(settings: InspectionSettings, svg: str | None, seconds: float) -> None:
    from rich.console import Console
    from rich.live import Live

    # The name of a job is no markup.
    console = Console(highlight=False, markup=False)
    with Live(_shown(_look(settings, svg)), console=console, auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(seconds)
            live.update(_shown(_look(settings, svg)), refresh=True)


def _shown(found: SlurmStatus) -> Group:
    from rich.console import Group
    from rich.text import Text

    from topolane.cli.live_status import tables, totals

    lines = [*_health(found.liveness, found.time), *_decisions(found.calls), *totals(found)]
    lines += outage_lines(found.outages)
    lines += found.files
    if found.backups:
        lines.append(
            f"backup controllers: {listed(found.backups)}; `topolane slurm status` on each compares its files with those in use"
        )
    lines += [one for one in found.problems if one not in (found.liveness.why or "")]
    return Group(Text("\n".join(map(texts.printable, lines))), *tables(found, RUNNING, WAITING))


def _health(found: PluginLiveness, now: float) -> list[str]:
    """Whether the plugin works, in lines."""
    from topolane.units import clock, duration, plural

    state = "active" if found.active else "not active" if found.active is False else "not known to be active"
    if found.active and found.decides is False:
        state = "active, but the engine does not decide"
    line = f"topology/topolane: {'stale' if found.stale else state}"
    if found.since is not None:
        line += f", loaded {clock(found.since, now)}"
    if found.written is not None:
        line += f", state written {duration(max(now - found.written, 0))} ago"
    lines = [line, *([] if found.why is None else [found.why])]
    if found.machine is not None:
        lines.append(f"machine file: {found.machine}, {plural(found.machine_nodes, 'node')}")
    if found.unnamed:
        lines.append(
            f"not in the machine file: {plural(found.unnamed, 'node')}, such as {found.such_as}; stock Slurm chooses among them"
        )
    return lines + [f"assumed: {one}" for one in found.assumed]


def _decisions(found: Calls | None) -> list[str]:
    """How calls ended and how long they took, in lines."""
    from topolane.slurm.plugin_state import STOCK
    from topolane.units import percent

    if found is None:
        return []
    if not found.calls:
        return ["Slurm has not called the plugin yet"]
    names = {
        "placed": "placed by a policy",
        "kept_off": "stock kept off isolated jobs",
        "in_area": "stock in an area",
    }
    names |= {"refused": "refused", "held": "waiting for the engine"}
    ends = [
        f"{words} {percent(found.ends[name] / found.calls)}"
        for name, words in names.items()
        if found.ends[name]
    ]
    lines = [f"calls: {found.calls:,}" + (f"; {', '.join(ends)}" if ends else "")]
    why = [
        f"{percent(found.ends[name] / found.calls)} {words}"
        for name, words in STOCK.items()
        if found.ends[name]
    ]
    lines.append(
        f"stock decided {percent(found.stock / found.calls)}" + (f": {'; '.join(why)}" if why else "")
    )
    if found.recent.reasons:
        lines.append(f"of the last {found.recent.calls} calls: {found.recent.reasons}")
    if found.median is not None and found.p99 is not None:
        limit = "" if found.limit is None else f"; the engine may take {_short(found.limit)}"
        lines.append(
            f"time of a call: median under {_short(found.median)}, 99 % under {_short(found.p99)}, longest "
            f"{_short(found.longest)}{limit}"
        )
    if found.links_unwritten:
        lines.append(f"the file of owned links could not be written {found.links_unwritten:,} times")
    return lines


def _short(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


def outage_lines(found: Outages | None) -> list[str]:
    """The links out of service and the jobs that they touch, in lines."""
    from topolane.units import plural

    if found is None:
        return []
    lines = []
    if found.failed or found.reserved:
        kept = f"; {plural(found.reserved, 'link')} reserved for services" if found.reserved else ""
        names = f": {listed(found.failed)}" if found.failed else ""
        lines.append(f"{plural(len(found.failed), 'link')} out of service{names}{kept}")
    lines += map(job_line, found.jobs)
    if found.taken_over is not None and found.taken_over != found.wanted:
        lines.append(
            f"the plugin keeps {plural(found.taken_over, 'link')} from new jobs until it takes that over, at its next call"
        )
    return lines


def job_line(one: JobOutage) -> str:
    """The failed links that a job uses, in a line."""
    owns = f"owns {listed(one.owns)}" if one.owns else ""
    may_use = f"may use {listed(one.may_use)}" if one.may_use else ""
    return f"job {one.job} {' and '.join(filter(None, (owns, may_use)))}"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names with commas; of many only the first."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
