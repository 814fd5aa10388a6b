"""`topolane k8s shadow` and `topolane k8s replay`: what a policy would do in a cluster that decides for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from topolane.cli import common, shadows
from topolane.cli.explained import ExplainedCommand
from topolane.cli.k8s_common import cluster_options, connected, keys, machine_options

if TYPE_CHECKING:
    from topolane._engine import Machine
    from topolane.cluster.shadow import Watched
    from topolane.cluster.shadow_log import Past

replay = shadows.replay


@click.command(
    cls=ExplainedCommand,
    examples={
        "Where 'isolated' would have placed the pods that start now": "--policy isolated",
        "Record an hour for `topolane k8s replay`": "--policy isolated --for 3600 --log shadow.jsonl",
    },
)
@cluster_options
@machine_options
@shadows.options("the cluster")
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Ask only about jobs of this namespace; repeat it for several [default: all].",
)
def shadow(
    kubeconfig: str | None,
    context: str | None,
    machine: str | None,
    labels: str | None,
    config: str | None,
    namespaces: tuple[str, ...],
    **asked: Any,
) -> None:
    """Say where a policy would have placed the jobs that start in a cluster. It changes nothing there.

    Each start is a line: the nodes of the job and the policy's, or why it would have waited. A summary ends it.
    """
    wanted = shadows.ShadowOptions(**asked)
    with connected(kubeconfig, context) as cluster:
        from topolane.kubernetes.machine import NODES
        from topolane.kubernetes.machine import machine as machine_of
        from topolane.kubernetes.proofs import proofs
        from topolane.kubernetes.settings import settings
        from topolane.kubernetes.shadow import WatchedCluster

        def watch(before: Callable[[Machine], Past]) -> tuple[Watched, Machine]:
            known = settings(cluster, config)
            fabric = common.tell(machine_of(machine, keys(labels), known, cluster.items(NODES)))
            proved = proofs(cluster, known.keys)
            return WatchedCluster(
                cluster, fabric, before(fabric), namespaces=namespaces, proved=proved
            ), fabric

        wanted.show(watch, "cluster")
