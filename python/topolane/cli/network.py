"""Options that say how jobs meet on the network."""

from __future__ import annotations

import re
from typing import Any

import click

from topolane._engine import InputError
from topolane.cli.common import options
from topolane.run import Network


def share(_: click.Context, __: click.Parameter, value: float) -> float:
    """A part of a whole."""
    if not 0 <= value <= 1:
        raise click.BadParameter(f"{value} is not between 0 and 1")
    return value


network_options = options(
    click.option(
        "--network",
        help="Let jobs slow each other down on shared links, by this model: congestion, max-min, max-min-flows or full.",
    ),
    click.option(
        "--routing",
        default="d-mod-k",
        show_default=True,
        help="Routing: d-mod-k, s-mod-k, random, adaptive, or a file of forwarding tables (opensm-lfts.dump, dump_fts).",
    ),
    click.option(
        "--comm-fraction",
        type=float,
        default=0.3,
        show_default=True,
        callback=share,
        help="Part of its run time that a job communicates when it runs alone.",
    ),
    click.option(
        "--patterns",
        default=",".join(Network().patterns),
        show_default=True,
        help="Traffic of the jobs; each job draws one. Patterns (`topolane patterns` lists them) or traffic files, "
        "such as `topolane mpi run` writes, separated by commas.",
    ),
    click.option(
        "--kill-at-walltime",
        is_flag=True,
        help="End a job at its walltime, even if it would have ended earlier without contention.",
    ),
)


def network_of(options: dict[str, Any]) -> Network | None:
    """Takes what says how jobs meet on the network out of a command's options."""
    model = options.pop("network")
    given = {
        "routing": options.pop("routing"),
        "communication": options.pop("comm_fraction"),
        "patterns": pattern_names(options.pop("patterns")),
        "kill_at_walltime": options.pop("kill_at_walltime"),
    }
    cores = options.pop("chosen_cores", None)
    if cores is not None and model is None:
        raise InputError(f"--cores-per-node {cores} needs --network: the choice depends on contention")
    return None if model is None else Network(model, cores_per_node=cores, **given)


def pattern_names(text: str) -> tuple[str, ...]:
    """Patterns by comma; commas inside brackets part parameters: `pairs, suba2a(dims=2, bytes=8)`."""
    return tuple(name.strip() for name in re.split(r",(?![^(]*\))", text) if name.strip())
