"""Plays on simulated cores, by the engine."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from topolane._engine import GangJob, simulate_gangs

from topolane_gang.study import gang
from topolane_gang.study.gang import Done, Play, PlayOutcome, Spell
from topolane_gang.study.gang_programs import Barrier, Coevp

if TYPE_CHECKING:
    from topolane._engine import GangOutcome

    from topolane_gang.study.gang import PlayedJob


@dataclasses.dataclass(frozen=True)
class PlayTask:
    """A play on a number of cores; small enough to send to a process."""

    cores: int
    play: Play
    trace: bool = False
    """Whether who was on which core is kept."""


def play(task: PlayTask) -> PlayOutcome:
    """Simulates it with every seed; the picture is of the first."""
    played = [once(task, seed) for seed in range(1 if task.trace else gang.SEEDS)]
    return PlayOutcome([done for one in played for done in one.done], played[0].spells)


def once(task: PlayTask, seed: int) -> PlayOutcome:
    """Simulates it. Of barrier-coupled jobs only the first thread's iterations are kept: the others' end with them."""
    asked = task.play
    mixed = any(isinstance(job.run.workload, Coevp) for job in asked.jobs)
    outcome = simulate_gangs(
        [engine_job(job) for job in asked.jobs],
        task.cores,
        asked.policy,
        asked.seconds,
        slice=asked.slice,
        background=asked.background,
        seed=seed,
        # A long list, which is looked at for the picture, and for when the jobs of a mix began.
        timeline=task.trace or mixed,
    )
    began: dict[int, float] = {}
    for start, _, _, job, _ in outcome.timeline:
        began.setdefault(job, start)
    done = [
        Done(job, kept_ends(job, outcome, number), began.get(number), outcome.jobs[number].finished)
        for number, job in enumerate(asked.jobs)
    ]
    spells = [Spell(start, end, core, job) for start, end, core, job, _ in outcome.timeline]
    return PlayOutcome(done, spells if task.trace else [])


def kept_ends(job: PlayedJob, outcome: GangOutcome, number: int) -> list[list[float]]:
    """When the threads' iterations ended."""
    ends = outcome.jobs[number].ends
    kept = ends[:1] if isinstance(job.run.workload, Barrier) else ends
    return [each.tolist() for each in kept]


def engine_job(job: PlayedJob) -> GangJob:
    """The same job as the engine knows it."""
    run = job.run
    return GangJob(
        run.workload.kind,
        job.threads,
        iterations=run.iterations,
        seconds=run.seconds,
        arrival=job.arrival,
        delays=job.delays,
        seed=run.seed,
        **dataclasses.asdict(run.workload),
    )
