"""Options of `topolane k8s`, and the cluster that they name."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from topolane import extras
from topolane.cli import values
from topolane.cli.common import options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topolane.kubernetes.client import KubernetesCluster

cluster_options = options(
    click.option(
        "--kubeconfig",
        metavar="FILE",
        help="How to reach the cluster [default: KUBECONFIG, ~/.kube/config, or the service account of this pod].",
    ),
    click.option("--context", metavar="NAME", help="A context of the kubeconfig [default: its current one]."),
)

labels_options = options(
    click.option(
        "--labels",
        metavar="KEY,KEY,...",
        help="Keys of topology labels from the top down [default: those of the ConfigMap, else topograph's].",
    ),
    click.option(
        "--config",
        metavar="NAMESPACE/NAME",
        help="The ConfigMap with the scheduler's configuration [default: topolane/topolane-scheduler if it is there].",
    ),
)

machine_options = options(
    click.option(
        "--machine",
        type=values.MACHINE,
        metavar="FILE",
        help="Machine: a name or a file, in place of labels of nodes.",
    ),
    labels_options,
)


def keys(labels: str | None) -> tuple[str, ...]:
    """The keys in a list with commas."""
    return tuple(key for each in (labels or "").split(",") if (key := each.strip()))


@contextlib.contextmanager
def connected(kubeconfig: str | None, context: str | None) -> Iterator[KubernetesCluster]:
    """The cluster. Raises InputError if it cannot be reached."""
    try:
        import yaml  # noqa: F401

        from topolane.kubernetes.client import KubernetesCluster
        from topolane.kubernetes.kubeconfig import access
    except ImportError as error:
        raise extras.missing("this command", "kubernetes", error) from error
    cluster = KubernetesCluster(access(kubeconfig, context))
    try:
        yield cluster
    finally:
        cluster.close()
