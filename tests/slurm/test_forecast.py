"""Where jobs run exactly to their walltime, a forecast is what then happens: to the second, on the same nodes."""

from __future__ import annotations

import dataclasses
import random
import time
from pathlib import Path
from typing import Any

import pytest
import topolane
from topolane import Machine, Workload
from topolane.live.journal import Recorder
from topolane.moment import intervals
from topolane.slurm.comments import MARK
from topolane.slurm.forecast import Forecast, forecast
from topolane.slurm.mirror import Mirror
from topolane.slurm.records import Job, Node, Partition, Snapshot, task_id
from topolane.slurm.requests import RequestSettings

TREE = """
SwitchName=leaf1 Nodes=n[1-4]
SwitchName=leaf2 Nodes=n[5-8]
SwitchName=leaf3 Nodes=n[9-12]
SwitchName=leaf4 Nodes=n[13-16]
SwitchName=pod1 Switches=leaf[1-2]
SwitchName=pod2 Switches=leaf[3-4]
SwitchName=core Switches=pod[1-2]
"""
MACHINE = Machine.parse(TREE, "tree", "slurm")


EMPTY = {
    "int": 0,
    "float": 0.0,
    "str": "",
    "bool": False,
    "tuple[str, ...]": (),
    "tuple[Gres, ...]": (),
    "tuple[tuple[str, int], ...]": (),
    "frozenset[str]": frozenset(),
}


def record(kind: type, **facts: object) -> Any:
    """A record of Slurm in which nothing is said but `facts`."""
    blank = {field.name: EMPTY.get(str(field.type)) for field in dataclasses.fields(kind)}
    return kind(**(blank | facts))


def job_of(identity: int, wanted: int, walltime: float, **facts: object) -> Job:
    """A job that is held for the daemon."""
    values: dict[str, object] = {"number": str(identity), "record": str(identity), "note": MARK}
    values |= {"state": "PENDING", "fewest_nodes": wanted, "most_nodes": wanted, "processes": 1}
    values |= {"partitions": ("batch",), "cpus_per_process": 1, "exclusive": True, "submit": 1000.0}
    made: Job = record(Job, id=identity, walltime=walltime, **(values | facts))
    return made


def forecast_of(
    jobs: list[Job], now: float, policy: str, queue: str, *, budget: float = 60.0, machine: Machine = MACHINE
) -> Forecast:
    names = [machine.node_name(node) for node in range(machine.nodes)]
    nodes = [record(Node, name=name, words=frozenset({"idle"}), cpus=16, memory=1 << 30) for name in names]
    batch = record(Partition, name="batch", nodes=machine.hostlist(range(machine.nodes)), up=True)
    snapshot = Snapshot(now, {job.id: job for job in jobs}, {n.name: n for n in nodes}, {"batch": batch}, {})
    recorder = Recorder(machine, policy, queue, lambda *_, **__: None)
    mirror = Mirror(RequestSettings(machine), recorder, frozenset({"batch"}))
    changes = mirror.update(snapshot)
    return forecast(mirror, snapshot, changes, mirror.decide(now), budget=budget)


def simulated(
    sizes: list[tuple[int, int]], directory: Path, policy: str, queue: str
) -> dict[int, tuple[int, list[int]]]:
    """Start and nodes of jobs 1, 2, ... of (nodes, seconds) that all come at second 0."""
    log = directory / "log.csv"
    rows = [f"{number},0,{nodes},{run},{run}" for number, (nodes, run) in enumerate(sizes, start=1)]
    log.write_text("\n".join(["id,submit,nodes,run,walltime", *rows]) + "\n")
    done = topolane.simulate(Workload.read(str(log)), MACHINE, policy=policy, queue=queue)
    columns = done.jobs.select("job_id", "starting_time", "allocated_resources")
    return {
        job: (round(start), [node for first, end in intervals(nodes) for node in range(first, end)])
        for job, start, nodes in columns.iter_rows()
    }


def told(found: Forecast, now: float) -> dict[int, tuple[int, list[int]]]:
    return {
        job: (round(when - now), sorted(start.decision.nodes)) for job, (when, start) in found.starts.items()
    }


def drawn(seed: int) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    return [
        (draw.choice([1, 1, 2, 3, 4, 5, 6, 8, 11, 16]), 60 * draw.randint(1, 20))
        for _ in range(draw.randint(2, 40))
    ]


@pytest.mark.parametrize(
    ("policy", "queue"),
    [("isolated", "easy"), ("isolated", "fcfs"), ("first-fit", "easy"), ("isolated", "conservative")],
)
def test_a_forecast_is_what_then_happens(policy: str, queue: str, tmp_path: Path) -> None:
    """Jobs that run exactly to their walltime start in the simulator when and where they were forecast to,
    from the beginning and, where the queue keeps nothing from pass to pass, from the middle on."""
    for seed in range(25):
        sizes = drawn(seed)
        happened = simulated(sizes, tmp_path, policy, queue)
        waiting = {number: job_of(number, *size) for number, size in enumerate(sizes, start=1)}
        found = forecast_of([*waiting.values()], 1000.0, policy, queue)
        assert (told(found, 1000.0), found.until) == (happened, None), seed
        if queue == "conservative":
            continue
        middle = sorted(start for start, _ in happened.values())[len(sizes) // 2]
        jobs = []
        for number, job in waiting.items():
            start, nodes = happened[number]
            if start < middle < start + sizes[number - 1][1]:
                facts = {"state": "RUNNING", "nodes": MACHINE.hostlist(nodes), "start": 1000.0 + start}
                jobs.append(dataclasses.replace(job, priority=1, **facts))
            elif start >= middle:
                jobs.append(job)
        rest = {number: each for number, each in happened.items() if each[0] >= middle}
        assert told(forecast_of(jobs, 1000.0 + middle, policy, queue), 1000.0) == rest, seed


def test_what_holds_jobs_back_is_played_too() -> None:
    """Dependencies, the limit of an array and begin times; a job past its walltime ends now; one that never
    ends keeps others waiting, and so does a hold."""
    over = {"state": "RUNNING", "nodes": "n[1-16]", "start": 100.0, "priority": 1}
    tasks = [
        job_of(task_id(5, task), 1, 600, number=f"5_{task}", array=5, array_limit=1) for task in (1, 2, 3)
    ]
    jobs = [
        job_of(1, 16, 300, **over),
        job_of(2, 2, 120),
        job_of(3, 2, 120, dependency="afterok:2(unfulfilled)"),
        job_of(4, 2, 120, begin=5000.0),
        *tasks,
        job_of(6, 2, 120, note="", reason="JobHeldUser"),
        job_of(7, 2, 120, dependency="afternotok:2(unfulfilled)"),
    ]
    found = {job: when for job, (when, _) in forecast_of(jobs, 1000.0, "isolated", "easy").starts.items()}
    assert found == {
        2: 1000.0,
        3: 1120.0,
        4: 5000.0,
        **{task.id: 1000.0 + 600 * place for place, task in enumerate(tasks)},
    }
    endless = dataclasses.replace(job_of(1, 16, 0, **over), walltime=None)
    assert not forecast_of([endless, job_of(2, 1, 60)], 1000.0, "isolated", "easy").starts


def test_a_forecast_that_takes_too_long_says_where_it_stopped() -> None:
    jobs = [job_of(number, 16, 60) for number in range(1, 50)]
    found = forecast_of(jobs, 1000.0, "isolated", "easy", budget=0.0)
    assert found.until == 1000.0 and list(found.starts) == [1]


def test_what_is_left_out_of_a_forecast_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mirror is told all again only when something has happened that others wait for: telling it at
    every step gives the same forecast, whatever waits for whatever."""
    kinds = ("afterok", "afterany", "after", "aftercorr")
    for seed in range(30):
        draw, jobs = random.Random(seed), []
        for number, (nodes, run) in enumerate(drawn(seed), start=1):
            job = job_of(number, nodes, run, name=draw.choice("ab"), begin=draw.choice([0.0, 0.0, 2000.0]))
            if number > 1 and draw.random() < 0.3:
                on = f"{draw.choice(kinds)}:{draw.randrange(1, number)}(unfulfilled)"
                job = dataclasses.replace(job, dependency=draw.choice([on, "singleton(unfulfilled)"]))
            elif draw.random() < 0.2:
                facts = {"array": number, "array_limit": 2}
                tasks = [
                    dataclasses.replace(job, id=task_id(number, task), number=f"{number}_{task}", **facts)
                    for task in range(4)
                ]
                jobs += tasks[1:]
                job = tasks[0]
            jobs.append(job)
        short = forecast_of(jobs, 1000.0, "isolated", "easy")
        with monkeypatch.context() as patched:
            patched.setattr("topolane.slurm.forecast._Play._matters", lambda *_: True)
            long = forecast_of(jobs, 1000.0, "isolated", "easy")
        assert told(short, 0.0) == told(long, 0.0) and len(short.starts) == len(jobs), seed


def test_thousands_of_jobs_are_forecast_to_the_end() -> None:
    """2,500 jobs for the 1,296 nodes of Cab, each of which starts: well within the time that a command takes."""
    draw, cab = random.Random(1), topolane.machine("cab")
    sizes = (1, 1, 2, 3, 4, 8, 16, 32, 64, 130)
    jobs = [job_of(number, draw.choice(sizes), 60 * draw.randint(5, 240)) for number in range(1, 2501)]
    begun = time.perf_counter()
    found = forecast_of(jobs, 1000.0, "isolated", "easy", machine=cab)
    assert len(found.starts) == 2500 and time.perf_counter() - begun < 10
