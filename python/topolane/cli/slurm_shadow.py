"""`topolane slurm shadow` and `topolane slurm replay`: what a policy would do in a Slurm that decides for itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import click

from topolane._engine import InputError
from topolane.cli import common, shadows
from topolane.units import plural


@click.command()
@click.option(
    "--policy", required=True, help="Policy: a name (`topolane policies` lists them), or module:Class."
)
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="NAME",
    help="Ask only about jobs of this partition; repeat it for several [default: all].",
)
@click.option(
    "--machine",
    metavar="FILE",
    help="Machine: a name or a file [default: the file of the plugin, else `scontrol show topology`].",
)
@click.option(
    "--min-bandwidth",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="Least share of full bandwidth that jobs accept on links of their own [default: all of it].",
)
@click.option("--log", metavar="FILE", help="Append every event to this file, for `topolane slurm replay`.")
@click.option(
    "--interval",
    type=click.FloatRange(0.2, 60),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks at Slurm.",
)
@click.option(
    "--for",
    "duration",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="End after this time [default: at Ctrl-C or SIGTERM].",
)
@click.option(
    "--slurmrestd",
    metavar="ADDR",
    help="Read Slurm through slurmrestd at unix:PATH or http(s)://HOST:PORT [default: by scontrol].",
)
@click.option("--token-file", metavar="FILE", help="File with the token that slurmrestd wants.")
@common.json_option
def shadow(
    policy: str,
    partitions: tuple[str, ...],
    machine: str | None,
    min_bandwidth: float | None,
    log: str | None,
    interval: float,
    duration: float | None,
    slurmrestd: str | None,
    token_file: str | None,
    as_json: bool,
) -> None:
    """Say where a policy would have placed the jobs that Slurm starts. It changes nothing in Slurm.

    Each start is a line: Slurm's nodes and the policy's, or why the job would have waited. A summary ends it.
    """
    from topolane.live.log import Log
    from topolane.live.shadows import Summary
    from topolane.slurm.client import SlurmError, connect
    from topolane.slurm.shadow import Shadow

    shadows.check_min_bandwidth(policy, min_bandwidth)
    summary = Summary(policy)

    def write(event: str, **facts: Any) -> None:
        if event == "holds":
            summary.missed += 1
        if written is not None:
            written.write(event, **facts)

    def tell(start: Mapping[str, Any], nodes: int) -> None:
        summary.add(start, nodes)
        click.echo(json.dumps(start) if as_json else shadows.line(start, policy, "Slurm"))
        sys.stdout.flush()

    written = None if log is None else Log(log)
    try:
        seen = Shadow(
            connect(slurmrestd, token_file),
            policy,
            machine=machine,
            partitions=partitions,
            min_bandwidth=min_bandwidth,
            interval=interval,
            write=write,
            tell=tell,
        )
    except SlurmError as error:
        raise InputError(str(error)) from error
    if not as_json:
        _begin(seen.jobs, seen.unknown)
    shadows.watch(seen, duration)
    shadows.end(summary, as_json, "Slurm", one_line=True)


@click.command()
@click.argument("log")
@click.option(
    "--csv",
    "table",
    help="File to write the jobs that Slurm ran to, as a workload for `topolane compare --trace`.",
)
@click.option("--policy", metavar="MODULE:CLASS", help="Policy of the shadow, if it is a class of your own.")
@common.json_option
def replay(log: str, table: str | None, policy: str | None, as_json: bool) -> None:
    """Make the decisions in a shadow's LOG once more with this engine, and print its summary.

    The exit code is 1 if a decision differs.
    """
    from topolane.slurm.shadow_log import replay as repeated

    found = repeated(log, policy)
    if table is not None:
        common.write_text(table, found.csv(), "--csv")
    shadows.print_replay(found, as_json, "Slurm")


def _begin(jobs: int, unknown: list[str]) -> None:
    hold = "holds" if jobs == 1 else "hold"
    click.echo(f"{plural(jobs, 'job')} {hold} nodes already; the next starts are shown as they happen")
    if unknown:
        click.echo(
            f"{plural(len(unknown), 'node')} of Slurm {'is' if len(unknown) == 1 else 'are'} not in the machine ({', '.join([*unknown[:3], *['...'] * (len(unknown) > 3)])}): "
            "the policy is not asked about jobs there"
        )
