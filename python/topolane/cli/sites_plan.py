"""`topolane sites plan` and `topolane sites apply`: what would be moved, and moving it."""

from __future__ import annotations

from typing import Any

import click

from topolane.cli.common import json_option, print_json, print_table
from topolane.cli.sites_client import client, lost, manager_options, segment


@click.command()
@manager_options
@json_option
def plan(manager: str, token_file: str | None, ca: str | None, as_json: bool) -> None:
    """Propose where all programs run and which guests move for it. Moves nothing."""
    made = client(manager, token_file, ca).post("/plan")
    if as_json:
        print_json(made)
        return
    if made["judged"]:
        _judged(made["judged"])
    for program, reason in made["left_out"].items():
        click.echo(f"{program}: left alone: {reason}")
    if not made["moves"]:
        click.echo("No move pays.")
        return
    print_table(
        ["guest", "from", "to"],
        [[move["guest"], move["source"], move["target"]] for move in made["moves"]],
        ["from", "to"],
    )
    click.echo(f"'topolane sites apply {made['id']}' makes these moves.")


@click.command()
@manager_options
@click.argument("plan", metavar="PLAN")
@json_option
def apply(manager: str, token_file: str | None, ca: str | None, plan: str, as_json: bool) -> None:
    """Make the moves of PLAN, the id that 'topolane sites plan' printed.

    A guest that is elsewhere by now, or is being moved, is left out.
    """
    from topolane.report.units import plural

    answer = client(manager, token_file, ca).post(f"/plans/{segment(plan)}/apply")
    if as_json:
        print_json(answer)
    else:
        count = plural(answer["moves"], "move")
        click.echo(f"{count} on the way; 'topolane sites status' shows what becomes of them.")


def _judged(judged: list[dict[str, Any]]) -> None:
    def places(sites: dict[str, int]) -> str:
        return ", ".join(f"{site} {guests}" for site, guests in sorted(sites.items()))

    print_table(
        ["programs", "guests now", "then", "turns/s", "MB/s", "lost now", "then", "gain, s", "cost, s"],
        [
            [
                ", ".join(one["programs"]),
                places(one["now"]),
                places(one["then"]),
                f"{one['turns']:.1f}",
                f"{one['bytes'] / 1e6:.2f}",
                lost(one["loss_now"]),
                lost(one["loss_then"]),
                f"{one['gain']:.0f}",
                f"{one['cost']:.1f}",
            ]
            for one in judged
        ],
        ["guests now", "then"],
    )
