"""What the queue slurm says about recorded starts, asked from Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from topolane import InputError, Machine, Workload
from topolane._engine import retrace

MACHINE = Machine.of("small", [(["leaf"], [f"n{node}" for node in range(4)])])
CONFIG = ("slurm.json", "{}")


@pytest.fixture
def jobs(tmp_path: Path) -> Workload:
    path = tmp_path / "jobs.csv"
    path.write_text("id,submit,run,nodes,walltime\n1,0,10,2,20\n2,0,10,2,20\n")
    return Workload.read(str(path))


def test_each_start_has_an_answer(jobs: Workload) -> None:
    """The queue is asked once about both jobs that start in a second. It gives the first job its nodes, and the second one others."""
    starts = [(0, 1.0, [0, 1], "main"), (1, 1.0, [0, 1], "main")]
    found = retrace(jobs, MACHINE, "first-fit", CONFIG, starts)
    assert found == [(1.0, "main", [(0, "same"), (1, "other nodes")], [])]


@pytest.mark.parametrize(
    ("at", "nodes", "by", "said"),
    [
        (1.0, [0, 4], "main", "different nodes of the machine"),
        (1.0, [0, 0], "main", "different nodes of the machine"),
        (float("nan"), [0, 1], "main", "the time a number"),
        (1.0, [0, 1], "third", "unknown scheduler"),
    ],
)
def test_a_start_that_cannot_be_is_refused(
    jobs: Workload, at: float, nodes: list[int], by: str, said: str
) -> None:
    """Nodes that the machine lacks or that are named twice, a time that is no number and an unknown scheduler are refused."""
    with pytest.raises(InputError, match=said):
        retrace(jobs, MACHINE, "first-fit", CONFIG, [(0, at, nodes, by)])
