"""`topolane traffic`: make the traffic of a pattern, or look at that of a file."""

from __future__ import annotations

from typing import Any

import click

from topolane import _engine
from topolane._engine import InputError
from topolane.cli import common, values
from topolane.cli.explained import ExplainedCommand


@click.command(
    "traffic",
    cls=ExplainedCommand,
    examples={
        "What 512 ranks of a stencil send": "stencil4d --ranks 512",
        "Summarise a recorded matrix": "matrix.csv",
    },
)
@click.argument("source", type=values.PATTERN, metavar="PATTERN|FILE")
@click.option("--ranks", type=click.IntRange(1, 2**24), help="Number of ranks, for a pattern.")
@click.option("--seed", type=common.WORD, default=0, show_default=True, help="Seed of random patterns.")
@click.option("--out", help="File to write the matrix to, as CSV.")
@common.json_option
def command(source: str, ranks: int | None, seed: int, out: str | None, as_json: bool) -> None:
    """Summarise the traffic of a pattern or of a file.

    With --ranks, PATTERN is a name (`topolane patterns` lists them) with its parameters, such as
    'stencil4d(bytes=65536)'. Without --ranks, FILE is a matrix: from,to,bytes[,messages].
    """
    from topolane.traffic import read_traffic, summary

    if ranks is None:
        names = [name for name, _, _ in _engine.patterns()]
        if source.split("(")[0].strip() in names:
            raise InputError(f"the pattern {source!r} needs a number of ranks: give --ranks")
        traffic, phases = read_traffic(source), []
    else:
        traffic = _engine.Traffic.pattern(source, ranks, seed)
        phases = _engine.phases(source, ranks, seed)
    figures: dict[str, Any] = summary(traffic)
    figures["phases"] = [
        {"name": name, "kind": kind, "messages": part.messages, "bytes": part.bytes}
        for name, kind, part in phases
    ]
    if out is not None:
        common.write_text(out, traffic.csv())
    if as_json:
        common.print_json(figures)
        return
    degree = figures["degree"]
    click.echo(f"ranks      {figures['ranks']:,}")
    click.echo(f"messages   {figures['messages']:,.15g} in one iteration")
    click.echo(f"bytes      {figures['bytes']:,.15g}")
    click.echo(
        f"receivers  {degree['least']:,} to {degree['most']:,} of a rank, {degree['mean']:,.2f} in the mean"
    )
    click.echo(f"symmetric  {'yes' if figures['symmetric'] else 'no'}")
    for phase in figures["phases"]:
        click.echo(
            f"  {phase['name']} ({phase['kind']}): {phase['messages']:,.15g} messages, "
            f"{phase['bytes']:,.15g} bytes"
        )
