"""`topolane sites plan` and `topolane sites apply`: what would be moved, and moving it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click
from topolane._engine import InputError
from topolane.cli.common import json_option, print_json, print_table
from topolane.cli.explained import ExplainedCommand

from topolane_sites.cli.client import client, lost, manager_options, segment


@click.command(
    cls=ExplainedCommand,
    examples={
        "Where programs should run": "",
        "Make room for 8 guests on one site": "--room-for 8 --cores 2 --memory '8 GiB' --site east",
    },
)
@manager_options
@click.option(
    "--room-for",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Make room on one site for this many new guests.",
)
@click.option(
    "--cores",
    type=click.IntRange(1, 1024),
    metavar="C",
    help="With --room-for: cores of each new guest [default: 1].",
)
@click.option("--memory", metavar="SIZE", help='With --room-for: memory of each new guest, such as "8 GiB".')
@click.option(
    "--site",
    "sites",
    multiple=True,
    metavar="NAME",
    help="With --room-for: a site that is allowed; may be repeated [default: any site].",
)
@json_option
def plan(
    manager: str,
    token_file: str | None,
    ca: str | None,
    room_for: int | None,
    cores: int | None,
    memory: str | None,
    sites: tuple[str, ...],
    as_json: bool,
) -> None:
    """Propose where programs should run and which guests to move. This command moves nothing.

    With --room-for: propose up to three programs to move, each onto one site, so that N new guests fit on one site.
    The exit code is 1 if no moves make room.
    """
    asked = client(manager, token_file, ca)
    if room_for is None:
        for option, value in (("cores", cores), ("memory", memory), ("site", sites)):
            if value:
                raise InputError(f"--{option} needs --room-for")
        made = asked.post("/plan")
    else:
        made = asked.post("/room", _wanted(room_for, cores, memory, sites))
    no_room = room_for is not None and not made["room"]
    if as_json:
        print_json(made)
    else:
        _print(made, room_for)
    if no_room:
        raise click.exceptions.Exit(1)


def _wanted(guests: int, cores: int | None, memory: str | None, sites: tuple[str, ...]) -> dict[str, Any]:
    from topolane.reading import size

    if memory is None:
        raise InputError("--room-for needs the memory of each guest: give --memory")
    room = size(int(memory) if memory.isdecimal() else memory)
    if room is None:
        raise InputError(f'--memory {memory!r} is neither a number of bytes nor a size such as "8 GiB"')
    return {"guests": guests, "cores": cores or 1, "memory": room, "sites": list(sites)}


def _print(made: dict[str, Any], room_for: int | None) -> None:
    if made["judged"]:
        _judged(made["judged"])
    for program, reason in made["left_out"].items():
        click.echo(f"{program}: left alone: {reason}")
    if room_for is not None:
        click.echo(_room(made, room_for))
    elif not made["moves"]:
        click.echo("No move is worth its cost.")
    if not made["moves"]:
        return
    print_table(
        ["guest", "from", "to"],
        [[move["guest"], move["source"], move["target"]] for move in made["moves"]],
        ["from", "to"],
    )
    click.echo(f"'topolane sites apply {made['id']}' makes these moves.")


@click.command(
    cls=ExplainedCommand,
    examples={
        "Make the moves of a plan": "7",
        "Ask a manager elsewhere": "7 --manager https://example.org:8443 --token-file token",
    },
)
@manager_options
@click.argument("plan", metavar="PLAN")
@json_option
def apply(manager: str, token_file: str | None, ca: str | None, plan: str, as_json: bool) -> None:
    """Make the moves of PLAN, the id that 'topolane sites plan' printed.

    A guest that has been moved since, or that is being moved, is skipped.
    """
    from topolane.units import plural

    answer = client(manager, token_file, ca).post(f"/plans/{segment(plan)}/apply")
    if as_json:
        print_json(answer)
    else:
        count = plural(answer["moves"], "move")
        click.echo(f"{count} started; 'topolane sites status' shows their progress.")


def _room(made: dict[str, Any], guests: int) -> str:
    """A sentence on the room for arriving guests."""
    from topolane.units import plural

    if not made["room"]:
        return f"No site has room for {guests} such guests, and no moves were found that would make room."
    on = ", ".join(f"{host} {count}" for host, count in sorted(Counter(made["room"]).items()))
    if not made["moves"]:
        return f"There is room for {plural(guests, 'guest')} on one site: {on}."
    return f"After {plural(len(made['moves']), 'move')} there is room for {plural(guests, 'guest')} on one site: {on}."


def _judged(judged: list[dict[str, Any]]) -> None:
    def places(sites: dict[str, int]) -> str:
        return ", ".join(f"{site} {guests}" for site, guests in sorted(sites.items()))

    print_table(
        [
            "programs",
            "guests now",
            "then",
            "turns/s",
            "MB/s",
            "lost now",
            "then",
            "speed",
            "then",
            "gain, s",
            "cost, s",
        ],
        [
            [
                ", ".join(one["programs"]),
                places(one["now"]),
                places(one["then"]),
                f"{one['turns']:.1f}",
                f"{one['bytes'] / 1e6:.2f}",
                lost(one["wan_now"], one["loss_now"]),
                lost(one["wan_then"], one["loss_then"]),
                f"{one['speed_now']:.2f}",
                f"{one['speed_then']:.2f}",
                f"{one['gain']:.0f}",
                f"{one['cost']:.1f}",
            ]
            for one in judged
        ],
        ["guests now", "then"],
    )
