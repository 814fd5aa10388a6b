"""`topolane sites status`: what a manager sees and does."""

from __future__ import annotations

import time
from typing import Any

import click

from topolane.cli.common import json_option, print_json, print_table
from topolane.cli.sites_client import client, lost, manager_options


@click.command()
@manager_options
@json_option
def status(manager: str, token_file: str | None, ca: str | None, as_json: bool) -> None:
    """Show sites, programs, moves in progress, and the latest events."""
    answer = client(manager, token_file, ca).get("/status")
    if as_json:
        print_json(answer)
        return
    from topolane.units import duration

    does = "paused" if answer["paused"] else "moves guests" if answer["act"] else "proposes only"
    click.echo(f"policy {answer['policy']}, {does}; up for {duration(time.time() - answer['began'])}")
    _sites(answer["sites"])
    if answer["programs"]:
        _programs(answer["programs"], answer["plan"])
    else:
        click.echo("No program runs.")
    for move in answer["moves"]:
        click.echo(
            f"moving {move['guest']}: {move['source']} to {move['target']}, {100 * move['progress']:.0f} %"
        )
    if answer["waiting"]:
        click.echo(f"waiting to move: {', '.join(answer['waiting'])}")
    for event in reversed(answer["events"]):
        when = time.strftime("%F %T", time.localtime(event["time"]))
        click.echo(f"{when}  {event['kind']}  {event['subject']}  {event['text']}")


@click.command()
@manager_options
@click.argument("what", type=click.Choice(["pause", "resume"]))
def planning(manager: str, token_file: str | None, ca: str | None, what: str) -> None:
    """Pause or resume planning and starting moves. Moves in progress continue."""
    answer = client(manager, token_file, ca).post(f"/{what}")
    click.echo("paused" if answer["paused"] else "planning goes on")


def _sites(sites: list[dict[str, Any]]) -> None:
    gib = 1 << 30
    print_table(
        ["site", "hosts", "silent", "cores used", "memory used, GiB", "guests", "links"],
        [
            [
                site["name"],
                str(site["hosts"]),
                str(len(site["silent"])),
                f"{site['cores_used']} of {site['cores']}",
                f"{site['memory_used'] / gib:.1f} of {site['memory'] / gib:.1f}",
                str(site["guests"]),
                ", ".join(
                    f"{'-'.join(link['between'])} {1e3 * link['latency']:g} ms {8e-6 * link['bandwidth']:g} Mbit/s"
                    for link in site["links"]
                ),
            ]
            for site in sites
        ],
        ["links"],
    )


def _programs(programs: list[dict[str, Any]], plan: dict[str, Any] | None) -> None:
    loss = {id: group for group in (plan["judged"] if plan else ()) for id in group["programs"]}
    print_table(
        ["program", "name", "ranks", "sites", "MB/s", "between sites", "in MPI", "lost to the WAN"],
        [
            [
                one["id"],
                one["name"],
                str(one["ranks"])
                if one["connected"] == one["ranks"]
                else f"{one['connected']} of {one['ranks']}",
                ", ".join(f"{site} {ranks}" for site, ranks in one["sites"].items()),
                f"{one['bytes_per_second'] / 1e6:.2f}",
                f"{one['between_sites']['bytes'] / 1e6:.2f}",
                f"{100 * one['in_mpi']:.0f} %",
                lost(loss[one["id"]]["loss_now"]) if one["id"] in loss else "–",
            ]
            for one in programs
        ],
        ["name", "sites"],
    )
