"""`topolane place`: one decision, from a state and a request in JSON."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import click

from topolane import sources, texts
from topolane._engine import Decision, InputError, Machine, Obstacle, Refusal, State
from topolane.cli import common, values
from topolane.cli.explained import ExplainedCommand
from topolane.policy import resolve

STATE_KEYS = {"machine", "running", "down", "request"}
JOB_KEYS = {
    "id",
    "nodes",
    "cores",
    "memory",
    "pattern",
    "processes",
    "links",
    "bandwidth_share",
    "lent",
    "share",
}
REQUEST_KEYS = {"nodes", "id", "cores", "memory", "share", "stacked", "members", "eligible", "segment"}


@click.command(
    "place",
    cls=ExplainedCommand,
    examples={
        "Place the request in a file": "state.json",
        "Give it links of its own": "state.json --policy dedicated --json",
    },
)
@click.argument("file", default="-")
@click.option(
    "--machine",
    type=values.MACHINE,
    help="Machine: a name or a file [default: the machine named in the JSON].",
)
@click.option(
    "--policy",
    type=values.POLICY,
    default="isolated",
    show_default=True,
    help="Policy: a name (`topolane policies` lists them), or module:Class.",
)
@click.option("--seed", type=common.WORD, default=0, show_default=True, help="Seed of random policies.")
@click.option(
    "--cores-per-node",
    metavar="auto|fixed:K|K",
    help="For a request that names processes: cores to use of each node, chosen by predicted run time, or fixed "
    "[default: auto].",
)
@click.option(
    "--routing",
    type=values.ROUTING,
    default="default",
    show_default=True,
    help="For a request that names processes: routing of their messages.",
)
@click.option(
    "--model",
    type=values.MODEL,
    default="full",
    show_default=True,
    help="For a request that names processes: model of contention.",
)
@common.json_option
def command(
    file: str,
    machine: str | None,
    policy: str,
    seed: int,
    cores_per_node: str | None,
    routing: str,
    model: str,
    as_json: bool,
) -> None:
    """Choose nodes for one request, or say why it cannot be placed (exit code 1).

    FILE (default: standard input) is JSON. Nodes are given as a host list or a list of indices:

    \b
    {"machine": "cab",
     "running": [{"id": 7, "nodes": "cab[1-20]"},
                 {"id": 8, "nodes": "cab30", "share": {"cores": 4, "memory": 1000000000}}],
     "down": "cab[31-33]",
     "request": {"nodes": 40, "eligible": "cab[1-648]"}}

    A request may name processes and their traffic instead of nodes (docs/guides/cores-per-node.md).
    """
    given = read(file)
    named = member(given, "machine", str, required=machine is None)
    fabric = sources.machine(machine or named)
    state = state_of(fabric, given)
    request = member(given, "request", dict, required=True)
    if "processes" in request:
        from topolane.cli import place_processes

        how = place_processes.How(cores_per_node or "auto", routing, model, resolve(policy), seed)
        place_processes.place(fabric, state, given, how, as_json=as_json)
        return
    if cores_per_node is not None:
        raise InputError("--cores-per-node is for a request that names 'processes', not 'nodes'")
    check_keys(request, REQUEST_KEYS, "request")
    wanted = whole(request, "nodes", "request")
    if wanted is None:
        raise InputError("request: 'nodes' is missing")
    rule, identity = resolve(policy), whole(request, "id", "request") or 0
    share, eligible = share_of(request, "request"), nodes_of(fabric, request, "eligible", "request")
    segment = whole(request, "segment", "request", least=1)
    limits = fabric.limits(rule)
    bounds = {"limits": limits} if limits else {}
    if not as_json:
        for limit in limits:
            click.echo(f"{policy}: {limit}")
    found = state.place(
        rule,
        wanted,
        id=identity,
        share=share,
        stacked=member(request, "stacked", bool, default=False),
        members=nodes_of(fabric, request, "members", "request") or [],
        eligible=eligible,
        segment=segment,
        seed=seed,
    )
    if isinstance(found, Refusal):
        if as_json:
            obstacles = [obstacle_as_object(each) for each in found.obstacles]
            refused = {"placed": False, "refusal": found.name, "why": found.why}
            common.print_json({**refused, **({"obstacles": obstacles} if obstacles else {}), **bounds})
        else:
            click.echo(f"not placed, {found.name}: {found.why}")
            for each in found.obstacles:
                click.echo(f"  {obstacle_in_words(each)}")
        sys.exit(1)
    nodes, aph, hop_bytes, links = found.nodes, found.aph, found.hop_bytes, found.links
    hosts = [fabric.node_name(node) for node in nodes]
    least = fabric.least_aph()[len(nodes) - 1] if len(nodes) <= fabric.nodes else None
    if as_json:
        answer = {"placed": True, "nodes": nodes, "hosts": hosts, "aph": aph, "least_aph": least}
        kept = {} if found.kept_share is None else {"kept_share": found.kept_share}
        more = {**links_of(found), **kept, **spare_of(found), **gpus_of(found), **segments_of(found, segment)}
        common.print_json({**answer, "hop_bytes": hop_bytes, **more, **bounds})
        return
    click.echo(f"nodes      {fabric.hostlist(nodes)}")
    click.echo(
        f"APH        {aph:.4f}" + ("" if least is None else f" (the empty machine allows {least:.4f})")
    )
    click.echo(f"hop-bytes  {hop_bytes:,.0f} for one byte between every pair")
    if any(found.gpus):
        click.echo(
            f"GPUs       {'; '.join(' '.join(map(str, gpus)) for gpus in found.gpus)} (of each node in turn)"
        )
    if links:
        click.echo(f"links      {', '.join(map(str, links))} (cables that no other job uses)")
    if found.kept_share is not None:
        click.echo(f"share      {found.kept_share:g} of each cable between its groups, whatever others send")
    if found.spare:
        click.echo(f"spare      {fabric.hostlist(found.spare)} (held with the nodes, and not used)")
    if segment is not None and found.segments is None:
        click.echo(f"segments   not kept: {policy} parts jobs without regard to segments")
    elif found.segments:
        rows = [[block, f"{len(part):,}", fabric.hostlist(part)] for block, part in found.segments]
        common.print_table(["segment in", "nodes", "hosts"], rows, ["segment in", "hosts"])


def links_of(found: Decision) -> dict[str, Any]:
    """The members of `--json` for dedicated links and the share of full bandwidth on them."""
    return {"links": found.links, "bandwidth_share": found.bandwidth_share} if found.links else {}


def spare_of(found: Decision) -> dict[str, Any]:
    """The member of `--json` for nodes that are held and not used."""
    return {"spare": found.spare} if found.spare else {}


def gpus_of(found: Decision) -> dict[str, Any]:
    """The member of `--json` for the GPUs of each node, if the request takes some of them."""
    return {"gpus": found.gpus} if any(found.gpus) else {}


def segments_of(found: Decision, segment: int | None) -> dict[str, Any]:
    """The members of `--json` for the nodes of each segment and its block; null if the policy keeps no segments."""
    if segment is None:
        return {}
    parts = found.segments
    if parts is None:
        return {"segments": None}
    return {"segments": [nodes for _, nodes in parts], "blocks": [block for block, _ in parts]}


def obstacle_as_object(obstacle: Obstacle) -> dict[str, Any]:
    """An obstacle to a request, for `--json`."""
    what = "slots" if obstacle.uplinks is None else "uplinks"
    missing = {"missing": what, "count": obstacle.missing, "of": obstacle.uplinks}
    where = {"group": obstacle.name, "level": obstacle.level, "index": obstacle.index, "free": obstacle.free}
    return {
        **where,
        **{key: value for key, value in missing.items() if value is not None},
        "jobs": obstacle.jobs,
    }


def obstacle_in_words(obstacle: Obstacle) -> str:
    """An obstacle to a request, as one line."""
    if obstacle.uplinks is None:
        missing = f"{obstacle.missing} more wanted"
    else:
        missing = f"{obstacle.missing} of {obstacle.uplinks} uplinks used by others"
    jobs = ", ".join(map(str, obstacle.jobs))
    return f"{obstacle.name}: {obstacle.free} free, {missing}" + (f" (jobs {jobs})" if jobs else "")


def number_of(job: dict[str, Any]) -> int | None:
    """The number of a running job; None if `id` is a name or missing."""
    identity = job.get("id")
    return identity if type(identity) is int and 0 <= identity < 2**64 else None


def state_of(fabric: Machine, given: dict[str, Any]) -> State:
    """The state in the members `running` and `down`."""
    state = State(fabric)
    for index, job in enumerate(member(given, "running", list, default=[])):
        where = f"running[{index}]"
        check_keys(job, JOB_KEYS, where)
        nodes = nodes_of(fabric, job, "nodes", where)
        if nodes is None:
            raise InputError(f"{where}: 'nodes' is missing")
        links = cables_of(job, where)
        try:
            share = bandwidth_share_of(job, where)
            state.hold(nodes, share_of(job, where), links, share, id=number_of(job))
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
    state.take_out(nodes_of(fabric, given, "down", "the state") or [])
    return state


def read(file: str) -> dict[str, Any]:
    """The JSON object in a file."""
    source = "standard input" if file == "-" else file
    if file == "-":
        raw = texts.read_stream(sys.stdin.buffer, source, texts.SMALL)
    else:
        raw = texts.read_bytes(file, texts.SMALL)
    text = texts.decoded(raw, source)
    try:
        given = json.loads(text, object_pairs_hook=without_doubles)
    except json.JSONDecodeError as error:
        raise InputError(f"{source}:{error.lineno}: not JSON: {error.msg} at column {error.colno}") from error
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
    except (ValueError, RecursionError) as error:
        # Numbers of thousands of digits, brackets thousands deep.
        raise InputError(f"{source}: not JSON that can be used: {error}") from error
    if not isinstance(given, dict):
        raise InputError(f"{source}: a JSON object is wanted, not {shown(given)}")
    check_keys(given, STATE_KEYS, "the state")
    return given


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Raises InputError if it has a key twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        count = Counter(key for key, _ in pairs)
        double = next(key for key in made if count[key] > 1)
        raise InputError(f"key {texts.shown(double)} is given twice")
    return made


def shown(value: Any) -> str:
    """A value as JSON, cut short."""
    try:
        text = json.dumps(value)
    except RecursionError:
        return "a list of lists too deep to show"
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_keys(given: Any, known: set[str], where: str) -> None:
    """Raises InputError for an unknown key, which would otherwise be ignored silently."""
    if not isinstance(given, dict):
        raise InputError(f"{where} is not a JSON object but {shown(given)}")
    for key in given:
        if key not in known:
            raise InputError(f"{where}: unknown key {texts.shown(key)}; there are {', '.join(sorted(known))}")


KINDS = {str: "a string", list: "a list", dict: "an object", bool: "true or false"}


def member(
    given: dict[str, Any], key: str, kind: type, *, default: Any = None, required: bool = False
) -> Any:
    """A member of a JSON object, of a given type. null counts as absent."""
    value = given.get(key)
    if value is None and not required:
        return default
    if key not in given:
        raise InputError(f"{key!r} is missing")
    if not isinstance(value, kind):
        raise InputError(f"{key!r} is not {KINDS[kind]} but {shown(value)}")
    return value


def identity_of(given: dict[str, Any], where: str) -> str:
    """The number or the name of a running job."""
    identity = given.get("id")
    if type(identity) is int or (type(identity) is str and identity):
        if all(map(texts.is_printable, str(identity))):
            return str(identity)
        raise InputError(f"{where}: 'id' holds a control character: {shown(identity)}")
    raise InputError(f"{where}: 'id' must be a number or a name, not {shown(identity)}")


MOST_RANKS = 1 << 22


def ranks_so_far(before: int, nodes: list[int], where: str) -> int:
    """The total nodes of all jobs up to this one. Jobs may share nodes, so the machine is no bound."""
    if before + len(nodes) > MOST_RANKS:
        raise InputError(f"{where}: the jobs so far have more than {MOST_RANKS} nodes together")
    return before + len(nodes)


def whole(
    given: dict[str, Any], key: str, where: str, *, least: int = 0, most: int = 2**32 - 1
) -> int | None:
    """A whole number in a JSON object."""
    value = given.get(key)
    if value is None or (type(value) is int and least <= value <= most):
        return value
    raise InputError(f"{where}: {key!r} must be a whole number from {least} to {most}, not {shown(value)}")


def share_of(given: dict[str, Any], where: str) -> dict[str, float] | None:
    """Resources and counts of each slot; None where whole nodes are meant."""
    share = given.get("share")
    # In the state of the Slurm daemon `share` is the history of a job's bandwidth.
    if isinstance(share, dict) and "had" not in share:
        for key in ("cores", "memory"):
            if given.get(key) is not None:
                raise InputError(f"{where}: {key!r} is given together with 'share', which counts it")
        inside = f"{where}: share"
        counts = {
            name: part_of_gpu(share, name, inside)
            or whole(share, name, inside, least=int(name == "cores"), most=2**63 - 1)
            for name in share
        }
        return {name: count for name, count in counts.items() if count is not None}
    if share is not None and not isinstance(share, dict):
        raise InputError(f"{where}: 'share' is no object of resources and counts but {shown(share)}")
    cores = whole(given, "cores", where, least=1)
    memory = whole(given, "memory", where, most=2**63 - 1)
    if cores is None and memory is not None:
        raise InputError(f"{where}: 'memory' is given without 'cores'")
    return None if cores is None else {"cores": cores, "memory": memory or 0}


def part_of_gpu(share: dict[str, Any], name: str, where: str) -> float | None:
    """The part of one GPU that a slot takes; None for whole GPUs and for other resources. Raises InputError for other numbers
    that are not whole."""
    part = share[name]
    if name.split(":")[0] != "gpu" or not isinstance(part, float):
        return None
    if 0.0005 <= part < 0.9995:
        return part
    raise InputError(
        f"{where}: {texts.shown(name)} must be a whole number or a part of one GPU from 0.001 to 0.999, not {shown(part)}"
    )


def cables_of(given: dict[str, Any], where: str, key: str = "links") -> list[int]:
    """The cables between switches that are dedicated to a running job, or `lent` to it."""
    links = given.get(key) or []
    if not isinstance(links, list) or not all(type(link) is int and 0 <= link < 2**32 for link in links):
        raise InputError(f"{where}: {key!r} is not a list of cables but {shown(links)}")
    return links


def bandwidth_share_of(given: dict[str, Any], where: str) -> float:
    """The share of full bandwidth that a running job has on its dedicated cables."""
    share = given.get("bandwidth_share", 1.0)
    if type(share) not in (int, float) or not 0 < share <= 1:
        raise InputError(
            f"{where}: 'bandwidth_share' must be a number above 0 and at most 1, not {shown(share)}"
        )
    return float(share)


def nodes_of(machine: Machine, given: dict[str, Any], key: str, where: str) -> list[int] | None:
    """Node indices from a hostlist or a list of indices; None if the member is missing."""
    value = given.get(key)
    try:
        if isinstance(value, str):
            return machine.nodes_named(value)
    except InputError as error:
        raise InputError(f"{where}: {key!r}: {error}") from error
    if value is None:
        return None
    if isinstance(value, list) and all(type(node) is int and 0 <= node < 2**32 for node in value):
        return value
    raise InputError(f"{where}: {key!r} is neither a hostlist nor a list of node indices but {shown(value)}")
