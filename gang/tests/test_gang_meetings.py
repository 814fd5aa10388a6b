"""Barriers of MPI programs reach the policy: counted by the preloaded library, reported to the agent."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from topolane._engine import InputError
from topolane_gang.agent import Agent
from waiting import until

PROGRAM = """
#include <mpi.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    for (;;) { double until = now() + 0.02; while (now() < until) ; MPI_Barrier(MPI_COMM_WORLD); }
}
"""


@pytest.mark.skipif(shutil.which("mpicc.mpich") is None, reason="MPICH is not installed")
def test_the_agent_learns_how_often_ranks_meet(tmp_path: Path) -> None:
    """Ranks that compute 20 ms between barriers are said to meet every 20 ms or little more, of the time in which
    they run: half of it, with another job on the same cores."""
    (tmp_path / "meet.c").write_text(PROGRAM)
    made = os.spawnlp(
        os.P_WAIT, "mpicc.mpich", "mpicc.mpich", "-O1", "-o", str(tmp_path / "meet"), str(tmp_path / "meet.c")
    )
    assert made == 0
    busy = ["sh", "-c", "while :; do :; done"]
    with Agent("gang") as agent:
        ranks = len(agent.cores)
        agent.start("busy", busy, threads=ranks)
        launch = ["mpiexec.mpich", "-n", str(ranks), str(tmp_path / "meet")]
        job = agent.start("meets", launch, threads=ranks, watch=True)

        def barrier() -> float | None:
            return next(one.barrier for one in agent.jobs() if one.id == job.id)

        until(lambda: 0.018 < (barrier() or 0) < 0.035, "barriers about every 20 ms")


def test_a_command_without_an_mpi_is_refused(tmp_path: Path) -> None:
    """Nothing is left of a job whose ranks cannot be watched."""
    with Agent("gang") as agent:
        with pytest.raises(InputError, match="no such command"):
            agent.start("none", ["mpiexec.none", "-n", "2", "true"], watch=True)
        assert agent.jobs() == []
