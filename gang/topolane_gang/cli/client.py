"""`topolane gang add|list|stop|top`: talking to a running agent."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click
from topolane._engine import InputError
from topolane.cli import common
from topolane.cli.explained import ExplainedCommand

from topolane_gang.cli import shared

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command(
    cls=shared.WithCommand,
    options_metavar="[OPTIONS] [-- COMMAND...]",
    examples={
        "Add a command with twice the weight": "--threads 2 --weight 2 -- ./other",
        "Add a process that runs already": "--pid 4711",
    },
)
@click.option(
    "--pid", "pids", type=click.IntRange(1, 1 << 30), multiple=True, help="Add this running process."
)
@click.option(
    "--guest",
    metavar="NAME|SOCKET|PID",
    help="Add the virtual cores of this guest: its name in libvirt, its QMP socket or the process ID of QEMU.",
)
@click.option(
    "--slurm-step",
    metavar="JOB[.STEP]",
    help="Add the part of a Slurm job, or of one of its steps, that runs on this node.",
)
@click.option("--cgroup", metavar="PATH", help="Add all that is in this control group, which it stays in.")
@click.option("--unit", metavar="NAME", help="Add a unit of systemd: a service, scope or slice.")
@click.option("--xen", metavar="DOMAIN", help="Add a domain of Xen by its name, number or UUID, in dom0.")
@click.option("--container", metavar="ID", help="Add a container by its ID or the beginning of it.")
@shared.threads_option
@shared.watch_option
@shared.weight_option
@shared.name_option
@shared.socket_option
@click.pass_context
def add(ctx: click.Context, /, pids: tuple[int, ...], **options: Any) -> None:
    """Add a job to the running agent: a COMMAND to start, or processes that run already."""
    from topolane_gang import control

    named = {kind: options[kind] for kind in ADOPTED if options[kind] is not None}
    if len(named) + bool(pids) + bool(ctx.obj) != 1:
        kinds = ", ".join(f"--{kind.replace('_', '-')}" for kind in ADOPTED)
        raise InputError(f"give one of: a command after --, --pid, {kinds}")
    if options["watch"] and not ctx.obj:
        raise InputError(
            "--watch is for a command after --: it cannot be turned on in a program that runs already"
        )
    if options["threads"] and options["xen"]:
        raise InputError("--threads is not for --xen: the threads of a domain are its virtual processors")
    request: dict[str, Any] = {"do": "add", "weight": options["weight"]}
    files: tuple[int, ...] = ()
    if ctx.obj:
        request |= {
            "name": os.path.basename(ctx.obj[0]),
            "command": ctx.obj,
            "directory": os.getcwd(),
            "environment": dict(os.environ),
            "watch": options["watch"],
        }
        files = (sys.stdout.fileno(), sys.stderr.fileno())
    else:
        request |= _adopted(*named.popitem()) if named else {"name": f"process-{pids[0]}", "pids": pids}
    request |= {key: options[key] for key in ("name", "threads") if options[key]}
    click.echo(control.ask(shared.socket_of(options["socket"]), request, files))


ADOPTED = ("guest", "slurm_step", "cgroup", "unit", "container", "xen")
"""The options that name something which runs already, in addition to --pid."""


def _adopted(kind: str, named: str) -> dict[str, Any]:
    """The request to adopt something that runs."""
    if kind == "guest":
        from topolane_gang import guests

        found = guests.guest(named)
        return {"name": f"guest-{os.path.basename(found.name)}", "tids": found.threads}
    if kind == "slurm_step":
        from topolane_gang import slurm_steps

        step = slurm_steps.step(named)
        members = {"groups": list(map(str, step.groups))} if step.groups else {"pids": step.processes}
        return {"name": f"slurm-{step.name}", "threads": step.threads, **members}
    if kind == "xen":
        return {"name": named, "domain": named}
    from topolane_gang import control_groups

    find = {
        "cgroup": control_groups.group,
        "unit": control_groups.unit,
        "container": control_groups.container,
    }
    group = find[kind](named)
    return {"name": named if kind == "unit" else group.name[:24], "groups": [str(group)]}


@click.command(
    "list",
    cls=ExplainedCommand,
    examples={
        "Jobs and the time that each has had": "",
        "The same as JSON": "--json",
    },
)
@shared.socket_option
@common.json_option
def list_(socket: str | None, as_json: bool) -> None:
    """List the jobs of the running agent and the time each has had."""
    from topolane_gang import control

    shown = control.ask(shared.socket_of(socket), {"do": "show"})
    if as_json:
        common.print_json(shown)
        return
    common.print_table(COLUMNS, [_row(job) for job in shown["jobs"]], ["name", "state", "cores"])
    for job in shown["jobs"]:
        if job["reason"]:
            click.echo(f"{job['name']}: {job['reason']}")


COLUMNS = ("job", "name", "state", "threads", "weight", "cores", "CPU s", "given s", "blocked", "meets every")


def _row(job: dict[str, Any]) -> list[str]:
    given = job["given"]
    return [
        str(job["id"]),
        job["name"],
        job["state"],
        str(job["threads"]),
        f"{job['weight']:g}",
        ",".join(map(str, job["cores"])),
        shared.seconds(job["cpu"]),
        shared.seconds(given),
        f"{100 * min(1, job['blocked'] / given):.0f} %" if given > 0 else "–",
        f"{1e3 * job['barrier']:.3g} ms" if job["barrier"] else "–",
    ]


@click.command(
    cls=ExplainedCommand,
    examples={
        "End one job": "web1",
        "End the agent and all jobs that it started": "",
    },
)
@click.argument("job", required=False)
@click.option(
    "--grace",
    type=common.Number(0, 20),
    default=5.0,
    show_default=True,
    help="Time from SIGTERM to SIGKILL.",
)
@shared.socket_option
def stop(job: str | None, grace: float, socket: str | None) -> None:
    """End JOB, given by name or number. Without JOB, end the agent and all jobs that it started."""
    from topolane_gang import control

    stopped = control.ask(shared.socket_of(socket), {"do": "stop", "job": job, "grace": grace})
    for name in stopped:
        click.echo(f"{name} ended")


@click.command(
    cls=ExplainedCommand,
    examples={
        "Watch the slices": "",
        "Print them once as JSON": "--json",
    },
)
@click.option(
    "--interval",
    type=common.Number(0.05, 60),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="Time between two updates.",
)
@shared.socket_option
@common.json_option
def top(interval: float, socket: str | None, as_json: bool) -> None:
    """Show the slices live: a row for each slice, a column for each core. Print once if the output is no terminal."""
    from topolane_gang import control

    path = shared.socket_of(socket)
    shown = control.ask(path, {"do": "show"})
    if as_json:
        common.print_json(shown)
        return
    if not sys.stdout.isatty():
        for headings, rows in _tables(shown):
            common.print_table(headings, rows, headings[:-1])
        return
    from rich.live import Live

    with Live(_rendered(shown), screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(interval)
            live.update(_rendered(control.ask(path, {"do": "show"})), refresh=True)


def _tables(shown: dict[str, Any]) -> list[tuple[list[str], list[list[str]]]]:
    from topolane_gang.status import matrix_rows

    headings = ["now", "slice", *(f"core {core}" for core in shown["agent"]["cores"])]
    return [(headings, matrix_rows(shown)), (list(COLUMNS), [_row(job) for job in shown["jobs"]])]


def _rendered(shown: dict[str, Any]) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.table import Table

    agent = shown["agent"]
    cores = ",".join(map(str, agent["cores"]))
    by = f"switched by {agent['switched_by']}, process {agent['process']}"
    parts: list[RenderableType] = [f"{agent['policy']} on cores {cores}, {by}"]
    for headings, rows in _tables(shown):
        table = Table(*headings, box=box.SIMPLE_HEAD, pad_edge=False)
        for row in rows:
            table.add_row(*row, style="bold" if row[0] == "*" else None)
        parts.append(table)
    return Group(*parts)
