"""`topolane sites explain`: why a program runs where it runs."""

from __future__ import annotations

import click
from topolane.cli.common import json_option, print_json, print_table
from topolane.cli.explained import ExplainedCommand

from topolane_sites.cli.client import client, lost, manager_options, segment


@click.command(
    cls=ExplainedCommand,
    examples={
        "Why the program 'pairs' stays or moves": "pairs",
        "The same as JSON": "pairs --json",
    },
)
@manager_options
@click.argument("program", metavar="PROGRAM")
@json_option
def explain(manager: str, token_file: str | None, ca: str | None, program: str, as_json: bool) -> None:
    """Explain what PROGRAM sends between its halves and between sites, what the WAN costs it, and why it stays or moves."""
    answer = client(manager, token_file, ca).get(f"/explain/{segment(program)}")
    if as_json:
        print_json(answer)
        return
    one = answer["program"]
    click.echo(f"{one['id']} ({one['name']}), {one['ranks']} ranks: {answer['why']}.")
    cuts = [("lower and upper half of the ranks", "halves"), ("least cut into halves", "least_halves")]
    cuts += [("between sites, as it runs", "now")]
    links = list(answer["halves"]["loss"])
    print_table(
        ["across", "messages/s", "MB/s", "turns/s", *(f"lost over {link}" for link in links)],
        [
            [
                words,
                f"{answer[key]['messages']:.1f}",
                f"{answer[key]['bytes'] / 1e6:.3f}",
                f"{answer[key]['turns']:.1f}",
                *(lost(answer[key]["loss"][link]) for link in links),
            ]
            for words, key in cuts
        ],
    )
    for move in answer["moves"]:
        click.echo(f"to be moved: {move['guest']}, {move['source']} to {move['target']}")
