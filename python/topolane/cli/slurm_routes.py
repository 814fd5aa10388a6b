"""`topolane slurm routes`: forwarding tables for the jobs that own links."""

from __future__ import annotations

import os
import shlex
import syslog
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topolane import texts
from topolane._engine import InputError
from topolane.cli.explained import ExplainedCommand
from topolane.cli.slurm_status import state_option
from topolane.units import plural

if TYPE_CHECKING:
    from topolane.slurm.routes import Result, RoutesSettings

PROLOG, EPILOG = "prolog_slurmctld", "epilog_slurmctld"


@click.command(
    cls=ExplainedCommand,
    examples={
        "Write the tables of all jobs that own links": "--machine net.txt --out lfts --install ./load",
        "Let a job fail if there are no tables": "--machine net.txt --out lfts --install ./load --strict",
    },
)
@click.option(
    "--machine",
    "machines",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The output of ibnetdiscover that topolane.conf names as Machine; give it twice for two files, in the same order.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of tables, for `opensm -R file -U FILE`.",
)
@click.option(
    "--install",
    required=True,
    metavar="COMMAND",
    help="Lets the subnet manager load the file. It runs without a shell and should end when the switches have the tables.",
)
@state_option
@click.option(
    "--wait",
    type=click.FloatRange(1, 3600),
    default=60.0,
    show_default=True,
    help="Seconds that slurmctld waits for at most, those of the command included.",
)
@click.option("--service", metavar="HOSTS", help="Hosts of storage and services, a host list.")
@click.option(
    "--service-uplinks",
    type=click.IntRange(0, 64),
    default=0,
    help="Uplink slots of every switch that only the traffic of these hosts uses.",
)
@click.option("--strict", is_flag=True, help="Fail, so that Slurm requeues the job, if there are no tables.")
def routes(
    machines: tuple[Path, ...],
    out: Path,
    install: str,
    state: Path | None,
    wait: float,
    service: str | None,
    service_uplinks: int,
    strict: bool,
) -> None:
    """Keep the jobs that own links on their links: PrologSlurmctld and EpilogSlurmctld call this.

    By hand, it installs the tables of all jobs that own links. In PrologSlurmctld and EpilogSlurmctld a fault goes to
    the system's log and the exit code is 0, so that the job runs on the subnet's default routes; see --strict.
    """
    context = os.environ.get("SLURM_SCRIPT_CONTEXT")
    try:
        result = _done(
            context,
            machines,
            out,
            install,
            state,
            wait=wait,
            service=service,
            service_uplinks=service_uplinks,
        )
    except Exception as error:
        # No error may requeue a job, unless the user asked for that.
        sentence = texts.sentence(str(error) or type(error).__name__)
        if context is not None:
            syslog.openlog("topolane", 0, syslog.LOG_DAEMON)
            syslog.syslog(syslog.LOG_ERR, f"job {os.environ.get('SLURM_JOB_ID')}: {sentence}")
        if context is None or strict:
            raise
        click.echo(f"topolane: {sentence}", err=True)
        return
    if result is not None:
        how = "" if result.is_new else " already"
        click.echo(
            f"{out}: {plural(result.links, 'link')} of {plural(result.jobs, 'job')}; the tables are installed{how}"
        )


def _done(
    context: str | None,
    machines: tuple[Path, ...],
    out: Path,
    install: str,
    state: Path | None,
    *,
    wait: float,
    service: str | None,
    service_uplinks: int,
) -> Result | None:
    from topolane.slurm import routes as work
    from topolane.slurm import state_directory

    try:
        command = tuple(shlex.split(install))
    except ValueError as error:
        raise InputError(f"--install {install}: {error}") from error
    if not command:
        raise InputError("--install: names no command")
    if service_uplinks and service is None:
        raise InputError("--service-uplinks reserves uplink slots for nodes: name these nodes with --service")
    place = state_directory.state_save_location() if state is None else state
    settings = work.RoutesSettings(machines, out, command, place, wait, service, service_uplinks)
    result = work.install_all(settings) if context is None else _for_job(settings, context)
    for job, why in result.skipped.items() if result is not None else ():
        click.echo(f"job {job} is on the subnet's default routes: {texts.sentence(why)}", err=True)
    for note in result.notes if result is not None else ():
        click.echo(texts.sentence(note), err=True)
    return result


def _for_job(settings: RoutesSettings, context: str) -> Result | None:
    from topolane.slurm import routes as work

    if context not in (PROLOG, EPILOG):
        raise InputError(f"SLURM_SCRIPT_CONTEXT={context}: this is for PrologSlurmctld and EpilogSlurmctld")
    number = _number("SLURM_JOB_ID")
    array = _number("SLURM_ARRAY_JOB_ID") if "SLURM_ARRAY_JOB_ID" in os.environ else None
    job = work.ScriptJob(number, array, os.environ.get("SLURM_JOB_NODELIST", ""))
    if context == EPILOG:
        return work.after_end(settings, job, float(_number("SLURM_JOB_START_TIME", int(time.time()))))
    result = work.before_start(settings, job)
    if result is not None and number in result.skipped:
        raise InputError(result.skipped[number])
    return result


def _number(name: str, default: int | None = None) -> int:
    word = os.environ.get(name, "" if default is None else str(default))
    if not word.isascii() or not word.isdigit():
        raise InputError(f"{name} is {texts.shown(word)}, not a number: slurmctld sets it")
    return int(word)
