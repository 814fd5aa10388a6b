"""`topolane slurm hosts` and `topolane slurm spank`: ranks in the order of the placement."""

from __future__ import annotations

import os
from pathlib import Path

import click

from topolane._engine import InputError
from topolane.cli import common

FORMATS = ("hostfile", "rankfile", "mpich")


@click.command()
@click.argument("job", required=False, metavar="[JOBID]")
@click.option("--format", "form", type=click.Choice(FORMATS), default="hostfile", show_default=True)
@click.option("--out", help="File to write to [default: standard output].")
def hosts(job: str | None, form: str, out: str | None) -> None:
    """Write the hosts of a running job's ranks, in the order of its placement.

    Without JOBID, this uses the job that it runs in.

    \b
    hostfile  one host for each rank: SLURM_HOSTFILE=FILE srun; Open MPI: mpirun --hostfile FILE --map-by seq
    rankfile  Open MPI: mpirun --rankfile FILE
    mpich     host:ranks: mpiexec -launcher ssh -f FILE
    """
    from topolane.slurm.hosts import FORMATS as writers
    from topolane.slurm.hosts import ranks_of

    job = job or os.environ.get("SLURM_JOB_ID")
    if job is None:
        raise InputError("the job is missing: give its number, or run this inside the job")
    common.write_text(out, writers[form](ranks_of(job, os.environ)))


@click.command()
@click.option("--build", "directory", required=True, help="Directory to write topolane_spank.so into.")
@click.option("--cc", default="cc", show_default=True, help="Compiler of the plugin.")
def spank(directory: str, cc: str) -> None:
    """Compile the plugin for ranks in the order of the placement, and print its line of plugstack.conf.

    Needs a C compiler and slurm/spank.h (Debian: libslurm-dev) of the Slurm that is to load it.
    """
    from topolane.slurm.spank import build

    click.echo(build(cc, Path(directory)))
