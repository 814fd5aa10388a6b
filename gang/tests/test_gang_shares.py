"""The shares of programs that spin, under the default policy."""

from __future__ import annotations

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from gang_processes import CORES, needs_two_cores
from quiet_cores import QuietCores
from topolane_gang.agent import Agent
from waiting import until

SOURCE = Path(__file__).parents[2] / "benches" / "gang" / "openmp.c"


@needs_two_cores
@pytest.mark.skipif(shutil.which("cc") is None, reason="cc is not installed")
def test_two_programs_that_spin_stay_gangs_and_are_given_the_same_time(
    tmp_path: Path, quiet_cores: QuietCores
) -> None:
    """Rule: two equal OpenMP programs that spin at barriers are gangs from their start, though each starts with one
    thread, and are let run for equal times within 1.2:1."""
    program = tmp_path / "openmp"
    subprocess.run(["cc", "-O2", "-fopenmp", "-o", program, SOURCE], check=True)
    environment = {"OMP_WAIT_POLICY": "active", "OMP_NUM_THREADS": str(len(CORES))}
    with Agent(cores=CORES) as agent:
        both = [
            agent.start(name, [str(program), "1000000000"], threads=len(CORES), environment=environment)
            for name in ("one", "other")
        ]
        until(lambda: all(job.cpu > 0.2 for job in agent.jobs()), "both compute")
        first = len(agent.switches())
        until(lambda: len(agent.switches()) > first + 300, "many switches")
        assert set(agent.round().gangs) == {job.id for job in both}
        given = dict.fromkeys((job.id for job in both), 0.0)
        for one, after in pairwise(agent.switches()):
            for id in one.first:
                given[id] += after.began - one.ended
    quiet_cores.judge(max(given.values()) < 1.2 * min(given.values()), given)
