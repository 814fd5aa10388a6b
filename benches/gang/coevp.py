"""Runs the proxy application of the gang poster, CoEVP, under each policy of the Linux agent.

Three equal jobs start half a second apart on two cores. CoEVP is public (github.com/exmatex/CoEVP) and no part of this
project: build it with `make COEVP_MPI=yes REDIS=no FLANN=no SILO=no TWEMPROXY=no LOGGER=no`, and name `LULESH/lulesh`.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from measure import BenchError, Options, Result, table
from priority import Ahead
from topolane_gang.agent import Agent
from topolane_gang.study import gang
from topolane_gang.study import gang_programs as programs

CORES = (0, 1)
JOBS = 3
APART = 0.5
"""Seconds between the starts."""
MESH = ("-E", "20", "-H", "40")
"""Elements along an edge, and along the height of the cylinder."""
LONGEST = 600.0
"""Seconds after which a job is taken to hang."""


def words(program: Path, stop: float) -> list[str]:
    """A job: one rank a core, adaptive sampling of the fine-scale model, until `stop` simulated seconds."""
    ranks = ("mpiexec.openmpi", "-n", str(len(CORES)))
    return [*ranks, str(program), "--sample", *MESH, "-D", f"{stop:g}"]


def run(
    policy: str, command: list[str], folder: Path, ahead: Ahead, jobs: int = JOBS
) -> list[tuple[float, float]]:
    """When each job arrived and ended, in seconds."""
    with Agent(policy=policy, cores=CORES) as agent:
        ahead.raise_groups(Path(group) for group in agent.means.groups)
        start, started = time.monotonic(), []
        for number in range(jobs):
            time.sleep(max(start + number * APART - time.monotonic(), 0.0))
            output = folder / f"job-{number}"
            started.append(
                agent.start(
                    f"coevp-{number}",
                    command,
                    threads=len(CORES),
                    environment=programs.ENVIRONMENT,
                    directory=folder,
                    output=output,
                )
            )
        ends: dict[int, float] = {}
        while len(ends) < jobs and time.monotonic() < start + LONGEST:
            for number, job in enumerate(started):
                if number not in ends and job.returned() is not None:
                    ends[number] = time.monotonic() - start
            time.sleep(0.02)
    if len(ends) < jobs:
        raise BenchError(f"{policy}: a job has not ended after {LONGEST:g} s")
    if any(job.returned() for job in started):
        said = (folder / "job-0").read_text()[-400:]
        raise BenchError(f"{policy}: CoEVP failed: {said}")
    return [(number * APART, ends[number]) for number in range(jobs)]


def measure(options: Options) -> Result:
    """Prints mean run time, from arrival to end, and the time until all have ended."""
    program = options.program.resolve()
    if subprocess.run([program, "--help"], capture_output=True).returncode not in (0, 1):
        raise BenchError(f"{program}: does not start")
    command, facts = words(program, options.stop), []
    with tempfile.TemporaryDirectory() as made, Ahead(options.alone) as ahead:
        folder = Path(made)
        for _ in range(options.runs):
            alone = run("free", command, folder, ahead, jobs=1)[0][1]
            for policy in gang.POLICIES:
                found = run(policy, command, folder, ahead)
                mean = statistics.mean(end - arrival for arrival, end in found)
                facts.append(
                    {"policy": policy, "alone": alone, "mean": mean, "last": max(end for _, end in found)}
                )
    rows = []
    for policy in gang.POLICIES:
        own = [one for one in facts if one["policy"] == policy]
        cells = [spread([one[what] for one in own]) for what in ("alone", "mean", "last")]
        rows.append([policy, *cells])
    print(table([["policy", "one job alone (s)", "mean run time (s)", "until all have ended (s)"], *rows]))
    return Result(facts=facts)


def spread(values: list[float]) -> str:
    """Median, least and most."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
