"""Policies written in Python run like those built in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import topolane
from topolane.policy import isolates, resolve


class LowestFree(topolane.Policy):
    """First fit, again."""

    count_only = True

    def choose(self, request, state):
        return numpy.flatnonzero(state.free)[: request.nodes]


class Named(topolane.Policy):
    name = "lowest-free-by-name"
    isolates = True

    def choose(self, request, state):
        return [node for node, free in enumerate(state.free) if free][: request.nodes]


@pytest.mark.parametrize("queue", ["fcfs", "easy", "conservative"])
def test_the_same_rule_gives_the_same_run(toy, jobs, queue):
    built_in = topolane.simulate(jobs, toy, policy="first-fit", queue=queue)
    own = topolane.simulate(jobs, toy, policy=LowestFree(), queue=queue)
    for name, table in built_in.tables.items():
        assert own.tables[name].csv() == table.csv()
    assert own.summary | {"fragmentation": None} == built_in.summary | {"fragmentation": None}
    assert own.policy == "LowestFree"


def test_a_policy_goes_by_its_name(toy, jobs):
    assert isinstance(resolve("lowest-free-by-name"), Named)
    assert (isolates("lowest-free-by-name"), isolates("LowestFree"), isolates("isolated")) == (
        True,
        False,
        True,
    )
    assert topolane.simulate(jobs, toy, policy="lowest-free-by-name").policy == "lowest-free-by-name"
    found = topolane.State(toy).place(Named(), 3)
    assert found.nodes == [0, 1, 2]


def test_the_name_of_a_built_in_policy_is_taken():
    with pytest.raises(topolane.InputError, match="'isolated' is that of a policy built in"):
        type("Mine", (topolane.Policy,), {"name": "isolated"})


def test_a_speed_up_comes_with_the_promise_of_isolation(toy, jobs):
    plain = topolane.simulate(jobs, toy, policy=LowestFree(), scenario="20")
    promised = topolane.simulate(jobs, toy, policy=Named(), scenario="20")
    assert plain.jobs["execution_time"].sum() > promised.jobs["execution_time"].sum()


def test_what_a_policy_sees(toy):
    seen = []

    class Looks(topolane.Policy):
        def choose(self, request, state):
            seen.append((request, state))
            return [5, 5, 9]

    state = topolane.State(toy)
    state.hold([0, 4])
    state.hold([1], (8, 0))
    state.take_out([2])
    options = {"id": 7, "share": (8, 2**20), "stacked": True, "members": [3], "eligible": range(12)}
    found = state.place(Looks(), 3, **options)
    assert (found.nodes, found.aph) == ([5, 5, 9], pytest.approx(8 / 3))
    request, view = seen[-1]
    assert (request.id, request.nodes, request.share) == (7, 3, {"cores": 8, "memory": 2**20})
    assert (request.stacked, request.members) == (True, [3])
    assert view.free.dtype == numpy.uint32
    assert view.free.tolist() == [0, 1, 0, 2, 0, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0]
    assert view.machine.nodes == 16
    assert [len(level) for level in view.crossing] == [16, 4, 2, 1]
    # The job on nodes 0 and 4 leaves leaves 0 and 1, but not their pod.
    assert [level.tolist() for level in view.crossing[1:]] == [[1, 1, 0, 0], [0, 0], [0]]


def test_an_exception_is_an_input_error_with_its_cause(toy, jobs):
    class Fails(topolane.Policy):
        def choose(self, request, state):
            raise ZeroDivisionError("of my own")

    with pytest.raises(
        topolane.InputError, match="policy Fails raised ZeroDivisionError: of my own"
    ) as raised:
        topolane.simulate(jobs, toy, policy=Fails())
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert f"{Path(__file__).name}:" in str(raised.value)
    with pytest.raises(topolane.InputError):
        topolane.State(toy).place(Fails(), 1)


def test_an_interrupt_stays_one(toy, jobs):
    class Interrupted(topolane.Policy):
        def choose(self, request, state):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        topolane.simulate(jobs, toy, policy=Interrupted())


def test_after_an_exception_it_is_not_asked_again(toy, jobs):
    asked = []

    class Fails(topolane.Policy):
        def choose(self, request, state):
            asked.append(request.id)
            raise ValueError

    with pytest.raises(topolane.InputError):
        topolane.simulate(jobs, toy, policy=Fails())
    assert len(asked) == 1


def test_a_job_that_never_gets_nodes_is_counted(toy, jobs):
    class Once(topolane.Policy):
        """Says on the empty machine that all is well, and then refuses everything."""

        def choose(self, request, state):
            return None if min(state.free) == 0 or request.id % 2 else list(range(request.nodes))

    run = topolane.simulate(jobs, toy, policy=Once())
    counted = sum(run.summary["left_out"].values()) - sum(jobs.left_out.values())
    assert run.summary["jobs"] + counted == len(jobs)


def test_on_the_command_line(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import topolane\n"
        "class LowestFree(topolane.Policy):\n"
        "    def choose(self, request, state):\n"
        "        return [node for node, free in enumerate(state.free) if free][: request.nodes]\n"
    )
    script = Path(sys.executable).parent / "topolane"
    for policy, out in (("first-fit", "a"), ("mine:LowestFree", "b")):
        subprocess.run(
            [script, "simulate", "--machine", "fat-tree(radix=4)", "--workload", "exp-2", "--limit", "50"]
            + ["--policy", policy, "--out", out, "--no-report"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    assert (tmp_path / "a/jobs.csv").read_bytes() == (tmp_path / "b/jobs.csv").read_bytes()
    both = [script, "compare", "--machine", "fat-tree(radix=4)", "--workload", "exp-2", "--limit", "50"]
    done = subprocess.run(
        [*both, "--policies", "first-fit,mine:LowestFree", "--jobs", "2"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "LowestFree" in done.stdout
