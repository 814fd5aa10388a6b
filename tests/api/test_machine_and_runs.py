"""Machines, workloads, runs and their tables from Python."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy
import polars
import polars.testing
import pytest
import topolane
from topolane import Shape, Task
from topolane.run import Network
from topolane.sweep import tasks_for
from waiting import until


def test_what_a_machine_knows(toy):
    assert (toy.name, toy.nodes, toy.depth, toy.missing_cables) == ("toy", 16, 3, 0)
    assert toy.links == 16 + 8 + 8
    assert toy.cores() == [(16, 16)]
    assert toy.groups(1) == [(0, 4, "leaf0"), (4, 8, "leaf1"), (8, 12, "leaf2"), (12, 16, "leaf3")]
    assert [(start, end) for start, end, _ in toy.groups(2)] == [(0, 8), (8, 16)]
    assert [(start, end) for start, end, _ in toy.groups(3)] == [(0, 16)]
    assert (toy.node_name(0), toy.node_named("toy16"), toy.node_named("toy17")) == ("toy1", 15, None)
    assert toy.nodes_named("toy[3,1-2]") == [2, 0, 1]
    assert toy.hostlist([0, 1, 2, 7]) == "toy[1-3,8]"


@pytest.mark.parametrize(
    ("a", "b", "hops"), [(0, 0, 0), (0, 3, 0), (0, 4, 2), (3, 7, 2), (0, 8, 4), (15, 0, 4)]
)
def test_hops_and_routes(toy, a, b, hops):
    assert toy.hops(a, b) == hops
    route = toy.route(a, b)
    # A route also has the links from the nodes to their leaves, which hops do not count.
    assert len(route) == (hops + 2 if a != b else 0)
    assert [way for _, way in route] == ["up"] * (len(route) // 2) + ["down"] * (len(route) // 2)
    assert all(0 <= link < toy.links for link, _ in route)
    back = toy.route(b, a)
    assert len(back) == len(route)


def test_quality(toy):
    # Pairs (0,1) on a leaf, (0,4) and (1,4) in a pod, the three with 8 across pods: 0 + 2 + 2 + 3 x 4.
    assert toy.quality([8, 0, 4, 1]) == (pytest.approx(16 / 6), 16.0)
    least = toy.least_aph()
    assert len(least) == 16
    assert least[:4] == [0, 0, 0, 0]
    # The fifth is 2 hops from 4 others: 8 over 10 pairs.
    assert least[4] == pytest.approx(0.8)


@pytest.mark.parametrize(
    "ask",
    [
        lambda toy: toy.groups(0),
        lambda toy: toy.groups(4),
        lambda toy: toy.node_name(16),
        lambda toy: toy.hops(0, 16),
        lambda toy: toy.route(16, 0),
        lambda toy: toy.quality([0, 16]),
        lambda toy: toy.hostlist([16]),
        lambda toy: toy.nodes_named("toy[1-17]"),
        lambda toy: toy.nodes_named("toy["),
        lambda toy: toy.only([]),
        lambda toy: toy.only([16]),
        lambda toy: toy.to("yaml"),
        lambda toy: topolane.machine("nope"),
        lambda toy: topolane.machine("/"),
        lambda toy: topolane.machine("fat-tree(radix=5)"),
        lambda toy: topolane.workload("nope"),
        lambda toy: topolane.workload("/"),
        lambda toy: topolane.workload("exp-3", 16, shape=Shape(squeeze=1, load=1)),
        lambda toy: topolane.workload("exp-3", 16, shape=Shape(days=float("nan"))),
        lambda toy: topolane.workload("exp-3").to("xml"),
        lambda toy: topolane.State(toy).hold([16]),
        lambda toy: topolane.State(toy).hold([0, 0]),
        lambda toy: topolane.State(toy).hold([0], (0, 0)),
        lambda toy: topolane.State(toy).take_out([16]),
        lambda toy: topolane.State(toy).place("first-fit", 0),
        lambda toy: topolane.State(toy).place("nope", 1),
        lambda toy: topolane.State(toy).place("first-fit", 1, members=[16]),
        lambda toy: topolane.State(toy).place("first-fit", 1, eligible=[16]),
        lambda toy: topolane.State(toy).place("first-fit", 1, share=(0, 5)),
    ],
)
def test_bad_input_is_an_input_error(toy, ask):
    with pytest.raises(topolane.InputError) as raised:
        ask(toy)
    assert str(raised.value)
    assert "\n" not in str(raised.value)
    assert isinstance(raised.value, ValueError)
    # It crosses to other processes and back.
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"policy": "nope"}, "unknown policy 'nope'; there are first-fit"),
        ({"policy": 3}, "a policy is a name or a topolane.Policy, not 3"),
        ({"policy": "recorded"}, "names no nodes"),
        (
            {"queue": "nope"},
            'unknown queue "nope"; there are fcfs, easy, easy-strict, easy-pinned, conservative',
        ),
        ({"scenario": "nope"}, "no speed-up scenario 'nope'"),
        ({"default_walltime": 0.0}, "above 0 seconds"),
        ({"default_walltime": float("nan")}, "above 0 seconds"),
    ],
)
def test_a_run_that_cannot_be(toy, jobs, options, says):
    with pytest.raises(topolane.InputError, match=says.replace("(", r"\(")):
        topolane.simulate(jobs, toy, **options)


def test_the_columns_of_a_workload(jobs):
    columns = jobs.columns()
    kinds = {"id": numpy.uint64, "nodes": numpy.uint32}
    assert list(columns) == ["id", "submit", "run", "walltime", "nodes", "start", "cores"]
    for name, column in columns.items():
        assert (column.dtype, column.shape) == (kinds.get(name, numpy.float64), (60,))
    assert (len(jobs), jobs.name, jobs.span) == (60, "exp-2", 0)
    assert jobs.left_out == {"beyond the limit": 4937, "wider than the machine": 3}


def test_the_tables_of_a_run(toy, jobs):
    run = topolane.simulate(jobs, toy, policy="isolated", queue="easy", scenario="20")
    assert (run.policy, run.queue, run.scenario, run.label) == ("isolated", "easy", "20", "isolated 20 %")
    frame = run.jobs
    kinds = frame.schema
    assert len(frame) == run.summary["jobs"] == 60
    assert kinds["job_id"].is_integer() and kinds["requested_number_of_resources"] == polars.Int64
    assert {kinds[name] for name in frame.columns if name.endswith("_time")} == {polars.Float64}
    assert {kinds[name] for name in ("aph", "least_aph", "hop_bytes", "slowdown", "stretch")} == {
        polars.Float64
    }
    assert {kinds[name] for name in ("allocated_resources", "workload_name", "final_state")} == {
        polars.String
    }
    # Seconds: waits are from submission to start, and their mean is the summary's.
    assert (frame["starting_time"] - frame["submission_time"]).equals(
        frame["waiting_time"], check_names=False
    )
    assert frame["waiting_time"].mean() == pytest.approx(run.summary["mean_wait"])
    assert frame["finish_time"].max() == pytest.approx(run.summary["makespan"])
    # 20 % off the run time of jobs of more than four nodes.
    runs = dict(zip(jobs.columns()["id"].tolist(), jobs.columns()["run"].tolist()))
    for row in frame.iter_rows(named=True):
        gain = 0.8 if row["requested_number_of_resources"] > 4 else 1.0
        assert row["execution_time"] == pytest.approx(gain * runs[row["job_id"]], abs=1e-5)
    minutes = run.utilization
    assert minutes.columns == ["time", "busy_nodes", "waiting_jobs", "utilization"]
    assert minutes["time"].diff().drop_nulls().unique().to_list() == [60.0]
    assert minutes["busy_nodes"].max() <= 16
    assert run.facts["policy"] == "isolated"


def test_a_run_without_jobs_has_tables_of_the_same_kinds(toy, jobs):
    empty = topolane.workload("exp-3", toy.nodes, shape=Shape(limit=5, nodes_x=100))
    run = topolane.simulate(empty, toy)
    assert (len(empty), len(run.jobs), len(run.utilization)) == (0, 0, 0)
    full = topolane.simulate(jobs, toy)
    assert run.jobs.schema == full.jobs.schema
    assert run.utilization.schema == full.utilization.schema


def test_placements_are_what_the_table_says(toy, jobs):
    outcome = topolane._engine.simulate(jobs, toy, topolane.Settings(policy="random", seed=1))
    run = topolane.simulate(jobs, toy, policy="random", queue="easy", seed=1)
    assert outcome.tables()["jobs"].csv() == run.tables["jobs"].csv()
    for nodes, row in zip(outcome.placements(), run.jobs.iter_rows(named=True), strict=True):
        assert nodes.dtype == numpy.uint32
        assert len(set(nodes.tolist())) == row["requested_number_of_resources"]
        aph, hop_bytes = toy.quality(nodes.tolist())
        assert (row["aph"], row["hop_bytes"]) == (pytest.approx(aph, abs=1e-6), pytest.approx(hop_bytes))


def test_the_same_seed_gives_the_same(toy):
    def run(seed: int) -> bytes:
        work = topolane.workload("exp-3", toy.nodes, seed=seed, shape=Shape(limit=40))
        return topolane.simulate(work, toy, policy="random", seed=seed).tables["jobs"].csv()

    assert run(5) == run(5) != run(6)


def test_progress_ends_at_1_and_may_stop_the_run(toy, jobs):
    shares: list[float] = []
    topolane.simulate(jobs, toy, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0

    class Enough(Exception):
        pass

    def stop(_: float) -> None:
        raise Enough

    with pytest.raises(Enough):
        topolane.simulate(jobs, toy, progress=stop)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_slow_progress_gets_only_the_newest_share():
    """What a run reported while the function took its time is not reported again after the run."""
    shares: list[tuple[float, bool]] = []

    def is_running() -> bool:
        names = []
        for thread in Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):
                names.append((thread / "comm").read_text())
        return "topolane-call\n" in names

    def slow(share: float) -> None:
        shares.append((share, is_running()))
        until(lambda: not is_running(), "the run ends")

    cab = topolane.machine("cab")
    topolane.simulate(topolane.workload("cab-aug-2x", cab.nodes), cab, policy="dedicated", progress=slow)
    assert shares[0][0] < 1 and shares[0][1], "the run is long enough"
    assert [share for share, runs in shares if not runs] in ([], [1.0])


def test_the_reference_without_a_network_keeps_the_queues_compared():
    """What `recorded` does in its own order says nothing of the wait under a queue."""
    base = Task("fat-tree(radix=4)", "exp-2", network=Network())
    tasks = tasks_for(base, ["recorded", "scattered", "isolated"], ["fcfs", "easy"], ["none"])
    alone = [(task.policy, task.queue) for task in tasks if task.network is None]
    assert alone == [("scattered", "fcfs"), ("scattered", "easy")]
    assert all(task.network for task in tasks_for(base, ["recorded", "isolated"], ["easy"], ["none"]))


def test_compare_keeps_the_order_and_matches_simulate(toy):
    base = Task("fat-tree(radix=4)", "exp-2", shape=Shape(limit=50), seed=2)
    tasks = tasks_for(base, ["isolated", "first-fit"], ["fcfs", "easy"], ["none", "10"])
    assert [(task.policy, task.queue, task.scenario) for task in tasks] == [
        ("isolated", "fcfs", "none"),
        ("isolated", "fcfs", "10"),
        ("isolated", "easy", "none"),
        ("isolated", "easy", "10"),
        ("first-fit", "fcfs", "none"),
        ("first-fit", "easy", "none"),
    ]
    count: list[int] = []
    runs = topolane.compare(tasks, workers=1, done=lambda: count.append(1))
    assert len(count) == len(tasks)
    assert [(run.policy, run.queue, run.scenario) for run in runs] == [
        (task.policy, task.queue, task.scenario) for task in tasks
    ]
    texts = [[table.csv() for table in run.tables.values()] for run in runs]
    assert texts == [[table.csv() for table in task.run().tables.values()] for task in tasks]
    others = topolane.compare(tasks[:2], workers=2)
    assert [run.facts for run in others] == [run.facts for run in runs[:2]]
    for run, other in zip(runs, others):
        # Tables come back from other processes to the last bit.
        assert [table.csv() for table in other.tables.values()] == [
            table.csv() for table in run.tables.values()
        ]
        assert other.jobs.equals(run.jobs) and other.utilization.equals(run.utilization)
    assert topolane.compare([]) == []
    with pytest.raises(topolane.InputError, match="neither dask"):
        topolane.compare(tasks, executor="ray://x")


def test_state_keeps_what_is_held(toy):
    state = topolane.State(toy)
    state.hold([0, 1, 2])
    state.hold([3], (10, 2**30))
    state.take_out([4])
    found = state.place("first-fit", 3, id=8)
    assert (found.id, found.nodes, found.aph, found.hop_bytes) == (8, [5, 6, 7], 0.0, 0.0)
    assert (found.links, found.bandwidth_share, found.spare) == ([], 1.0, [])
    assert state.place("first-fit", 1, share=(6, 0)).nodes == [3]
    # Asking leaves the state as it is.
    assert state.place("first-fit", 3).nodes == [5, 6, 7]
    for wanted, name in ((12, "not-now"), (17, "never")):
        found = state.place("first-fit", wanted)
        assert isinstance(found, topolane.Refusal) and found.name == name and str(found) == found.why != ""
    assert state.place("first-fit", 2, eligible=[1, 9, 10, 14]).nodes == [9, 10]
    assert set(state.place("hop-bytes", 2, members=[12]).nodes) < {13, 14, 15, 12}


@pytest.mark.parametrize(("policy", "spare"), [("dedicated", 0), ("laas", 2)])
def test_a_decision_is_whole(toy, policy, spare):
    """Nodes, links, share of bandwidth and spare nodes come in one answer, the same from a scheduler and a state."""
    scheduler, state = topolane.Scheduler(toy, policy, "fcfs"), topolane.State(toy)
    assert scheduler.submit(1, 10, 60.0) is None
    (started,), placed = scheduler.start(0.0), state.place(policy, 10, id=1)
    ((running, start, end),) = scheduler.running
    for given in (started, placed, running):
        assert given.id == 1 and len(given.nodes) == 10 and given.links and given.bandwidth_share == 1.0
        assert len(given.spare) == spare and not set(given.spare) & set(given.nodes)
        assert (given.nodes, given.links, given.aph) == (
            placed.nodes,
            placed.links,
            toy.quality(placed.nodes)[0],
        )
    assert (start, end) == (0.0, 60.0)


def test_a_machine_of_some_nodes_only(toy):
    part = toy.only(toy.nodes_named("toy[1-2,9-12]"))
    assert part.nodes == 6
    assert [part.node_name(node) for node in range(6)] == ["toy1", "toy2", "toy9", "toy10", "toy11", "toy12"]
    assert part.hops(0, 5) == 4


def test_exported_names_are_there():
    assert all(hasattr(topolane, name) for name in topolane.__all__)


def test_tables_are_read_as_arrow():
    """As often as wanted, whole or not at all, and after the table itself is gone; what is absent is null."""
    sites = [f'[[site]]\nname = "{name}"\nchildren = [4, 2]\nparents = [1, 2]\n' for name in ("a", "b")]
    wan = '[[wan]]\nbetween = ["a", "b"]\nlatency = 0.005\nbandwidth = 1.25e8\n'
    machine = topolane.Machine.parse("".join(['name = "two"\n', *sites, wan]), "two.toml")
    jobs = topolane.workload("exp-3", machine.nodes, shape=Shape(limit=40))
    network = Network(patterns=("ring",))
    tables = topolane.simulate(jobs, machine, policy="random", network=network).tables
    csv_of = {name: table.csv() for name, table in tables.items()}
    assert [*tables] == ["jobs", "utilization", "links"]
    for name in [*tables]:
        table = tables.pop(name)
        for _ in range(3):
            table.__arrow_c_stream__()
        frames = [polars.DataFrame(table) for _ in range(2)]
        again = polars.DataFrame(pickle.loads(pickle.dumps(table)))
        assert len(table) == len(frames[0])
        del table
        gc.collect()
        text = polars.read_csv(io.BytesIO(csv_of[name]), schema_overrides=frames[0].schema)
        for frame in (*frames, again):
            polars.testing.assert_frame_equal(frame, text, abs_tol=1e-5, rel_tol=0)
            assert frame.null_count().equals(text.null_count())
    assert frames[0]["group"].null_count() == (frames[0]["level"] == "wan").sum() == 2


def test_a_table_that_was_not_sent(toy, jobs):
    table = topolane.simulate(jobs, toy).tables["jobs"]
    read, (given,) = table.__reduce__()
    assert read(given).csv() == table.csv()
    for wrong in (b"", b"\xff" * 40, given[:-1]):
        with pytest.raises(topolane.InputError, match="not a table that was sent"):
            read(wrong)


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system cannot bind a process to a core"
)
def test_a_sweep_starts_no_more_processes_than_it_may_use_cores():
    """A process that is bound to one core, as in a batch job, does its tasks itself."""
    code = (
        "import multiprocessing, os\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from topolane import sweep\n"
        "others = []\n"
        "sweep.over(abs, [-1, -2], done=lambda count=1: others.append(len(multiprocessing.active_children())))\n"
        "print(others)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[0, 0]"
