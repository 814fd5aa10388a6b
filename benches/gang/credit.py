"""Shows the effect of the simulated hypervisor's credit scheduler on jobs whose threads belong together.

It prints two tables, barriers kept and iterations out of step, as in docs/explanation/gang.md.
"""

from __future__ import annotations

import numpy as np
from measure import Options, Result, table
from topolane._engine import GangJob, GangJobOutcome, simulate_gangs

POLICIES = ("free", "gang", "adaptive")
BARRIER_SECONDS, BARRIER_SEEDS = 8.0, 10
ITERATION, MICRO_SECONDS, MICRO_SEEDS = 0.1, 40.0, 3
ENDLESS = 1e5


def barriers(cores: int, interval: float, spin: bool, policy: str, seeds: int) -> str:
    """Iterations relative to a fair half: mean (least to most)."""
    jobs = [GangJob("barrier", cores, interval=interval, spin=spin, seconds=ENDLESS) for _ in range(2)]
    fair = BARRIER_SECONDS / 2 / interval
    runs = [simulate_gangs(jobs, cores, policy, BARRIER_SECONDS, seed=seed) for seed in range(seeds)]
    shares = 100 * np.array([job.iterations / fair for run in runs for job in run.jobs])
    return f"{shares.mean():.0f} ({shares.min():.0f} to {shares.max():.0f})"


def late(job: GangJobOutcome) -> float:
    """The fraction of iterations that end more than one iteration after the first thread's."""
    ends = np.array([thread[: job.iterations] for thread in job.ends])
    return float(np.mean(ends - ends.min(axis=0) > ITERATION))


def micro(cores: int, domains: int, background: float, policy: str, seeds: int) -> str:
    """The percentage of late iterations, over all domains."""
    jobs = [GangJob("independent", cores, iteration=ITERATION, seconds=ENDLESS) for _ in range(domains)]
    runs = [
        simulate_gangs(jobs, cores, policy, MICRO_SECONDS, seed=seed, background=background)
        for seed in range(seeds)
    ]
    return f"{100 * np.mean([late(job) for run in runs for job in run.jobs]):.0f}"


def measure(options: Options) -> Result:
    """Prints both tables."""
    quick = options.quick
    many = (2, 8) if quick else (2, 8, 16, 64)
    rows = [
        [str(cores), f"{1e3 * interval:g} ms", "spins" if spin else "blocks"]
        + [barriers(cores, interval, spin, policy, 1 if quick else BARRIER_SEEDS) for policy in POLICIES]
        for cores, spin in [*((cores, True) for cores in many), (8, False)]
        for interval in (2e-4, 1e-3, 5e-3)
    ]
    print(table([["cores", "barrier every", "who waits", *POLICIES], *rows]), end="\n\n")
    rows = [
        [str(cores), str(domains), f"{100 * background:g} %"]
        + [micro(cores, domains, background, policy, 1 if quick else MICRO_SEEDS) for policy in POLICIES]
        for cores in many[1:]
        for domains in (2, 3, 4)
        for background in (0.0, 0.02)
    ]
    print(table([["cores", "domains", "host", *POLICIES], *rows]))
    return Result()
