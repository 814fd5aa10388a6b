"""`topolane routes`: forwarding tables that keep the traffic of jobs on the links they own."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import click

from topolane import moment, sources, texts
from topolane._engine import DedicatedRoutes, ForwardingTables, InputError, Machine
from topolane.cli import common
from topolane.cli.explained import ExplainedCommand
from topolane.cli.place import cables_of, check_keys, identity_of, member, nodes_of, ranks_so_far, read

KEYS = {"id", "nodes", "cores", "memory", "links", "bandwidth_share", "lent", "share"}


@dataclasses.dataclass(frozen=True)
class RoutedJob:
    """A running job."""

    id: str
    nodes: list[int]
    links: list[int]
    """The cables between switches that it owns or is lent."""


@click.command(
    "routes",
    cls=ExplainedCommand,
    examples={
        "Tables for the jobs of a state": "--machine net.ibnetdiscover --state state.json --out lfts",
        "Tables for a moment of a simulated run": "--machine cab --run out --at 2.5 --out lfts",
    },
)
@common.machine_options
@click.option("--state", help="Running jobs, their nodes and dedicated links: JSON, see below.")
@common.run_options
@click.option(
    "--out", required=True, help="File to write the tables to (load it with opensm -R file -U FILE)."
)
@click.option("--previous", help="Earlier tables: count the entries of each job that differ from them.")
@click.option("--service", help="Hosts of storage and services: count their routes over links of jobs.")
@click.option(
    "--service-uplinks",
    type=click.IntRange(0, 64),
    default=0,
    show_default=True,
    metavar="K",
    help="Reserve the K highest uplink slots of every switch for this traffic; no job may own them.",
)
@common.json_option
def command(
    machine: str,
    machine_format: str | None,
    nodes: str | None,
    topology: str | None,
    join: str | None,
    state: str | None,
    run: str | None,
    at: float | None,
    out: str,
    previous: str | None,
    service: str | None,
    service_uplinks: int,
    as_json: bool,
) -> None:
    """Write forwarding tables that keep the traffic of every job on its dedicated links.

    STATE is JSON as `topolane place` reads it. Only `running` is used; its jobs may have links, given as cable ids:

    \b
    {"running": [{"id": 7, "nodes": "cab[1-2,19-20]", "links": [1296, 1297, 1314, 1315]},
                 {"id": 8, "nodes": "cab[3-8]"}]}

    With --run, the jobs are those of a simulated run at one moment. Name the machine that the run had.

    If the machine is a file of ibnetdiscover, LIDs and ports are those in the file; otherwise they are invented.
    """
    if nodes is not None:
        raise InputError("--nodes: forwarding tables are for the whole machine")
    if topology is not None or join is not None:
        raise InputError("--topology and --join: forwarding tables are for cables that one file knows")
    if service_uplinks and service is None:
        raise InputError("--service-uplinks reserves uplink slots for nodes: name these nodes with --service")
    if (state is None) == (run is None):
        raise InputError("the jobs are either in a state or in a run: give one of --state and --run")
    if at is not None and run is None:
        raise InputError("--at names a moment of a run: give its directory with --run")
    fabric, net, source = subnet(machine, machine_format)
    if run is not None:
        given, jobs = run, jobs_of_run(fabric, run, at)
    else:
        given = str(state)
        jobs = jobs_of(fabric, read(given), given)
    served = [] if service is None else named(fabric, service)
    try:
        routes = DedicatedRoutes(
            fabric, [(job.id, job.nodes, job.links) for job in jobs], served, service_uplinks
        )
    except InputError as error:
        raise InputError(f"{given}: {error}") from error
    tables = routes.tables(net, source)
    report = RoutesReport.of(fabric, jobs, tables)
    if previous is not None:
        report.compare(jobs, tables, previous)
    if service is not None:
        report.service = routes.service_routes()
    common.write_text(out, tables.text())
    report.show(out, as_json=as_json)


def subnet(machine: str, machine_format: str | None) -> tuple[Machine, str, str]:
    """A machine, the text of ibnetdiscover of its subnet, and what errors call that."""
    fabric = sources.machine(machine, machine_format)
    if Machine.preset(machine) is None:
        text = texts.read_text(machine)
        if (machine_format or Machine.format_of(text, machine)) == "ibnetdiscover":
            return fabric, text, machine
    return fabric, fabric.to("ibnetdiscover"), f"{machine} as a subnet"


def jobs_of(fabric: Machine, given: dict[str, Any], source: str) -> list[RoutedJob]:
    """The jobs that run, as a state has them."""
    found: dict[str, RoutedJob] = {}
    ranks = 0
    for index, row in enumerate(member(given, "running", list, default=[])):
        where = f"{source}: running[{index}]"
        check_keys(row, KEYS, where)
        identity = identity_of(row, where)
        nodes = nodes_of(fabric, row, "nodes", where)
        if not nodes:
            raise InputError(f"{where}: 'nodes' names no node")
        ranks = ranks_so_far(ranks, nodes, where)
        job = RoutedJob(identity, nodes, cables_of(row, where) + cables_of(row, where, "lent"))
        if found.setdefault(job.id, job) is not job:
            raise InputError(f"{where}: there is a job {job.id} already")
    return list(found.values())


def jobs_of_run(fabric: Machine, directory: str, at: float | None) -> list[RoutedJob]:
    """The jobs that ran at one moment of a run."""
    jobs = []
    for job in moment.read(directory, at, fabric):
        nodes, links, lent = (
            [index for low, end in ranges for index in range(low, end)]
            for ranges in (job.nodes, job.links, job.lent)
        )
        jobs.append(RoutedJob(str(job.job), nodes, links + lent))
    return jobs


def named(fabric: Machine, hosts: str) -> list[int]:
    """The nodes that a hostlist names."""
    try:
        return fabric.nodes_named(hosts)
    except InputError as error:
        raise InputError(f"--service {hosts}: {error}") from error


@dataclasses.dataclass
class RoutesReport:
    """What was written."""

    jobs: list[RoutedJob]
    switches: int
    entries: int
    outside: int
    hosts: list[str]
    changed: dict[str, int] | None = None
    """Entries that differ from the tables before, by the job of their destination; `` for a destination without a job."""
    service: tuple[int, int, int] | None = None

    @staticmethod
    def of(fabric: Machine, jobs: list[RoutedJob], tables: ForwardingTables) -> RoutesReport:
        """Of tables for some jobs."""
        hosts = [fabric.hostlist(job.nodes) for job in jobs]
        return RoutesReport(jobs, tables.switches, tables.entries, len(tables.outside), hosts)

    def compare(self, jobs: list[RoutedJob], tables: ForwardingTables, previous: str) -> None:
        """Counts the entries that differ from a file."""
        job_of = {node: job.id for job in jobs for node in job.nodes}
        by_node, others = tables.changed(texts.read_text(previous, texts.LARGE), previous)
        changed: Counter[str] = Counter({"": others} if others else {})
        for node, entries in by_node:
            changed[job_of.get(node, "")] += entries
        self.changed = dict(changed)

    def show(self, out: str, *, as_json: bool) -> None:
        """Prints it."""
        if as_json:
            self._print_json(out)
            return
        owning = [job for job in self.jobs if job.links]
        click.echo(
            f"{out}: {self.entries:,} entries of {self.switches:,} switches; {len(owning):,} of "
            f"{len(self.jobs):,} jobs own {sum(len(job.links) for job in owning):,} links"
        )
        if self.outside:
            click.echo(f"{self.outside:,} LIDs of devices outside the tree have no entries")
        if self.changed is not None:
            click.echo(f"{sum(self.changed.values()):,} entries differ from the tables before")
        if self.service is not None:
            ways, owned, others = self.service
            click.echo(
                f"of {ways:,} routes between service nodes and nodes of these jobs {owned:,} pass over a link "
                f"that a job owns, {others:,} over another job's"
            )
        columns = ["job", "nodes", "links"] + (["entries changed"] if self.changed is not None else [])
        rows = [[job.id, hosts, f"{len(job.links):,}"] for job, hosts in zip(self.jobs, self.hosts)]
        if self.changed is not None:
            rows = [[*row, f"{self.changed.get(row[0], 0):,}"] for row in rows]
            if "" in self.changed:
                rows.append(["no job", "", "", f"{self.changed['']:,}"])
        common.print_table(columns, rows, ["nodes"])

    def _print_json(self, out: str) -> None:
        service = None
        if self.service is not None:
            service = dict(zip(("routes", "over_dedicated_links", "over_links_of_another_job"), self.service))
        common.print_json(
            {
                "out": out,
                "switches": self.switches,
                "entries": self.entries,
                "lids_outside": self.outside,
                "jobs": [
                    {
                        "id": job.id,
                        "nodes": hosts,
                        "links": len(job.links),
                        "changed": None if self.changed is None else self.changed.get(job.id, 0),
                    }
                    for job, hosts in zip(self.jobs, self.hosts)
                ],
                "changed": None if self.changed is None else sum(self.changed.values()),
                "service": service,
            }
        )
