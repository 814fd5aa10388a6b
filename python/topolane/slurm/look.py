"""One look at Slurm as the daemon would see it, for those who only want to know; nothing is changed there."""

from __future__ import annotations

import dataclasses

from topolane._engine import InputError, Machine, linking_policies
from topolane.live.held import Held
from topolane.live.state import Given
from topolane.slurm.client import SlurmError
from topolane.slurm.config import Config
from topolane.slurm.mirror import Changes, Mirror, Start
from topolane.slurm.records import Job, Snapshot
from topolane.slurm.setup import connect, mirror_of


@dataclasses.dataclass(frozen=True)
class Look:
    """Slurm at one moment, and what the daemon would do about it."""

    snapshot: Snapshot
    mirror: Mirror
    changes: Changes
    starts: list[Start]
    """Jobs to be released now."""
    owned: dict[int, Held]
    """What jobs on nodes were given that own links."""
    gives_links: bool
    """Whether the policy gives jobs links of their own."""

    @property
    def machine(self) -> Machine:
        """The tree."""
        return self.mirror.machine

    @property
    def promised(self) -> tuple[int, float] | None:
        """The first job in the queue, where it does not start now, and its latest start."""
        found = self.mirror.scheduler.scheduler.reservation
        return None if found is None or found[1] == float("inf") else found


def look(config: Config) -> Look:
    """Looks once. Raises InputError, SlurmError."""
    slurm = connect(config)
    try:
        snapshot = slurm.snapshot()
    finally:
        slurm.close()
    mirror = mirror_of(config, snapshot, lambda *_, **__: None)
    if config.state_file is not None:
        mirror.owned.update(Given(config.state_file, mirror.machine).read())
    changes = mirror.update(snapshot)
    starts = mirror.decide(snapshot.time)
    gives_links = config.policy in dict(linking_policies())
    return Look(snapshot, mirror, changes, starts, mirror.on_links(), gives_links)


def look_or_say(config: Config) -> Look:
    """The same where an error of Slurm ends the command."""
    try:
        return look(config)
    except SlurmError as error:
        raise InputError(str(error)) from error


def job_named(snapshot: Snapshot, number: str) -> list[Job]:
    """The job of that number (12, 12_3), or of an array's all tasks, in order."""
    found = [job for job in snapshot.jobs.values() if number in (job.number, str(job.array), job.record)]
    exact = [job for job in found if job.number == number]
    return exact or sorted(found, key=lambda job: job.id)
