"""Reads jobs, nodes, partitions and reservations from Slurm without changing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from topolane import extras
from topolane._engine import InputError
from topolane.slurm import answers
from topolane.slurm.errors import SlurmError
from topolane.slurm.records import Snapshot
from topolane.slurm.scontrol import Commands

__all__ = ["Slurm", "SlurmError", "connect"]

THINGS = ("jobs", "nodes", "partitions", "reservations")


class SlurmReader(Protocol):
    """A way to read Slurm's state. Every method raises SlurmError if Slurm does not answer."""

    version: str
    """The version of the answers' format."""

    def close(self) -> None:
        """Ends the connection."""

    def read(self, thing: str) -> Sequence[Mapping[str, Any]]:
        """The records of all `jobs`, `nodes`, `partitions` or `reservations`."""

    def clock(self) -> float:
        """Slurm's time in whole seconds since 1970."""

    def is_new(self, thing: str, since: float) -> bool:
        """Whether any of these records may have changed since a time of Slurm's clock."""


def connect(address: str | None = None, token_file: str | None = None) -> Slurm:
    """A connection to Slurm.

    address: None for Slurm's own commands, otherwise slurmrestd at `unix:/path/to/socket` or
    `http(s)://host:port`. token_file: a file with a JWT, if slurmrestd requires one. Raises InputError for an
    invalid address, SlurmError if Slurm does not answer in a known format.
    """
    if address is None:
        if token_file is not None:
            raise InputError("a token-file is for slurmrestd: give its address too")
        return Slurm(Commands())
    try:
        from topolane.slurm.rest import Rest
        from topolane.slurm.tokens import Token
    except ImportError as error:
        raise extras.missing("slurmrestd", "slurm", error) from error
    return Slurm(Rest(address, None if token_file is None else Token(token_file)))


class Slurm:
    """A Slurm cluster, read through slurmrestd or through Slurm's commands."""

    def __init__(self, source: SlurmReader) -> None:
        self._source = source
        self.version = source.version

    def close(self) -> None:
        """Ends the connection."""
        self._source.close()

    def snapshot(self) -> Snapshot:
        """All jobs, nodes, partitions and reservations. Raises SlurmError.

        The clock is read first, so that a change during the reading is seen next time.
        """
        try:
            return self._snapshot()
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SlurmError(f"Slurm ({self.version}) says what is not understood: {error!r}") from error

    def _snapshot(self) -> Snapshot:
        now = self.clock()
        # Slurm may take a second to write thousands of jobs and nodes, so read both at once.
        with ThreadPoolExecutor(max_workers=1) as other:
            asked = other.submit(self._source.read, "nodes")
            records = self._source.read("jobs")
            nodes = {each.name: each for each in map(answers.node, asked.result())}
        partitions = {each.name: each for each in map(answers.partition, self._source.read("partitions"))}
        kept = map(answers.reservation, self._source.read("reservations"))
        reservations = {each.name: each for each in kept}
        jobs = {job.id: job for record in records for job in answers.jobs(record, partitions)}
        return Snapshot(now, jobs, nodes, partitions, reservations)

    def clock(self) -> float:
        """Slurm's time in whole seconds since 1970."""
        return self._source.clock()

    def changed(self, since: float) -> bool:
        """Whether anything may have changed since a time of Slurm's clock. Fast through slurmrestd."""
        return any(self._source.is_new(thing, since) for thing in THINGS)
