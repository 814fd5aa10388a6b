"""A read-only preview of what the daemon would do now, for commands that only show it."""

from __future__ import annotations

import dataclasses

from topolane._engine import InputError, Machine, linking_policies
from topolane.live.allocation import Allocation
from topolane.live.links_file import DedicatedLinksFile
from topolane.slurm.client import SlurmError
from topolane.slurm.config import Config
from topolane.slurm.mirror import Changes, Mirror, Start
from topolane.slurm.records import Job, Snapshot
from topolane.slurm.setup import connect, mirror_of


@dataclasses.dataclass(frozen=True)
class Preview:
    """Slurm at one moment, and what the daemon would do about it."""

    snapshot: Snapshot
    mirror: Mirror
    changes: Changes
    starts: list[Start]
    """Jobs to be released now."""
    dedicated: dict[int, Allocation]
    """The allocations of running jobs with dedicated links."""
    gives_links: bool
    """Whether the policy gives jobs dedicated links."""

    @property
    def machine(self) -> Machine:
        """The tree."""
        return self.mirror.machine

    @property
    def promised(self) -> tuple[int, float] | None:
        """The first job in the queue and its promised start; None if it starts now."""
        found = self.mirror.scheduler.scheduler.reservation
        return None if found is None or found[1] == float("inf") else found


def preview(config: Config) -> Preview:
    """Reads Slurm once and decides. Raises InputError, SlurmError."""
    slurm = connect(config)
    try:
        snapshot = slurm.snapshot()
    finally:
        slurm.close()
    mirror = mirror_of(config, snapshot, lambda *_, **__: None)
    if config.state_file is not None:
        mirror.dedicated.update(DedicatedLinksFile(config.state_file, mirror.machine).read())
    changes = mirror.update(snapshot)
    starts = mirror.decide(snapshot.time)
    gives_links = config.policy in dict(linking_policies())
    return Preview(snapshot, mirror, changes, starts, mirror.link_allocations(), gives_links)


def preview_or_exit(config: Config) -> Preview:
    """Like `preview`, but an error of Slurm raises InputError, which ends the command."""
    try:
        return preview(config)
    except SlurmError as error:
        raise InputError(str(error)) from error


def job_named(snapshot: Snapshot, number: str) -> list[Job]:
    """The job of that number (12, 12_3). For an array: all its tasks, in order."""
    found = [job for job in snapshot.jobs.values() if number in (job.number, str(job.array), job.record)]
    exact = [job for job in found if job.number == number]
    return exact or sorted(found, key=lambda job: job.id)
