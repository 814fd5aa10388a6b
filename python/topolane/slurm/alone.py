"""One daemon for a partition, and one for a log: two that decide for the same jobs undo each other's work."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import socket
import stat
from typing import IO

from topolane._engine import InputError
from topolane.slurm.config import Config


def claim(config: Config) -> list[socket.socket]:
    """Takes the configured partitions for this process, on this host, as long as the sockets are kept.

    A name in the kernel's own (abstract, unix(7)) goes with its process, however that ends. Raises
    InputError where another daemon has one of them.
    """
    where = config.slurmrestd
    if where.startswith("unix:"):
        where = os.path.realpath(where.removeprefix("unix:"))
    taken = []
    for partition in sorted(set(config.partitions)):
        name = hashlib.sha256(f"{where}\n{partition}".encode()).hexdigest()
        taken.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        try:
            taken[-1].bind(f"\0topolane-slurm-{name}")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise InputError(
                f"another daemon on this host starts the jobs of partition {partition} at "
                f"{config.slurmrestd}: end it first"
            ) from error
    return taken


def claim_log(file: IO[str], path: str) -> None:
    """Takes a log for this process, as long as it is open. Raises InputError where another writes it."""
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(
            f"log {path}: another daemon writes it, and two in one log could not be replayed: "
            "end that one, or name another file"
        ) from error
