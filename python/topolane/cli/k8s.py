"""`topolane k8s`: what reads a Kubernetes cluster, and what makes room in it."""

from __future__ import annotations

import click

from topolane.cli import k8s_export, k8s_plan, k8s_shadow, k8s_status


@click.group("k8s")
def command() -> None:
    """See what topolane-scheduler does in a Kubernetes cluster, and try it before you turn it on. Only 'apply' changes anything."""


for other in (
    k8s_shadow.shadow,
    k8s_shadow.replay,
    k8s_export.export,
    k8s_status.status,
    k8s_status.explain,
    k8s_plan.plan,
    k8s_plan.apply,
):
    command.add_command(other)
