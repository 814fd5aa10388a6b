"""`topolane policies`: lists policies, queues, routings and models."""

from __future__ import annotations

import click

from topolane import _engine, policy
from topolane.cli import common
from topolane.cli.explained import ExplainedCommand


@click.command(
    "policies",
    cls=ExplainedCommand,
    examples={
        "List policies, queues, routings and models": "",
        "The same as JSON": "--json",
    },
)
@common.json_option
def command(as_json: bool) -> None:
    """List policies, queue disciplines, routings, contention models, site policies and gang policies.

    Policies of plug-ins are listed without loading them.
    """
    kinds = {
        "policy": _engine.policies(),
        "policy of a plug-in": _plugins(),
        "queue": _engine.queues(),
        "routing": _engine.routings(),
        "network": _engine.models(),
        "site policy": _engine.site_policies(),
        "gang policy": _engine.gang_policies(),
    }
    if as_json:
        common.print_json(
            [
                {"kind": kind, "name": name, "summary": summary}
                for kind, known in kinds.items()
                for name, summary in known
            ]
        )
        return
    for kind, known in kinds.items():
        if not known:
            continue
        width = max(len(name) for name, _ in known)
        click.echo(f"{kind}:")
        for name, summary in known:
            click.echo(f"  {name:{width}}  {summary}")
    click.echo("A policy can also be module:Class, a subclass of topolane.Policy.")


def _plugins() -> list[tuple[str, str]]:
    """(name, distribution and class) of every policy that an installed distribution offers."""
    offered = sorted(policy.plugins().items())
    return [(name, f"{one.dist.name if one.dist else '?'} ({one.value})") for name, one in offered]
