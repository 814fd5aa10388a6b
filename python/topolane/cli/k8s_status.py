"""`topolane k8s status` and `topolane k8s explain`: which groups run where, and why others wait."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

import click

from topolane import texts
from topolane.cli.common import json_option, print_json
from topolane.cli.explained import ExplainedCommand
from topolane.cli.k8s_common import cluster_options, connected, keys, machine_options

if TYPE_CHECKING:
    from topolane.kubernetes.inspection import KubernetesInspection
    from topolane.kubernetes.status import ClusterStatus

RUNNING = ("pods", "nodes", "lies in", "policy", "since")
WAITING = ("pods", "policy", "since", "why")


@click.command(
    cls=ExplainedCommand,
    examples={
        "Which groups of pods run where": "",
        "In another cluster, as JSON": "--context prod --json",
    },
)
@cluster_options
@machine_options
@json_option
def status(
    kubeconfig: str | None,
    context: str | None,
    machine: str | None,
    labels: str | None,
    config: str | None,
    as_json: bool,
) -> None:
    """Show which groups of pods run where, under which policy, and why others wait.

    The exit code is 1 if no scheduler holds the lease, and if the engine cannot answer.
    """
    from topolane.kubernetes.status import status as rows

    found = rows(_look(kubeconfig, context, machine, labels, config))
    if as_json:
        print_json(dataclasses.asdict(found))
    else:
        _print(found)
    sys.exit(1 if found.liveness.active is False or found.liveness.unable is not None else 0)


@click.command(
    cls=ExplainedCommand,
    examples={
        "Why the group 'train' waits": "default/train",
        "The same as JSON": "default/train --json",
    },
)
@cluster_options
@machine_options
@click.argument("group", metavar="NAMESPACE/GROUP")
@json_option
def explain(
    kubeconfig: str | None,
    context: str | None,
    machine: str | None,
    labels: str | None,
    config: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Explain why a group of pods waits, or where it runs.

    GROUP is the name in the label scheduling.x-k8s.io/pod-group, or that of the Job.
    """
    from topolane.kubernetes.explain import explain as explanation
    from topolane.kubernetes.explain import explanations

    look = _look(kubeconfig, context, machine, labels, config)
    if as_json:
        print_json(dataclasses.asdict(explanation(look, group)))
        return
    said = [sentence for each in explanations(look, group) for sentence in each.sentences]
    for sentence in (*said, *look.problems):
        click.echo(texts.printable(sentence))


def _look(
    kubeconfig: str | None, context: str | None, machine: str | None, labels: str | None, config: str | None
) -> KubernetesInspection:
    with connected(kubeconfig, context) as cluster:
        from topolane.kubernetes.inspection import Where, inspect

        return inspect(cluster, Where(config, machine, keys(labels)))


def _print(found: ClusterStatus) -> None:
    from rich.console import Console

    from topolane.cli.live_status import tables, totals

    width = None if sys.stdout.isatty() else 200
    console = Console(width=width, highlight=False, markup=False)
    for line in [*_health(found), *totals(found, "group"), *found.problems]:
        click.echo(texts.printable(line))
    for each in tables(found, RUNNING, WAITING):
        console.print(each)


def _health(found: ClusterStatus) -> list[str]:
    """Whether a scheduler decides, in lines."""
    from topolane.units import duration, plural

    live = found.liveness
    state = {True: "active", False: "not active", None: "not known to be active"}[live.active]
    if live.unable is not None:
        state = "does not decide"
    line = f"topolane-scheduler ({live.scheduler}): {state}"
    if live.active and live.holder and live.renewed is not None:
        line += f", {live.holder} renewed its lease {duration(max(found.time - live.renewed, 0))} ago"
    lines = [line, *(said for said in (live.unable, live.why) if said is not None)]
    if live.machine_nodes is not None:
        by = f", by {live.settings}" if live.settings else ""
        lines.append(f"machine: {plural(live.machine_nodes, 'node')}{by}")
    return lines
