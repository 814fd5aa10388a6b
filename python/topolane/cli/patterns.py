"""`topolane patterns`: lists the traffic patterns."""

from __future__ import annotations

import click

from topolane import _engine
from topolane.cli import common
from topolane.cli.explained import ExplainedCommand


@click.command(
    "patterns",
    cls=ExplainedCommand,
    examples={
        "List the patterns": "",
        "The same as JSON": "--json",
    },
)
@common.json_option
def command(as_json: bool) -> None:
    """List the traffic patterns and their parameters."""
    fields = ("name", "summary", "unit", "range", "default")
    if as_json:
        common.print_json(
            [
                {
                    "name": name,
                    "summary": summary,
                    "parameters": [dict(zip(fields, parameter, strict=True)) for parameter in parameters],
                }
                for name, summary, parameters in _engine.patterns()
            ]
        )
        return
    for name, summary, parameters in _engine.patterns():
        click.echo(f"{name}  {summary}")
        for parameter, meaning, unit, domain, default in parameters:
            measure = f" {unit}" if unit else ""
            click.echo(f"    {parameter}={default}{measure}: {meaning}; {domain}")
    click.echo("Write a pattern as name or name(parameter=value, ...), for example 'is(class=C)'.")
