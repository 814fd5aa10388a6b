"""Jobs of the agent on this machine's cores: who runs with whom, how often, and where."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from topolane._engine import InputError
from topolane.gang.agent import Agent, Limits

CORES = tuple(sorted(os.sched_getaffinity(0)))[:2]
needs_two_cores = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")

SPIN = ["sh", "-c", "(while :; do :; done) & while :; do :; done"]


def test_a_command_ends_with_its_own_exit_code(tmp_path: Path) -> None:
    with Agent("gang", CORES) as agent:
        job = agent.start("three", ["sh", "-c", "echo said; exit 3"], output=tmp_path / "out")
        assert job.wait(30) == 3
        assert (tmp_path / "out").read_text() == "said\n"


@needs_two_cores
def test_every_job_is_pinned_to_as_many_cores_as_it_has_threads(tmp_path: Path) -> None:
    program = "import os; print(sorted(os.sched_getaffinity(0)))"
    with Agent("gang", CORES) as agent:
        for threads in (1, 2):
            out = tmp_path / str(threads)
            job = agent.start("where", [sys.executable, "-c", program], threads=threads, output=out)
            job.wait(30)
            cores = eval(out.read_text())
            assert len(cores) == threads
            assert set(cores) <= set(CORES)


def test_a_second_agent_on_the_same_cores_is_refused() -> None:
    with Agent("gang", CORES):
        with pytest.raises(InputError, match=f"core {CORES[0]}: another agent .* has it already"):
            Agent("gang", CORES)
    with Agent("gang", CORES):
        pass  # let go with its owner


@needs_two_cores
def test_weights_share_the_time() -> None:
    """Two jobs of weights 2 and 1 that never block are given slices of that ratio."""
    with Agent("gang", CORES, Limits(slice=0.02)) as agent:
        for name, weight in (("heavy", 2.0), ("light", 1.0)):
            agent.start(name, SPIN, threads=len(CORES), weight=weight)
        given = {"heavy": 0.0, "light": 0.0}
        while sum(given.values()) < 4:
            given = {job.name: job.given for job in agent.jobs()}
    assert given["heavy"] / given["light"] == pytest.approx(2, rel=0.25)
