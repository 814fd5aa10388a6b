"""Forecasts of a replay: those of the page's scheduler are what the replay did."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest
from topolane.cluster.view import View
from topolane.serve.forecast import Copy
from topolane.serve.replay import ReplaySource
from topolane.sweep import Task

polars = pytest.importorskip("polars")
MACHINE = """\
name = "node"
[[site]]
name = "core"
children = [6, 6, 6]
parents = [1, 6, 6]
cables = [1, 1, 1]
nodes = "node[1-216]"
"""
SUBMITTED = 150
"""How many jobs there are, one submitted in each second."""


def log(seed: int) -> str:
    """Short wide jobs among long narrow ones, with walltimes of up to five times their run time."""
    draw = random.Random(seed)
    rows = []
    for job in range(1, SUBMITTED + 1):
        wide = draw.random() < 0.4
        nodes = draw.choice([30, 45, 60, 70] if wide else [1, 2, 3, 5, 7, 12, 17])
        run = draw.randrange(600, 3000) if wide else draw.randrange(2000, 30000)
        walltime = int(run * draw.choice([1, 1.3, 2, 5]))
        rows.append(f"{job} {job} -1 {run} {nodes} -1 -1 {nodes} {walltime} -1 1 1 1 1 1 1 -1 -1")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("seed", [1, 9])
def test_a_forecast_knows_how_long_the_head_has_waited(tmp_path: Path, seed: int) -> None:
    """Under dedicated, which lets the head of the queue wait for a better shape, a forecast from any event of a replay starts
    every job when the replay did, if it knows how long jobs run and no job comes later. Without the wait of the head it does not."""
    (tmp_path / "machine.toml").write_text(MACHINE)
    (tmp_path / "jobs.swf").write_text(log(seed))
    names = {"machine": str(tmp_path / "machine.toml"), "workload": str(tmp_path / "jobs.swf")}
    task = Task(**names, policy="dedicated", failures="none")
    run = task.run()
    replay = ReplaySource(task, [run], None, 0.0)
    starts = dict(run.jobs.select("job_id", "starting_time").iter_rows())
    lasts = dict(run.jobs.select("job_id", "execution_time").iter_rows())

    def is_right(snapshot: View) -> bool:
        copy = Copy(replay.machine, snapshot, "dedicated", "easy", lasts)
        return all(starts[one.id] == one.start for one in copy.run(float("inf"), 60.0).starts)

    times = {*run.jobs["starting_time"], *run.jobs["finish_time"]}
    snapshots = [replay.at(time + 0.5) for time in sorted(times) if time > SUBMITTED]
    assert all(is_right(snapshot) for snapshot in snapshots)
    assert not all(is_right(dataclasses.replace(snapshot, head_wait=None)) for snapshot in snapshots)
