"""`topolane slurm outages`: the links that no new job may own."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topolane import texts
from topolane.cli.common import json_option, print_json
from topolane.cli.explained import ExplainedCommand
from topolane.cli.slurm_status import job_line, listed, state_option

if TYPE_CHECKING:
    from topolane.slurm.outages import OutageReport


@click.command(
    cls=ExplainedCommand,
    examples={
        "Report what has failed": "--machine machine.toml --fabric failed.txt",
        "See first what would change": "--machine machine.toml --fabric failed.txt --dry-run",
    },
)
@click.option(
    "--machine",
    "machines",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The machine file that topolane.conf names as Machine; give it twice for two files, in the same order.",
)
@click.option(
    "--fabric",
    type=click.Path(path_type=Path, dir_okay=False),
    help="What has failed: a list of links, switches, nodes or cables, one a line, or the present output of ibnetdiscover.",
)
@click.option(
    "--service-uplinks",
    type=click.IntRange(0, 64),
    default=0,
    help="Highest uplink slots of every switch that no job may own: they are for storage and services.",
)
@state_option
@click.option("--dry-run", is_flag=True, help="Print what would change, and write nothing.")
@json_option
def outages(
    machines: tuple[Path, ...],
    fabric: Path | None,
    service_uplinks: int,
    state: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Tell the plugin which links no new job may own: links that have failed, and links reserved for services.

    Each run says all of it: without --fabric and --service-uplinks, every link is in service. The plugin takes it over within
    ten seconds, at its next call. Jobs that run keep their links. Run it from cron, or when the subnet manager reports a
    change, as root or as the user of slurmctld.
    """
    from topolane.slurm import outages as work
    from topolane.slurm import state_directory

    place = state_directory.state_save_location() if state is None else state
    report = work.tell(work.OutageSettings(machines, place, fabric, service_uplinks), write=not dry_run)
    if as_json:
        print_json(dataclasses.asdict(report))
        return
    for line in _lines(report):
        click.echo(texts.printable(line))


def _lines(report: OutageReport) -> list[str]:
    from topolane.units import plural

    def links(names: list[str]) -> str:
        return plural(len(names), "link") + (f": {listed(names, 20)}" if names else "")

    lines = [f"out of service: {links(report.failed)}"]
    if report.reserved:
        lines.append(f"reserved for services: {plural(len(report.reserved), 'link')}")
    for what, names in (("newly out of service", report.newly_failed), ("back in service", report.back)):
        if names:
            lines.append(f"{what}: {links(names)}")
    lines += map(job_line, report.jobs)
    lines += report.problems
    if not report.written:
        lines.append("nothing is written (--dry-run)")
    return lines
