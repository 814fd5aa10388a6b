"""`topolane slurm plugin`: the topology plugin inside slurmctld."""

from __future__ import annotations

from pathlib import Path

import click

from topolane.cli.explained import ExplainedCommand
from topolane.units import plural

engine_directory_option = click.option(
    "--engine-directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("/usr/lib/topolane"),
    show_default=True,
    help="Where the engine, libtopolane.so, is put.",
)


@click.group("plugin")
def command() -> None:
    """Choose the nodes of jobs inside slurmctld; Slurm keeps everything else."""


@command.command(
    cls=ExplainedCommand,
    examples={
        "Compile against the Slurm that will load it": "--slurm-source /usr/src/slurm",
        "Into a directory of your choice": "--slurm-source /usr/src/slurm --to plugin",
    },
)
@click.option(
    "--slurm-source",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The source of the Slurm that will load the plugin, after its ./configure.",
)
@click.option(
    "--to",
    "directory",
    default=Path("topolane-slurm-plugin"),
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory for what is made.",
)
@click.option(
    "--engine",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A libtopolane.so [default: it is compiled].",
)
@click.option("--cc", "compiler", default="cc", show_default=True, help="The C compiler.")
def build(slurm_source: Path, directory: Path, engine: Path | None, compiler: str) -> None:
    """Compile the plugin against the headers of a Slurm."""
    from topolane.slurm import plugin_build

    release = plugin_build.build(slurm_source, engine, compiler, directory)
    click.echo(f"{directory} has the plugin for Slurm {release} and the engine.")


@command.command(
    cls=ExplainedCommand,
    examples={
        "Isolate the jobs of one partition": "--policy batch=isolated",
        "With the cables of the machine": "--policy batch=isolated --machine machine.toml",
    },
)
@click.option(
    "--from",
    "built",
    default=Path("topolane-slurm-plugin"),
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory that `build` made.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    metavar="PARTITION=POLICY",
    help="The policy of a partition, as often as wanted; jobs of other partitions are left to stock Slurm.",
)
@click.option(
    "--machine",
    "machines",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="A machine file [default: topology.conf, with one cable between each pair of switches]. Give two if one knows "
    "the cables (a TOML file, output of ibnetdiscover) and topology.conf knows all nodes, in this order.",
)
@click.option(
    "--jobs-may",
    default="",
    metavar="WORD,...",
    help="What jobs may ask for themselves with --topolane: policies, min-bandwidth, share-links [default: nothing].",
)
@click.option(
    "--outside",
    type=click.Choice(["apart", "share"]),
    default="apart",
    show_default=True,
    help="Whether jobs that are not isolated may share links with jobs that are.",
)
@click.option(
    "--without-engine",
    type=click.Choice(["stock", "wait"]),
    default="stock",
    show_default=True,
    help="While the engine cannot answer: whether stock Slurm chooses the nodes of isolated jobs, or they wait.",
)
@engine_directory_option
def install(
    built: Path,
    policies: tuple[str, ...],
    machines: tuple[Path, ...],
    jobs_may: str,
    outside: str,
    without_engine: str,
    engine_directory: Path,
) -> None:
    """Put the plugin and its configuration in place; slurm.conf is left to you."""
    from topolane.slurm import plugin_install

    messages = plugin_install.install(
        *(built, policies, machines, engine_directory),
        outside=outside,
        jobs_may=jobs_may,
        without_engine=without_engine,
    )
    for sentence in messages:
        click.echo(sentence)


@command.command(
    cls=ExplainedCommand,
    examples={
        "Check all hosts by ssh": "",
        "Check a login host, too, from within jobs": "--through srun --host login1",
    },
)
@click.option(
    "--through",
    "way",
    type=click.Choice(["ssh", "pdsh", "srun"]),
    default="ssh",
    show_default=True,
    help="How to reach a host. srun reaches nodes that run jobs; other hosts are reached by ssh.",
)
@click.option(
    "--host", "others", multiple=True, help="Another host that has Slurm's commands, such as a login host."
)
@click.option("--print", "is_printed", is_flag=True, help="Print the command for each host, and run none.")
def check(way: str, others: tuple[str, ...], is_printed: bool) -> None:
    """Check on every host, before a restart, that Slurm there can load the plugin. Exit code 1 if one cannot."""
    from topolane.slurm import plugin_check

    if is_printed:
        for line in plugin_check.commands(others, way):
            click.echo(line)
        return
    checked = plugin_check.check(others, way)
    for sentence in (*checked.wrong, *checked.notes):
        click.echo(sentence)
    releases = " and ".join(checked.releases) or "unknown"
    click.echo(f"{plural(checked.fit, 'host')} can load the plugin, built for Slurm {releases}.")
    if checked.wrong:
        click.echo("Do not restart slurmctld yet.")
        raise SystemExit(1)


@command.command(
    cls=ExplainedCommand,
    examples={
        "Take the plugin out": "",
        "Take it out where the engine is elsewhere": "--engine-directory /opt/topolane/lib",
    },
)
@engine_directory_option
def uninstall(engine_directory: Path) -> None:
    """Take out what `install` put in place, once slurm.conf does not name the plugin any more."""
    from topolane.slurm import plugin_install

    for sentence in plugin_install.uninstall(engine_directory):
        click.echo(sentence)
