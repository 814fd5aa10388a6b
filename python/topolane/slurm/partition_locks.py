"""Locks that allow one daemon per partition: two daemons would undo each other's decisions."""

from __future__ import annotations

import hashlib
import os

from topolane._engine import InputError
from topolane.locks import Locks, TakenError
from topolane.slurm.config import Config


def claim(config: Config) -> Locks:
    """Locks the configured partitions for this process, on this host, until the locks are closed.

    They exclude other daemons of the same user. Locks of root also exclude daemons of other users
    (`topolane.locks`). Raises InputError if another daemon has locked one of the partitions.
    """
    where = config.slurmrestd
    if where.startswith("unix:"):
        where = os.path.realpath(where.removeprefix("unix:"))
    taken = Locks("topolane-slurm")
    for partition in sorted(set(config.partitions)):
        try:
            taken.take(hashlib.sha256(f"{where}\n{partition}".encode()).hexdigest())
        except TakenError as error:
            taken.close()
            named = "it" if error.process is None else f"process {error.process}"
            raise InputError(
                f"another daemon on this host starts the jobs of partition {partition} at "
                f"{config.slurmrestd}: end {named} first"
            ) from error
    return taken
