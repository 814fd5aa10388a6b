"""`topolane links`: which links jobs load, and which jobs use each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import click

from topolane import networks, routes, sources
from topolane._engine import InputError, Loads, Routing
from topolane.cli import common, placed, settings, values
from topolane.cli.explained import ExplainedCommand
from topolane.cli.placed import Placed
from topolane.routes import Link, MachineLinks
from topolane.units import plural


@dataclasses.dataclass(frozen=True)
class LinkLoad:
    """The load of jobs on one link."""

    link: Link
    share: float
    """Share of the link's capacity, as the sum over jobs that each run alone; above 1 it is overloaded."""
    capacity: float
    """Bytes per second."""
    users: list[tuple[str, float]]
    """The id and the share of every job that uses it, largest first."""


@click.command(
    "links",
    cls=ExplainedCommand,
    examples={
        "The most loaded links under some jobs": "--machine cab --jobs jobs.csv --top 10",
        "Draw all links": "--machine cab --jobs jobs.csv --picture links.svg",
    },
)
@common.machine_options
@click.option(
    "--routing",
    type=values.ROUTING,
    default="default",
    show_default=True,
    help="Routing: a name of `topolane policies`, `default` for the first of the machine's wiring, or a file of forwarding tables (opensm-lfts.dump, "
    "dump_fts). For tables, --machine must be the subnet's ibnetdiscover file.",
)
@click.option(
    "--jobs",
    "file",
    required=True,
    help="Running jobs and their nodes: CSV, or JSON as `topolane place` reads it.",
)
@click.option(
    "--pattern",
    type=values.PATTERN,
    default="stencil4d",
    show_default=True,
    help="Traffic of jobs without a pattern of their own.",
)
@settings.seed_option
@common.on_option
@click.option(
    "--link", help="Show only this link: 'leaf0->pod0-s1' ('#1' for a parallel cable), or the id of a cable."
)
@click.option(
    "--between",
    nargs=2,
    metavar="A B",
    help="Show only links between two nodes, switches or groups of parallel switches, in both directions.",
)
@click.option(
    "--top",
    type=click.IntRange(0, 2**31),
    default=20,
    show_default=True,
    help="Show at most this many links, the most loaded first; 0: all.",
)
@click.option("--picture", metavar="FILE", help="Draw the load of all links into a file, .svg or .png.")
@common.json_option
def command(
    machine: str,
    machine_format: str | None,
    nodes: str | None,
    topology: str | None,
    join: str | None,
    routing: str,
    file: str,
    pattern: str,
    seed: int,
    network: str | None,
    link: str | None,
    between: tuple[str, str] | None,
    top: int,
    picture: str | None,
    as_json: bool,
) -> None:
    """Show the load of every link under some jobs, and which jobs use it.

    A job that runs alone uses each of its links for a share of its communication time; the share is 1 at its bottleneck. The load
    of a link is the sum of the shares of all jobs that use it. Above 1, these jobs slow each other down.

    \b
    id,nodes,pattern                        {"running": [
    7,cab[1-20],stencil4d                     {"id": 7, "nodes": "cab[1-20]", "pattern": "stencil4d"},
    8,"cab[21-30,40]",                        {"id": 8, "nodes": "cab[21-30,40]"}]}

    A job may name a file of traffic (column or key `traffic`) instead of a pattern. Every node of
    a job runs one rank, in the order given.

    With --on, the links are those of another network. If that has servers, every node of a job sends each server as much as it
    gets from it, and patterns and files of traffic are not used.
    """
    if picture is not None:
        from topolane.report import links_picture

        links_picture.check_name(picture)
    reading: dict[str, Any] = {"format": machine_format, "nodes": nodes, "topology": topology, "join": join}
    if network is None:
        whole, chosen_routing = routes.routing(machine, routing, **reading, seed=seed)
        fabric, where = whole, whole.name
    else:
        whole = sources.machine(machine, **reading)
        other = networks.named(whole, network)
        fabric, chosen_routing = routes.routing(other.source, routing, seed=seed)
        where = f"network {network} of {whole.name}"
    common.tell(whole)
    jobs = placed.jobs(whole, file, pattern=pattern, seed=seed)
    sent = [(job.nodes, job.traffic) for job in jobs]
    if network is not None:
        sent = [networks.sent(whole, other, *each) for each in sent]
    loads = Loads(chosen_routing, sent)
    what = f"{plural(len(jobs), 'job')} on {where} by {chosen_routing.name}"
    if picture is not None:
        import polars

        table = polars.DataFrame(chosen_routing.loaded_links(loads.shares))
        links_picture.draw(fabric, table, picture, what)
    links = MachineLinks(fabric)
    everything = link is None and between is None
    found = list(loaded(chosen_routing, loads, links, jobs, only_used=everything))
    if link is not None:
        found = [load for load in found if matches(load.link, link)]
        if not found:
            raise InputError(f"--link {link!r}: the machine has no such link")
    if between is not None:
        found = [load for load in found if joins(load.link, between)]
        if not found:
            raise InputError(f"--between: no link joins {between[0]!r} and {between[1]!r}")
    found.sort(key=lambda load: (-load.share, load.link.cable, load.link.direction))
    shown = found[:top] if top else found
    if as_json:
        common.print_json(
            {
                "machine": whole.name,
                "network": network,
                "routing": chosen_routing.name,
                "jobs": [
                    {"id": job.id, "nodes": whole.hostlist(job.nodes), "time_alone": loads.time_alone(index)}
                    for index, job in enumerate(jobs)
                ],
                "found": len(found),
                "links": [as_dict(load) for load in shown],
            }
        )
        return
    shared = sum(len(load.users) > 1 for load in found)
    click.echo(
        f"{what}: {plural(len(found), 'link')}{' in use' if everything else ''}, {shared:,} of them by several jobs"
    )
    common.print_table(
        ["link", "load", "GB/s", "jobs and what each wants"],
        [row(load) for load in shown],
        ["jobs and what each wants"],
    )
    if len(shown) < len(found):
        click.echo(f"... and {plural(len(found) - len(shown), 'more link')} (--top 0 shows all)")


def loaded(
    chosen_routing: Routing, loads: Loads, links: MachineLinks, jobs: Sequence[Placed], *, only_used: bool
) -> Iterable[LinkLoad]:
    """The load of jobs on each link."""
    shares, capacity = loads.shares, chosen_routing.capacity
    channels = shares.nonzero()[0] if only_used else range(chosen_routing.channels)
    for channel in map(int, channels):
        if not capacity[channel] > 0:
            continue  # a missing cable
        users = [(jobs[index].id, share) for index, share in loads.users(channel)]
        users.sort(key=lambda user: -user[1])
        behind = chosen_routing.links(channel)
        for cable, direction in behind:
            own = float(capacity[channel]) / len(behind)
            yield LinkLoad(links.link(cable, direction), float(shares[channel]), own, users)


def matches(link: Link, wanted: str) -> bool:
    """Whether a text names this link: by its name, its ends alone, or its cable."""
    return wanted in (link.name, f"{link.source}->{link.target}", str(link.cable))


def joins(link: Link, between: tuple[str, str]) -> bool:
    """Whether a link joins two things, in either direction."""
    source, target = {link.source, link.groups[0]}, {link.target, link.groups[1]}
    a, b = between
    return (a in source and b in target) or (b in source and a in target)


def as_dict(load: LinkLoad) -> dict[str, Any]:
    """A load for JSON."""
    link = load.link
    return {
        "link": link.name,
        "cable": link.cable,
        "direction": link.direction,
        "load": load.share,
        "capacity": load.capacity,
        "jobs": [{"id": job, "share": share} for job, share in load.users],
    }


def row(load: LinkLoad) -> list[str]:
    """A load for the table."""
    users = [f"{job} {share:.2f}" for job, share in load.users]
    more = [f"{len(users) - 6} more"] if len(users) > 6 else []
    return [load.link.name, f"{load.share:.2f}", f"{load.capacity / 1e9:g}", ", ".join(users[:6] + more)]
