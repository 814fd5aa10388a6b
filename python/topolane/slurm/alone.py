"""One daemon for a partition: two that decide for the same jobs undo each other's work."""

from __future__ import annotations

import hashlib
import os

from topolane._engine import InputError
from topolane.locks import Locks, TakenError
from topolane.slurm.config import Config


def claim(config: Config) -> Locks:
    """Takes the configured partitions for this process, on this host, as long as the locks are kept.

    They exclude daemons of the same user, and daemons of other users where root has them (`topolane.locks`). Raises
    InputError where another daemon has one of them.
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
