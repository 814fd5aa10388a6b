"""`topolane k8s plan` and `topolane k8s apply`: room for a waiting group of pods by evicting others."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topolane import texts
from topolane.cli.common import json_option, print_json
from topolane.cli.explained import ExplainedCommand
from topolane.cli.k8s_common import cluster_options, connected, keys, machine_options
from topolane.cli.room_common import bound, no_room_is_reported, plan_argument, steps_printed, timeout_option

if TYPE_CHECKING:
    from topolane._engine import Machine
    from topolane.kubernetes.room_plan import EvictionPlan


@click.command(
    cls=ExplainedCommand,
    examples={
        "Which pods to evict so that 'train' starts": "--room-for default/train --out plan.json",
        "Leave one namespace alone": "--room-for default/train --untouchable namespace=prod",
    },
)
@click.option("--room-for", metavar="NAMESPACE/GROUP", required=True, help="The waiting group.")
@click.option(
    "--untouchable",
    multiple=True,
    metavar="KIND=NAME",
    help="Pods that must stay: namespace=NAME, priorityclass=NAME or group=NAMESPACE/NAME; as often as wanted.",
)
@click.option(
    "--any-priority", is_flag=True, help="Evict also what has a higher priority than the waiting group."
)
@click.option("--without-controller", is_flag=True, help="Evict also pods that no controller replaces.")
@click.option("--out", metavar="FILE", help="Also write the plan into this file.")
@cluster_options
@machine_options
@json_option
def plan(
    room_for: str,
    untouchable: tuple[str, ...],
    any_priority: bool,
    without_controller: bool,
    out: str | None,
    kubeconfig: str | None,
    context: str | None,
    machine: str | None,
    labels: str | None,
    config: str | None,
    as_json: bool,
) -> None:
    """Plan which groups and single pods to evict so that a waiting group starts, at the least cost.

    Nothing is changed. The group's own policy is asked what it would do once some pods are gone. A group goes whole, and loses its
    work since it started. Pods stay that disruption budgets protect, that have a higher priority, that no controller replaces, and
    those of DaemonSets and of the system. The exit code is 1 if there is no plan.
    """
    with connected(kubeconfig, context) as cluster:
        from topolane.cluster import room_files
        from topolane.kubernetes import room_plan
        from topolane.kubernetes.budgets import budgets
        from topolane.kubernetes.inspection import Where, inspect

        kept = room_plan.ProtectedPods.of(untouchable, any_priority, without_controller)
        if out is not None:
            room_files.check(out)
        look = inspect(cluster, Where(config, machine, keys(labels)))
        with no_room_is_reported():
            found = room_plan.make_plan(look, budgets(cluster), room_for, kept)
    if out is not None:
        room_files.write(out, found)
    if as_json:
        print_json(dataclasses.asdict(found))
    else:
        _print(found, out, look.machine)


@click.command(
    cls=ExplainedCommand,
    examples={
        "Carry out a plan": "plan.json",
        "Give it up": "plan.json --undo",
    },
)
@plan_argument
@timeout_option(600.0, "How long to wait until the group has its nodes.")
@click.option(
    "--undo", is_flag=True, help="Give up a plan that was begun: open its nodes, evict nothing more."
)
@cluster_options
@machine_options
@json_option
def apply(
    plan_file: Path,
    timeout: float,
    undo: bool,
    kubeconfig: str | None,
    context: str | None,
    machine: str | None,
    labels: str | None,
    config: str | None,
    as_json: bool,
) -> None:
    """Carry out a plan of `topolane k8s plan --out`: evict its pods, and keep the nodes of the plan until the waiting group has them.

    If the plan is no longer true, nothing is changed. A taint keeps the nodes for the waiting group. Each step is first written to
    PLAN.journal. After a crash, run the command again: it goes on, and evicts no pod twice. The exit code is 1 if the plan is no longer
    true or the group has not started in time; the nodes are open again then.
    """
    with connected(kubeconfig, context) as cluster:
        from topolane.kubernetes.inspection import Where
        from topolane.kubernetes.room_apply import ClusterHost, EvictionApplying

        host = ClusterHost(cluster, Where(config, machine, keys(labels)))
        with steps_printed(as_json) as tell:
            EvictionApplying.apply(plan_file, host, seconds=timeout, undo=undo, tell=tell)


def _print(found: EvictionPlan, out: str | None, machine: Machine | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from topolane.cluster.hosts import hostlist
    from topolane.units import clock, plural

    click.echo(
        texts.printable(
            f"Group {found.group} gets {plural(len(found.nodes), 'node')} under {found.policy}: {hostlist(machine, found.nodes)}."
        )
    )
    if not found.evicted:
        click.echo("Nothing must be evicted for that: the nodes are free, and so are the links.")
    else:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in ("evict", "pods", "nodes", "runs since", "node-hours lost"):
            is_figure = column in ("pods", "node-hours lost")
            table.add_column(column, justify="right" if is_figure else "left", overflow="fold")
        for one in found.evicted:
            name = f"group {one.name}" if one.is_group else f"pod {one.name}"
            nodes = hostlist(machine, [pod.node for pod in one.pods])
            cells = (name, str(len(one.pods)), nodes, clock(one.since, found.time), f"{one.node_hours:,.2f}")
            table.add_row(*map(texts.printable, cells))
        width = None if sys.stdout.isatty() else 200
        Console(width=width, highlight=False, markup=False).print(table)
        click.echo(
            f"That costs {found.node_hours:,.2f} node-hours in all; of these priorities {bound(found)}."
        )
    written = "" if out is None else f": `topolane k8s apply {out}` carries the plan out"
    click.echo(texts.printable(f"Nothing is changed{written}."))
