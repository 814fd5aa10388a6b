"""`topolane sites status`: what a manager sees and does."""

from __future__ import annotations

import time
from typing import Any

import click
from topolane.cli.common import json_option, print_json, print_table
from topolane.cli.explained import ExplainedCommand

from topolane_sites.cli.client import client, lost, manager_options


@click.command(
    cls=ExplainedCommand,
    examples={
        "Sites, programs and moves": "",
        "How good the predictions were": "--accuracy",
    },
)
@manager_options
@click.option(
    "--accuracy", is_flag=True, help="Compare predicted and measured gains of the moves that were made."
)
@json_option
def status(manager: str, token_file: str | None, ca: str | None, accuracy: bool, as_json: bool) -> None:
    """Show sites, programs, moves in progress, and the latest events."""
    answer = client(manager, token_file, ca).get("/accuracy" if accuracy else "/status")
    if as_json:
        print_json(answer)
        return
    if accuracy:
        _accuracy(answer)
        return
    from topolane.units import duration, plural

    does = "paused" if answer["paused"] else "moves guests" if answer["act"] else "proposes only"
    click.echo(f"policy {answer['policy']}, {does}; up for {duration(time.time() - answer['began'])}")
    _sites(answer["sites"])
    if answer["programs"]:
        _programs(answer["programs"], answer["plan"])
    else:
        click.echo("No program runs.")
    for program, doubt in answer["doubts"].items():
        click.echo(f"{program}: {doubt}.")
    for move in answer["moves"]:
        click.echo(
            f"moving {move['guest']}: {move['source']} to {move['target']}, {100 * move['progress']:.0f} %"
        )
    if answer["waiting"]:
        click.echo(f"waiting to move: {', '.join(answer['waiting'])}")
    for one in answer["tunnels"]:
        restarts = f"was started again {plural(one['restarts'], 'time')} since the last 'sites up'"
        state = restarts if one["runs"] else "has ended"
        click.echo(f"the tunnel of cluster {one['cluster']} on {one['host']} {state}")
    for event in reversed(answer["events"]):
        when = time.strftime("%F %T", time.localtime(event["time"]))
        click.echo(f"{when}  {event['kind']}  {event['subject']}  {event['text']}")


@click.command(
    cls=ExplainedCommand,
    examples={
        "Stop planning before maintenance": "pause",
        "Go on": "resume",
    },
)
@manager_options
@click.argument("what", type=click.Choice(["pause", "resume"]))
def planning(manager: str, token_file: str | None, ca: str | None, what: str) -> None:
    """Pause or resume planning and starting moves. Moves in progress continue."""
    answer = client(manager, token_file, ca).post(f"/{what}")
    click.echo("paused" if answer["paused"] else "planning goes on")


def _accuracy(answer: dict[str, Any]) -> None:
    if not answer["pairs"]:
        click.echo("No move has been compared yet.")
        return
    print_table(
        ["program", "name", "plan", "predicted", "measured", "error", "note"],
        [
            [
                one["program"],
                one["name"],
                one["plan"],
                f"{one['predicted']:.2f}",
                "–" if one["measured"] is None else f"{one['measured']:.2f}",
                "–"
                if one["measured"] is None
                else f"{100 * (one['predicted'] / one['measured'] - 1):+.0f} %",
                one["why"],
            ]
            for one in answer["pairs"]
        ],
        ["name", "plan", "note"],
    )
    click.echo("predicted, measured: the program's speed after the moves over its speed before them")
    if answer["measured"]:
        click.echo(
            f"mean error {answer['mean_error']:+.1f} %, mean absolute error {answer['mean_absolute_error']:.1f} %, "
            f"of {answer['measured']} measured"
        )


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
        [
            "program",
            "name",
            "ranks",
            "sites",
            "MB/s",
            "between sites",
            "in MPI",
            "lost to the WAN",
            "slowest core",
        ],
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
                lost(loss[one["id"]]["wan_now"], loss[one["id"]]["loss_now"]) if one["id"] in loss else "–",
                f"{loss[one['id']]['speed_now']:.2f}" if one["id"] in loss else "–",
            ]
            for one in programs
        ],
        ["name", "sites"],
    )
