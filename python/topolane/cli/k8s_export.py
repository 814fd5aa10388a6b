"""`topolane k8s export`: the jobs that ran in a cluster and its machine, as `topolane compare` reads them."""

from __future__ import annotations

import time

import click

from topolane import texts, untrusted
from topolane.cli import common
from topolane.cli.explained import ExplainedCommand
from topolane.cli.k8s_common import cluster_options, connected, keys, machine_options
from topolane.units import plural


@click.command(
    cls=ExplainedCommand,
    examples={
        "Export a cluster, for `topolane compare`": "--out cluster",
        "Name the labels of its topology": "--labels example.com/pod,example.com/leaf --out cluster",
    },
)
@cluster_options
@machine_options
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    help="Directory for jobs.csv and machine.toml; files of an earlier export are replaced.",
)
def export(
    kubeconfig: str | None,
    context: str | None,
    machine: str | None,
    labels: str | None,
    config: str | None,
    out: str,
) -> None:
    """Write the jobs that ran in a cluster and its machine into a directory.

    A cluster knows the jobs whose pods are still there. A job that still runs counts with the time that it has run so far. `topolane k8s shadow --log` remembers them for longer.
    """
    with (
        common.outputs(out, ("jobs.csv", "machine.toml")) as draft,
        connected(kubeconfig, context) as cluster,
    ):
        from topolane.kubernetes.export import job_records, workload
        from topolane.kubernetes.inspection import PODS
        from topolane.kubernetes.machine import NODES
        from topolane.kubernetes.machine import machine as machine_of
        from topolane.kubernetes.objects import KubernetesNode, Pod
        from topolane.kubernetes.settings import settings

        assert draft is not None
        items = cluster.items(NODES)
        fabric = common.tell(machine_of(machine, keys(labels), settings(cluster, config), items))
        problems: list[str] = []
        nodes = {node.name: node for node in untrusted.each(KubernetesNode.of, items, "node", problems)}
        pods = untrusted.each(Pod.of, cluster.items(PODS), "pod", problems)
        found = workload(pods, job_records(cluster), nodes, fabric, time.time())
        for note in (*fabric.lost("toml"), *found.notes, *problems):
            click.echo(texts.printable(f"note: {note}"), err=True)
        (draft / "machine.toml").write_text(fabric.to("toml"), "utf-8")
        (draft / "jobs.csv").write_text(found.csv, "utf-8")
    click.echo(f"{out}/machine.toml: {plural(fabric.nodes, 'node')}")
    click.echo(f"{out}/jobs.csv: {plural(len(found.rows), 'job')} that ran or run")
