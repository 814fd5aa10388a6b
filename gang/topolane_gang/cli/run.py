"""`topolane gang run`: the agent."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from topolane._engine import InputError
from topolane.cli import common

from topolane_gang.cli import shared

if TYPE_CHECKING:
    from topolane_gang.agent import Agent, AgentJob, Limits
    from topolane_gang.daemon import Daemon
    from topolane_gang.jobs_file import JobSpec

_LOOK = 0.05


@click.command(
    cls=shared.WithCommand,
    options_metavar="[OPTIONS] [FILE]",
    examples={
        "Run one MPI program as a gang": "-- mpiexec -n 2 ./program",
        "Wait for jobs of `topolane gang add`": "--cores 0-3",
    },
)
@click.argument("file", required=False, metavar="[-- COMMAND...]")
@shared.policy_option
@shared.cores_option
@shared.slice_option
@click.option(
    "--delay",
    type=common.Number(0.001, 3600),
    metavar="SECONDS",
    help="Longest time that a gang waits for its slice [default: 1].",
)
@click.option(
    "--switch-by",
    type=click.Choice(["freeze", "freezer", "signals", "pool", "pause"]),
    help="How jobs are stopped: control groups version 2 or 1, or SIGSTOP [default: the first that works]. With --xen: "
    "by Xen in a pool, or by pauses [default: pool for gang and free].",
)
@click.option(
    "--xen", is_flag=True, help="Run domains of Xen on these cores of the machine. The agent runs in dom0."
)
@shared.threads_option
@shared.weight_option
@shared.watch_option
@shared.name_option
@shared.socket_option
@click.pass_context
def run(ctx: click.Context, /, file: str | None, **options: Any) -> None:
    """Run the jobs in FILE, or one COMMAND, as gangs, together with jobs added by `topolane gang add`.

    With FILE, the agent runs until all jobs of it have ended; the exit code is 1 if one of them failed. With COMMAND,
    it runs until the command has ended; the exit code is that of the command. With neither, it runs until SIGINT,
    SIGTERM or `topolane gang stop`.
    """
    from topolane_gang import jobs_file
    from topolane_gang.control import listening
    from topolane_gang.daemon import Daemon
    from topolane_gang.jobs_file import JobSpec

    if file is not None and ctx.obj:
        raise InputError("give a FILE or a command after --, not both")
    if options["xen"] and (file is not None or ctx.obj):
        raise InputError("--xen starts no jobs: add running domains by `topolane gang add --xen NAME`")
    if not ctx.obj:
        _refuse_options_of_commands(ctx)
    asked = jobs_file.read(file) if file is not None else []
    limits = shared.limits(slice=options["slice_"], delay=options["delay"])
    path = shared.socket_of(options["socket"])
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listening(path))
        stack.callback(Path(path).unlink, missing_ok=True)
        agent = stack.enter_context(_agent(limits, options))
        for sentence in agent.means.missing:
            _note(sentence)
        if ctx.obj:
            name = options["name"] or os.path.basename(ctx.obj[0])
            threads = options["threads"] or len(agent.cores)
            asked = [JobSpec(name, tuple(ctx.obj), threads, options["weight"], watch=options["watch"])]
        daemon = Daemon(agent, listener)
        jobs = [_started(agent, one) for one in asked]
        codes = _until_ended(daemon, agent, jobs, named=not ctx.obj)
    sys.exit(codes[0] if ctx.obj else int(any(codes)))


def _refuse_options_of_commands(ctx: click.Context) -> None:
    """Raises InputError if an option was given that only a command after -- has."""
    for name in ("threads", "weight", "watch", "name"):
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(f"--{name} is for a command after --, and there is none")


def _agent(limits: Limits, options: dict[str, Any]) -> Agent:
    from topolane_gang.agent import Agent
    from topolane_gang.xen import XenPool, switched_by

    policy, cores, by = options["policy"], options["cores"], options["switch_by"]
    if options["xen"]:
        if options["delay"] and switched_by(policy, by) == "pool":
            raise InputError("--delay is for an agent that switches itself: use --switch-by pause")
        return Agent(policy, limits=limits, pool=XenPool(policy, cores, by))
    if by in ("pool", "pause"):
        raise InputError(f"--switch-by {by} is for domains of Xen: give --xen")
    return Agent(policy, cores, limits, switch_by=by)


def _started(agent: Agent, one: JobSpec) -> AgentJob:
    if one.threads > len(agent.cores):
        _note(
            f"job {one.name} has {one.threads} threads, but there are {len(agent.cores)} cores: its threads take turns "
            "in slices that no other job uses"
        )
    return agent.start(
        one.name,
        one.command,
        threads=one.threads,
        weight=one.weight,
        directory=one.directory,
        environment=one.environment,
        watch=one.watch,
    )


def _until_ended(daemon: Daemon, agent: Agent, jobs: list[AgentJob], named: bool) -> list[int]:
    """Waits for jobs. Returns their exit codes as in a shell, including those of jobs that were stopped with
    the agent.

    named: says which jobs fail, and how.
    """
    lost: set[int] = set()
    ended: set[int] = set()
    is_signalled = False

    def leave(number: int, _: object) -> None:
        nonlocal is_signalled
        is_signalled = True
        daemon.stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)
    while not daemon.stopping.wait(_LOOK):
        for one in agent.jobs():
            if one.state == "lost" and one.id not in lost:
                lost.add(one.id)
                _note(
                    f"job {one.name} is lost, {one.reason}: it runs on without the agent; the other jobs are not affected"
                )
            if one.state == "ended" and one.id not in ended:
                ended.add(one.id)
                if (code := agent.job(one.id).returned()) and named:
                    _note_failure(one.name, code)
        if jobs and all(job.returned() is not None for job in jobs) and not _others(agent, jobs):
            break
    codes = []
    for job in jobs:
        code = job.returned()
        if code is None:
            code = agent.end(job)
        elif code and named and job.id not in ended:
            _note_failure(job.name, code)
        codes.append(_as_in_a_shell(code or 0))
    return codes or [130 if is_signalled else 0]


def _as_in_a_shell(code: int) -> int:
    return 128 - code if code < 0 else code


def _note_failure(name: str, code: int) -> None:
    how = f"was ended by signal {-code}" if code < 0 else "failed"
    _note(f"job {name} {how}: exit code {_as_in_a_shell(code)}")


def _others(agent: Agent, jobs: list[AgentJob]) -> bool:
    """Whether jobs run that were added by other commands."""
    ours = {job.id for job in jobs}
    return any(job.id not in ours and job.state not in ("ended", "lost") for job in agent.jobs())


def _note(sentence: str) -> None:
    click.echo(f"topolane: {sentence}", err=True)
