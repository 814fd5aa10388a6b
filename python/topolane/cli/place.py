"""`topolane place`: one decision, from a state and a request in JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

import topolane
from topolane._engine import InputError, Machine, State
from topolane.cli import common
from topolane.policy import resolve

STATE_KEYS = {"machine", "running", "down", "request"}
JOB_KEYS = {"id", "nodes", "cores", "memory"}
REQUEST_KEYS = {"nodes", "id", "cores", "memory", "stacked", "members", "eligible"}


@click.command("place")
@click.argument("file", default="-")
@click.option("--machine", help="A machine's name or file [default: as the JSON says].")
@click.option("--policy", default="isolated", show_default=True, help="A policy's name, or module:Class.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of policies that draw.")
@common.json_option
def command(file: str, machine: str | None, policy: str, seed: int, as_json: bool) -> None:
    """Choose nodes for one request, or say why not (exit code 1).

    FILE (or standard input) is JSON; nodes are hostlists or lists of indices:

    \b
    {"machine": "cab",
     "running": [{"id": 7, "nodes": "cab[1-20]"},
                 {"id": 8, "nodes": "cab30", "cores": 4, "memory": 1000000000}],
     "down": "cab[31-33]",
     "request": {"nodes": 40, "eligible": "cab[1-648]"}}
    """
    given = read(file)
    fabric = topolane.machine(machine or member(given, "machine", str, required=True))
    state = State(fabric)
    for index, job in enumerate(member(given, "running", list, default=[])):
        where = f"running[{index}]"
        check_keys(job, JOB_KEYS, where)
        try:
            state.hold(nodes_of(fabric, job, "nodes", where), share_of(job, where))
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
    state.take_out(nodes_of(fabric, given, "down", "state", default=[]))
    request = member(given, "request", dict, required=True)
    check_keys(request, REQUEST_KEYS, "request")
    found, refusal = state.place(
        resolve(policy),
        whole(request, "nodes", "request", required=True),
        id=whole(request, "id", "request", default=0),
        share=share_of(request, "request"),
        stacked=member(request, "stacked", bool, default=False),
        members=nodes_of(fabric, request, "members", "request", default=[]),
        eligible=nodes_of(fabric, request, "eligible", "request", default=None),
        seed=seed,
    )
    if found is None:
        name, why = refusal
        if as_json:
            common.print_json({"placed": False, "refusal": name, "why": why})
        else:
            click.echo(f"not placed, {name}: {why}")
        sys.exit(1)
    nodes, aph, hop_bytes = found
    hosts = [fabric.node_name(node) for node in nodes]
    least = fabric.least_aph()[len(nodes) - 1] if len(nodes) <= fabric.nodes else None
    if as_json:
        answer = {"placed": True, "nodes": nodes, "hosts": hosts, "aph": aph, "least_aph": least}
        common.print_json({**answer, "hop_bytes": hop_bytes})
        return
    click.echo(f"nodes      {fabric.hostlist(nodes)}")
    click.echo(f"APH        {aph:.4f}" + ("" if least is None else f" (the empty machine allows {least:.4f})"))
    click.echo(f"hop-bytes  {hop_bytes:,.0f} for one byte between every pair")


def read(file: str) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: {error}") from error
    if not isinstance(given, dict):
        raise InputError(f"{file}: a JSON object is wanted, not {type(given).__name__}")
    check_keys(given, STATE_KEYS, "the state")
    return given


def check_keys(given: Any, known: set[str], where: str) -> None:
    """Names a key that nobody reads: it would be a wish unheard."""
    if not isinstance(given, dict):
        raise InputError(f"{where} is not a JSON object but {given!r}")
    for key in given:
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}; there are {', '.join(sorted(known))}")


def member(given: dict[str, Any], key: str, kind: type, *, default: Any = None, required: bool = False) -> Any:
    """A member of a JSON object, of a kind."""
    if key not in given:
        if required:
            raise InputError(f"{key!r} is missing")
        return default
    if not isinstance(given[key], kind):
        raise InputError(f"{key!r} is not a {kind.__name__} but {given[key]!r}")
    return given[key]


def whole(
    given: dict[str, Any], key: str, where: str, *, default: int | None = None, required: bool = False
) -> int | None:
    """A whole number from 0 to 2^32 - 1 in a JSON object."""
    value = member(given, key, int, default=default, required=required)
    if value is not None and (isinstance(value, bool) or not 0 <= value < 2**32):
        raise InputError(f"{where}: {key!r} must be a whole number from 0 to 4294967295, not {value!r}")
    return value


def share_of(given: dict[str, Any], where: str) -> tuple[int, int] | None:
    """(cores, bytes) of each slot; None where whole nodes are meant."""
    cores = whole(given, "cores", where)
    memory = member(given, "memory", int, default=0)
    if not 0 <= memory < 2**63:
        raise InputError(f"{where}: 'memory' must be bytes from 0, not {memory!r}")
    if cores is None and memory:
        raise InputError(f"{where}: 'memory' is given without 'cores'")
    return None if cores is None else (cores, memory)


def nodes_of(
    machine: Machine, given: dict[str, Any], key: str, where: str, *, default: list[int] | None = None
) -> list[int] | None:
    """Node indices from a hostlist or a list of indices."""
    value = given.get(key, default)
    if isinstance(value, str):
        return machine.nodes_named(value)
    numbers = isinstance(value, list) and all(type(node) is int and 0 <= node < 2**32 for node in value)
    if value is default or numbers:
        return value
    raise InputError(f"{where}: {key!r} is neither a hostlist nor a list of node indices but {value!r}")
