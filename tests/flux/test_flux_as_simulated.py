"""A real Flux instance starts the jobs that the simulator starts, in its order and on its nodes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import topolane
from flux_instance import TREE, instance, missing, resources
from topolane._engine import Machine

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

MACHINE = Machine.parse(TREE, "tree.toml")
QUEUES = ("fcfs", "easy", "conservative")
JOBS = 60
PLAY = """\
import json, sys, time
import flux, flux.job
from flux.job.list import JobList

handle, ids = flux.Flux(), {}


def running():
    listed = JobList(handle, max_entries=0, filters=["running"], attrs=["nodelist", "state"]).jobs()
    return {str(int(job.id)): job.nodelist for job in listed if job.state == "RUN"}


for what, job, nodes, limit, expected in json.load(sys.stdin):
    if what == "arrives":
        asked = flux.job.JobspecV1.from_command(["true"], num_nodes=nodes, num_tasks=nodes, exclusive=True, duration=limit)
        asked.setattr("system.exec.test.run_duration", f"{limit}s")
        ids[job] = int(flux.job.submit(handle, asked))
    else:
        flux.job.cancel(handle, ids[job])
    wanted = {str(ids[int(other)]): hosts for other, hosts in expected.items()}
    deadline = time.monotonic() + 900
    while running() != wanted:
        if time.monotonic() > deadline:
            sys.exit(f"job {job} {what}: {running()} run instead of {wanted}")
        time.sleep(0.02)
"""


@pytest.mark.parametrize("policy", ["isolated", "dedicated", "first-fit"])
@pytest.mark.parametrize("queue", QUEUES)
def test_flux_starts_what_the_simulator_starts(tmp_path: Path, policy: str, queue: str) -> None:
    """Jobs arrive and end in the simulator's order. After each event, Flux runs the same jobs as the simulator, on the same nodes.

    Time limits are drawn from days to years, so sums of some differ by more than the minutes that the test takes. Then it does not matter how
    long Flux needs for an event. Jobs end by cancellation, long before their limits.
    """
    (tmp_path / "tree.toml").write_text(TREE)
    draw = random.Random(17)
    limits = [draw.randrange(10**6, 10**9) for _ in range(JOBS)]
    sizes = [draw.choice((1, 2, 5, 7, 9, 14, 20, 30)) for _ in range(JOBS)]
    rows = [f"{job},{2 * job},{draw.uniform(20, 120)},{limits[job]},{sizes[job]}" for job in range(JOBS)]
    (tmp_path / "log.csv").write_text("\n".join(["id,submit,run,walltime,nodes", *rows]) + "\n")
    runs = {each: simulated(tmp_path / "log.csv", policy, each) for each in QUEUES}
    assert len({str(run) for run in runs.values()}) == len(QUEUES), "the queues must differ on these jobs"
    run = runs[queue]
    events = sorted(
        [(2 * job, "arrives", job) for job in run] + [(end, "ends", job) for job, (_, end, _) in run.items()]
    )
    assert len({time for time, _, _ in events}) == len(events) == 2 * JOBS, "one event at a time"
    played = [(what, job, sizes[job], limits[job], running_at(run, time)) for time, what, job in events]
    with instance(tmp_path, resources(72)) as flux:
        flux.load(f"machine={tmp_path / 'tree.toml'}", f"policy={policy}", f"queue={queue}")
        flux.run("python", "-c", PLAY, text=json.dumps(played))


def simulated(log: Path, policy: str, queue: str) -> dict[int, tuple[float, float, str]]:
    """Start, end and hosts of each job."""
    run = topolane.simulate(topolane.workload(log, MACHINE.nodes), MACHINE, policy=policy, queue=queue)
    return {
        row["job_id"]: (row["starting_time"], row["finish_time"], hosts_of(row["allocated_resources"]))
        for row in run.jobs.to_dicts()
    }


def running_at(run: dict[int, tuple[float, float, str]], time: float) -> dict[int, str]:
    return {job: hosts for job, (start, end, hosts) in run.items() if start <= time < end}


def hosts_of(nodes: str) -> str:
    """Nodes such as `0-3 7` as Flux writes them."""
    return f"n{nodes}" if nodes.isdecimal() else f"n[{nodes.replace(' ', ',')}]"
