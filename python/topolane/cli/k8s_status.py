"""`topolane k8s status` and `topolane k8s explain`: which groups run where, and why others wait."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

import click

from topolane import texts
from topolane.cli.common import json_option, print_json
from topolane.cli.k8s_common import cluster_options, connected, keys, machine_options

if TYPE_CHECKING:
    from topolane.kubernetes.inspection import Inspection
    from topolane.kubernetes.status import RunningRow, Status


@click.command()
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


@click.command()
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
) -> Inspection:
    with connected(kubeconfig, context) as cluster:
        from topolane.kubernetes.inspection import Where, inspect

        return inspect(cluster, Where(config, machine, keys(labels)))


def _print(found: Status) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from topolane.units import clock

    def table(*columns: str) -> Table:
        made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in columns:
            is_figure = column in ("pods", "nodes")
            made.add_column(column, justify="right" if is_figure else "left", overflow="fold")
        return made

    def pods(there: int, size: int) -> str:
        return str(size) if there == size else f"{there} of {size}"

    running = table("runs", "pods", "nodes", "lies in", "policy", "since")
    for row in found.running:
        cells = (row.group, pods(row.pods, row.size), str(len(set(row.nodes))), _place(row), row.policy)
        running.add_row(*map(texts.printable, (*cells, clock(row.since, found.time))))
    waiting = table("waits", "pods", "policy", "since", "why")
    for one in found.waiting:
        cells = (one.group, pods(one.pods, one.size), one.policy, clock(one.since, found.time), one.why)
        waiting.add_row(*map(texts.printable, cells))
    width = None if sys.stdout.isatty() else 200
    console = Console(width=width, highlight=False, markup=False)
    for line in [*_health(found), *_totals(found), *found.problems]:
        click.echo(texts.printable(line))
    for each in (running, waiting):
        if each.row_count:
            console.print(each)


def _place(row: RunningRow) -> str:
    from topolane.units import plural

    where = "?" if row.level is None else f"T{row.level} {row.home}"
    if row.may_meet:
        where += f", may meet {', '.join(row.may_meet)}"
    if row.links:
        where += f", {plural(row.links, 'own link')}"
        share = row.bandwidth_share
        where += f", bandwidth share {share:g}" if share is not None and share != 1 else ""
    return where


def _health(found: Status) -> list[str]:
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


def _totals(found: Status) -> list[str]:
    """Nodes and links, in lines."""
    from topolane.units import clock, plural

    counted, links = found.nodes, found.sharing
    state = (
        f"{plural(counted.idle, 'node')} idle, {counted.busy} busy, {counted.out_of_service} out of service"
    )
    if links is None:
        return [f"{clock(found.time, found.time)}: {state}"]
    own = f"{plural(links.owned, 'link')} owned, {plural(links.shared, 'link')} may carry the traffic of two groups"
    lines = [f"{clock(found.time, found.time)}: {state}; {own}"]
    if links.isolated_sharing:
        lines.append(f"isolated groups that may meet others: {', '.join(links.isolated_sharing)}")
    return lines
