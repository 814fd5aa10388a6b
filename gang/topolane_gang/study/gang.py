"""Gang scheduling for predictable performance (poster): what is run, and what was supposed.

The constants and ASSUMED were written down before the first run.
"""

from __future__ import annotations

import dataclasses

from topolane_gang.study.gang_programs import Barrier, Coevp, Independent, ProgramRun, Workload

POLICIES = ("batch", "free", "gang", "adaptive")

ITERATION = 0.1
"""Seconds of CPU of the micro-benchmark, and how far behind the others an iteration counts as late."""
EVEN_JOBS = 3
"""Domains of the micro-benchmark, each with a thread for every core."""
INTERVALS = (2e-4, 1e-3, 5e-3)
"""Seconds between barriers."""
SETTLING = 0.5
"""Seconds at the start of barrier-coupled runs that are not counted."""
SIMULATED_CORES = (8, 16, 64)
SEEDS = 5
"""Of the simulated cores' clocks and the host's work: figures are those of all seeds together."""
LONGER = 5
"""Times as long as on real cores are the simulated domains looked at: they drift apart slowly."""

SECONDS = 6.0
"""Of a run: the cores are full for so long, or so long is counted."""
LENGTH = 3.6
"""Of a job of the CoEVP-like mix in such a run, alone on all cores, in the mean."""
COARSE, TASKS, FINE, SPREAD, WAIT = 0.04, 4, 0.02, 0.5, 0.06
"""Of a CoEVP-like step: the coarse part, tasks for every thread, seconds of a task and their sigma, communication."""
ARRIVALS = 0.5
"""Seconds from one job of the mix to the next."""

ASSUMED = [
    "the micro-benchmark: three domains, each with a compute-bound thread for every core, 0.1 s of CPU an iteration; "
    + "the poster does not say how many there were",
    "an iteration of a thread is late if it ends more than 0.1 s after the median end of the same iteration on the "
    + "job's other threads",
    "two barrier-coupled jobs, a spinning thread for every core each; a fair half is half of the iterations that the "
    + "job does in the same time alone",
    "the mix: three CoEVP-like jobs, one of barriers every millisecond and one compute-bound, each with a thread for "
    + "every core, half a second apart; the first is twice as long as the mean, the last two half as long. A CoEVP-like "
    + "step is 40 ms on one thread, then 4 tasks a thread of 20 ms in the mean (log-normal, sigma 0.5), then 60 ms in "
    + "which all wait. Other mixes are simulated too",
    "run time is from arrival to end: a poster that finds batch the worst must have counted waiting. From a job's "
    + "first instruction to its end is given too",
    "free is the operating system on real cores, and Xen's credit scheduler on simulated ones",
]


@dataclasses.dataclass(frozen=True)
class PlayedJob:
    """What is started, and when."""

    name: str
    run: ProgramRun
    threads: int
    arrival: float = 0.0
    """Seconds after the start of the play."""
    delays: tuple[float, ...] = ()
    """When each thread begins, seconds after the arrival, if they do not begin together. Simulated only."""
    ranks: bool = False
    """Whether its threads are MPI ranks; the simulation knows no difference."""


@dataclasses.dataclass(frozen=True)
class Spell:
    """A job on a core; seconds from the start of the play."""

    start: float
    end: float
    core: int
    job: int
    """Its place in the play."""


@dataclasses.dataclass(frozen=True)
class Done:
    """What became of a job; seconds from the start of the play."""

    job: PlayedJob
    ends: list[list[float]]
    """When each thread ended each of its iterations; empty where it never ran."""
    began: float | None = None
    """When it first ran."""
    finished: float | None = None
    """None where it had not."""

    @property
    def turnaround(self) -> float | None:
        """Seconds from arrival to end."""
        return None if self.finished is None else self.finished - self.job.arrival

    @property
    def running(self) -> float | None:
        """Seconds from its first instruction to its end."""
        return None if self.finished is None or self.began is None else self.finished - self.began

    def iterations(self, start: float, end: float) -> int:
        """Those of its first thread that ended in a time."""
        return sum(start < each <= end for each in self.ends[0]) if self.ends else 0


@dataclasses.dataclass(frozen=True)
class Play:
    """Jobs under a policy."""

    policy: str
    jobs: tuple[PlayedJob, ...]
    seconds: float
    """After this time, jobs that still run are ended."""
    slice: float | None = None
    """Of each row, seconds; None to leave it to the policy."""
    background: float = 0.0
    """Share of every simulated core that the host's own work takes."""


@dataclasses.dataclass(frozen=True)
class PlayOutcome:
    """What became of all jobs of a play, once for each seed where it is simulated with several."""

    done: list[Done]
    spells: list[Spell] = dataclasses.field(default_factory=list)
    """Who was on which core, where it was asked for."""


def even_iterations(seconds: float) -> int:
    """Of each domain, so that all together fill the cores for so long."""
    return max(round(seconds / ITERATION / EVEN_JOBS), 2)


def even_jobs(cores: int, seconds: float) -> tuple[PlayedJob, ...]:
    """The domains of the micro-benchmark, which together fill the cores for so long."""
    run = ProgramRun(Independent(ITERATION), iterations=even_iterations(seconds))
    return tuple(PlayedJob(f"domain {number}", run, cores) for number in range(1, EVEN_JOBS + 1))


def coupled_jobs(cores: int, interval: float, seconds: float, count: int) -> tuple[PlayedJob, ...]:
    """Jobs of barriers that run at least so long."""
    run = ProgramRun(Barrier(interval), seconds=seconds + 1.0)
    return tuple(PlayedJob(f"barrier {number}", run, cores) for number in range(1, count + 1))


@dataclasses.dataclass(frozen=True)
class Mix:
    """CoEVP-like jobs with some of other kinds."""

    kinds: tuple[str, ...] = ("coevp", "barrier", "coevp", "compute", "coevp")
    lengths: tuple[float, ...] = (2.0, 1.0, 1.0, 0.5, 0.5)
    """Of each job, of LENGTH."""
    wait: float = WAIT
    spin: bool = True
    """Whether who is early at a barrier keeps its core."""

    def jobs(self, cores: int, seconds: float) -> tuple[PlayedJob, ...]:
        """All of them, longer for more seconds."""
        return tuple(
            PlayedJob(
                f"{kind} {number}",
                self.run(kind, cores, length * LENGTH * seconds / SECONDS, number),
                cores,
                (number - 1) * ARRIVALS,
            )
            for number, (kind, length) in enumerate(zip(self.kinds, self.lengths), start=1)
        )

    def run(self, kind: str, cores: int, length: float, seed: int) -> ProgramRun:
        """As many iterations of a kind as take so long alone."""
        works: dict[str, tuple[Workload, float]] = {
            "coevp": (
                Coevp(COARSE, TASKS * cores, FINE, SPREAD, self.wait),
                COARSE + TASKS * FINE + self.wait,
            ),
            "barrier": (Barrier(1e-3, self.spin), 1e-3),
            "compute": (Independent(ITERATION), ITERATION),
        }
        work, each = works[kind]
        return ProgramRun(work, iterations=max(round(length / each), 1), seed=seed)


MIX = Mix()
THREE_EQUAL = Mix(kinds=("coevp",) * 3, lengths=(1.0,) * 3)
"""What the poster ran, word for word: equal jobs of CoEVP."""
OTHER_MIXES = {
    "the mix": MIX,
    "three equal CoEVP-like jobs": THREE_EQUAL,
    "all jobs equally long": Mix(lengths=(1.0,) * 5),
    "all equally long, wait 200 ms": Mix(lengths=(1.0,) * 5, wait=0.2),
    "wait 200 ms": Mix(wait=0.2),
    "barriers that block": Mix(spin=False),
    "CoEVP-like jobs only": Mix(kinds=("coevp",) * 5),
    "CoEVP-like jobs only, equally long": Mix(kinds=("coevp",) * 5, lengths=(1.0,) * 5),
}
"""Simulated, to see what hangs on what was supposed."""


def drawn_jobs(cores: int) -> tuple[PlayedJob, ...]:
    """What the picture shows: two compute-bound jobs and one of MPI, half a second long each."""
    compute = ProgramRun(Independent(0.01), iterations=50)
    ranks = ProgramRun(Barrier(1e-3), iterations=500)
    return (
        PlayedJob("compute 1", compute, cores),
        PlayedJob("compute 2", compute, cores),
        PlayedJob("MPI", ranks, cores, ranks=True),
    )
