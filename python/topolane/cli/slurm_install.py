"""`topolane slurm install`, `uninstall` and `unit`: turn the live driver on and off."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

import click

from topolane._engine import InputError
from topolane.cli.common import json_option, print_json, print_table

config_option = click.option(
    "--config", required=True, help="The daemon's configuration (docs/reference/slurm-configuration.md)."
)
job_submit_option = click.option(
    "--job-submit",
    metavar="FILE",
    help="The job_submit.lua to change [default: the one that slurmctld reads].",
)


@contextlib.contextmanager
def extra() -> Iterator[None]:
    """Says what to install if a package is missing."""
    try:
        yield
    except ImportError as error:
        raise InputError(
            f"this command needs the extra slurm (in a clone: .venv/bin/pip install -e '.[slurm]'): {error}"
        ) from error


@click.command()
@config_option
@job_submit_option
@click.option("--dry-run", is_flag=True, help="Print what would be written; write nothing.")
def install(config: str, job_submit: str | None, dry_run: bool) -> None:
    """Change job_submit.lua so that slurmctld holds the jobs of the managed partitions for the daemon."""
    from topolane.slurm import config as configuration

    settings = configuration.read(config)
    with extra():
        from topolane.slurm.install import installation

        made = installation(settings, job_submit)
    if dry_run:
        click.echo(made.own, nl=False)
        return
    made.write()
    for sentence in made.sentences():
        click.echo(sentence)


@click.command()
@config_option
@job_submit_option
@click.option("--dry-run", is_flag=True, help="Print what would be done; do nothing.")
@json_option
def uninstall(config: str, job_submit: str | None, dry_run: bool, as_json: bool) -> None:
    """Undo `install` in job_submit.lua, and release every job that is held for the daemon."""
    from topolane.slurm import config as configuration

    settings = configuration.read(config)
    with extra():
        from topolane.slurm.client import SlurmError
        from topolane.slurm.install import controller, take_out
        from topolane.slurm.release import return_jobs
        from topolane.slurm.setup import connect
    try:
        slurm = connect(settings)
        return_jobs(slurm, wait=0, dry_run=True)  # nothing is touched where Slurm does not answer
        file = take_out(controller(), job_submit, dry_run=dry_run)
        given = return_jobs(slurm, wait=2 * settings.interval + 1, dry_run=dry_run)
    except SlurmError as error:
        raise InputError(str(error)) from error
    if as_json:
        print_json({"dry_run": dry_run, "file": file, "jobs": [dataclasses.asdict(each) for each in given]})
    else:
        click.echo(f"Nothing was changed. This would be done:\n{file}" if dry_run else file)
        rows = [(each.job, str(each.tasks), each.partition, each.what) for each in given]
        if rows:
            print_table(("job", "tasks", "partition", "now"), rows, ("partition", "now"))
    if any(each.what.startswith("not released") for each in given):
        raise click.exceptions.Exit(1)


@click.command()
@config_option
def unit(config: str) -> None:
    """Print a systemd unit file for the daemon."""
    from topolane.slurm import config as configuration
    from topolane.slurm.unit import unit as unit_file

    click.echo(unit_file(configuration.read(config), config), nl=False)
