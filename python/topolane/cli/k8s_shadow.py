"""`topolane k8s shadow` and `topolane k8s replay`: what a policy would do in a cluster that decides for itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from topolane.cli import common, shadows
from topolane.cli.k8s_common import cluster_options, connected, keys, machine_options
from topolane.units import duration as in_words
from topolane.units import plural

if TYPE_CHECKING:
    from topolane.kubernetes.shadow import Shadow


@click.command()
@cluster_options
@machine_options
@click.option(
    "--policy", required=True, help="Policy: a name (`topolane policies` lists them), or module:Class."
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Ask only about jobs of this namespace; repeat it for several [default: all].",
)
@click.option(
    "--min-bandwidth",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="Least share of full bandwidth that jobs accept on links of their own [default: all of it].",
)
@click.option(
    "--log",
    metavar="FILE",
    help="Append every event to this file, for `topolane k8s replay`; go on from what an earlier shadow wrote there.",
)
@click.option(
    "--interval",
    type=click.FloatRange(0.2, 60),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks at the cluster.",
)
@click.option(
    "--for",
    "duration",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="End after this time [default: at Ctrl-C or SIGTERM].",
)
@common.json_option
def shadow(
    kubeconfig: str | None,
    context: str | None,
    machine: str | None,
    labels: str | None,
    config: str | None,
    policy: str,
    namespaces: tuple[str, ...],
    min_bandwidth: float | None,
    log: str | None,
    interval: float,
    duration: float | None,
    as_json: bool,
) -> None:
    """Say where a policy would have placed the jobs that start in a cluster. It changes nothing there.

    Each start is a line: the nodes of the job and the policy's, or why it would have waited. A summary ends it.
    """
    from topolane.live.log import Log

    shadows.check_min_bandwidth(policy, min_bandwidth)
    written = None if log is None else Log(log)

    def write(event: str, **facts: Any) -> None:
        if written is not None:
            written.write(event, **facts)

    def tell(start: Mapping[str, Any], _: int) -> None:
        click.echo(json.dumps(start) if as_json else shadows.line(start, policy, "cluster"))
        sys.stdout.flush()

    with connected(kubeconfig, context) as cluster:
        from topolane.kubernetes.machine import NODES
        from topolane.kubernetes.machine import machine as machine_of
        from topolane.kubernetes.proofs import proofs
        from topolane.kubernetes.settings import settings
        from topolane.kubernetes.shadow import Shadow

        known = settings(cluster, config)
        fabric = machine_of(machine, keys(labels), known, cluster.items(NODES))
        seen = Shadow(
            cluster,
            policy,
            common.tell(fabric),
            namespaces=namespaces,
            min_bandwidth=min_bandwidth,
            interval=interval,
            log=log,
            proved=proofs(cluster, known.keys),
            write=write,
            tell=tell,
        )
        if not as_json:
            _begin(seen)
        shadows.watch(seen, duration)
    shadows.end(seen.summary, as_json, "cluster", one_line=True)


@click.command()
@click.argument("log")
@click.option(
    "--csv",
    "table",
    help="File to write the jobs that ran to, as a workload for `topolane compare --trace`.",
)
@click.option("--policy", metavar="MODULE:CLASS", help="Policy of the shadow, if it is a class of your own.")
@common.json_option
def replay(log: str, table: str | None, policy: str | None, as_json: bool) -> None:
    """Make the decisions in a shadow's LOG once more with this engine, and print its summary.

    The exit code is 1 if a decision differs.
    """
    from topolane.kubernetes.shadow_log import replay as repeated

    found = repeated(log, policy)
    if table is not None:
        common.write_text(table, found.csv, "--csv")
    shadows.print_replay(found, as_json, "cluster")


def _begin(seen: Shadow) -> None:
    if seen.away is not None:
        started = plural(seen.summary.starts, "start")
        click.echo(f"goes on after {in_words(seen.away)} in which it did not look; {started} so far")
    hold = "holds" if seen.jobs == 1 else "hold"
    click.echo(f"{plural(seen.jobs, 'job')} {hold} nodes already; the next starts are shown as they happen")
