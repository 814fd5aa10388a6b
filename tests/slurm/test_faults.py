"""Faults of processes and machines, on a real Slurm: daemons that die, nodes that go down with jobs on them.

After each: every job has ended or waits with a reason; all the while nobody is twice on a node and no two
jobs share a link. Jobs that the fault does not touch complete.
"""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest
from driving import driving, running, submit_many, tree_of
from live_cluster import Cluster, script, until
from topolane import Machine
from watching import events, settle, settled, states, watching


@pytest.fixture(scope="module")
def machine(cluster: Cluster) -> Machine:
    return tree_of(cluster)


def until_there(file: Path) -> str:
    """A script that runs until a file is there: on a machine however busy, its job runs as long as it must."""
    return f"until [ -e {file} ]; do sleep 0.2; done"


def wait_for_release(log: Path, known: int) -> None:
    """Until the log has a start behind its first `known` bytes; a release takes milliseconds."""
    end = time.monotonic() + 240
    while not (log.exists() and b'"event": "start"' in log.read_bytes()[known:]):
        assert time.monotonic() < end, "no release within 240 s"
        time.sleep(0.001)


def test_killed_in_the_midst_of_releases(cluster: Cluster, machine: Machine, tmp_path: Path) -> None:
    """kill -9 while the jobs of one decision are being released, three times at another moment: the next
    daemon goes on with those that were released and decides anew for the others."""
    draw = random.Random(5)
    jobs = submit_many(cluster, 12, seed=11)
    in_the_midst, log = 0, tmp_path / "log.jsonl"
    with watching(cluster, machine):
        for _ in range(3):
            jobs += submit_many(cluster, 4, seed=draw.randint(0, 1000))
            jobs += [cluster.submit("--nodes=1", "--time=5", script="sleep 1") for _ in range(25)]
            known = log.stat().st_size if log.exists() else 0
            with driving(cluster, tmp_path) as daemon:
                wait_for_release(log, known)
                time.sleep(draw.uniform(0, 0.02))
                daemon.kill()
                daemon.wait()
            kinds = [event["event"] for event in events(tmp_path, "pass", "start")]
            decided = next(event for event in reversed(events(tmp_path, "pass")) if event["starts"])
            released = kinds[::-1].index("pass")
            in_the_midst += 0 < released < len(decided["starts"])
        assert in_the_midst, "no daemon was killed between two releases of one decision"
        with driving(cluster, tmp_path):
            assert set(settle(cluster, jobs).values()) == {"COMPLETED"}


@pytest.mark.parametrize(
    ("how", "name"), [("stop", "slurmctld"), ("stop", "slurmrestd"), ("kill", "slurmrestd")]
)
def test_slurm_restarts_under_the_daemon(
    cluster: Cluster, machine: Machine, tmp_path: Path, name: str, how: str
) -> None:
    """slurmctld or slurmrestd goes in the midst of releases and comes back: the daemon stays up, says so
    in its log, and goes on."""
    with watching(cluster, machine), driving(cluster, tmp_path) as daemon:
        jobs = submit_many(cluster, 12, seed=21)
        until(lambda: bool(running(cluster, machine)), "a job runs")
        known = len(events(tmp_path, "start"))
        jobs += submit_many(cluster, 6, seed=22)
        until(lambda: len(events(tmp_path, "start")) > known, "a release")
        assert script(how, cluster.directory, name).returncode == 0
        until(lambda: bool(events(tmp_path, "slurm-error", "not-released")), "the daemon notices")
        assert script("start", cluster.directory, name).returncode == 0
        assert set(settle(cluster, jobs).values()) == {"COMPLETED"}
        assert daemon.poll() is None
        assert not events(tmp_path, "unfit")


def test_slurmctld_forgets_its_last_seconds(cluster: Cluster, machine: Machine, tmp_path: Path) -> None:
    """Killed, slurmctld does not know that jobs have started since it last saved its state. It starts
    them anew, their nodes refuse the second copy, and Slurm itself drains these nodes and holds the
    jobs ("launch failed requeued held"). The daemon leaves them held until they are released, and then
    places them again."""
    goes_on = tmp_path / "goes-on"
    jobs = [cluster.submit("-N3", "--time=15", script=until_there(goes_on)) for _ in range(8)]
    submitted, saved = time.time(), cluster.directory / "state" / "job_state"
    until(lambda: saved.exists() and saved.stat().st_mtime > submitted, "slurmctld saves its jobs")
    shutil.copy(saved, tmp_path / "saved")
    with watching(cluster, machine), driving(cluster, tmp_path) as daemon:
        until(lambda: len(running(cluster, machine)) == len(jobs), "all run")
        assert script("kill", cluster.directory, "slurmctld").returncode == 0
        shutil.copy(tmp_path / "saved", saved)  # it may have saved once more since
        assert script("start", cluster.directory, "slurmctld").returncode == 0
        late = cluster.submit("-N3", "--time=5", script="true")
        until(lambda: any(map(settled, states(cluster, jobs).values())), "a second copy is refused")
        goes_on.touch()
        ended = settle(cluster, [*jobs, late])
        held = [job for job in jobs if ended[job] == "PENDING"]
        assert held and ended[late] == "COMPLETED"
        drained = cluster.run("sinfo", "-h", "-N", "-p", "pbatch", "-t", "drain", "-o", "%N").split()
        cluster.run("scontrol", "update", f"nodename={','.join(drained)}", "state=resume")
        cluster.run("scontrol", "release", ",".join(map(str, held)))
        until(lambda: "PENDING" not in settle(cluster, jobs).values(), "all end")
        assert set(settle(cluster, jobs).values()) == {"COMPLETED"}
        assert daemon.poll() is None


def test_five_nodes_go_down_with_jobs_on_them(cluster: Cluster, machine: Machine, tmp_path: Path) -> None:
    """Their slurmds are killed and Slurm is told. Jobs that may be requeued are placed again on
    other nodes, the others fail; jobs elsewhere complete; a job on a draining node runs to its end, and
    nothing new starts on nodes that are not there."""
    goes_on = tmp_path / "goes-on"
    asked = {"script": until_there(goes_on)}
    again = [cluster.submit("-N4", "--requeue", "--time=15", **asked) for _ in range(4)]
    fail = [cluster.submit("-N4", "--no-requeue", "--time=15", **asked) for _ in range(3)]
    well = [cluster.submit("-N3", "--requeue", "--time=15", **asked) for _ in range(3)]
    jobs = again + fail + well
    with watching(cluster, machine), driving(cluster, tmp_path):
        until(lambda: set(jobs) <= set(running(cluster, machine)), "all run")
        held = running(cluster, machine)
        first = {job: machine.node_name(held[job][0]) for job in jobs}
        dead = [first[job] for job in (*again[:3], *fail[:2])]
        down = ",".join(dead)
        assert script("kill", cluster.directory, *dead).returncode == 0
        cluster.run("scontrol", "update", f"nodename={down}", "state=down", "reason=test")
        cluster.run("scontrol", "update", f"nodename={first[well[0]]}", "state=drain", "reason=test")
        later = [cluster.submit("-N20", "--time=5", script="sleep 1")]
        later += [cluster.submit("-N2", "--time=5", script="sleep 1") for _ in range(10)]
        goes_on.touch()
        ended = settle(cluster, jobs + later)
        out = set(machine.nodes_named(f"{down},{first[well[0]]}"))
        for job, record in states(cluster, again[:3] + later).items():
            assert not out & set(machine.nodes_named(record["nodes"])), (job, record["nodes"])
        assert script("start", cluster.directory, *dead).returncode == 0
        cluster.run("scontrol", "update", f"nodename={first[well[0]]}", "state=resume")
        whole = cluster.submit("-N72", "--time=5", script="true")
        assert settle(cluster, [whole]) == {whole: "COMPLETED"}
    assert {ended[job] for job in fail[:2]} == {"NODE_FAIL"}
    assert {ended[job] for job in jobs + later if job not in fail[:2]} == {"COMPLETED"}
    assert {record["restart_cnt"] for record in states(cluster, again[:3]).values()} == {1}


def test_jobs_end_and_come_while_there_is_no_daemon(
    cluster: Cluster, machine: Machine, tmp_path: Path
) -> None:
    """A daemon that is stopped leaves released jobs to Slurm; the next one knows what ended meanwhile."""
    with watching(cluster, machine):
        with driving(cluster, tmp_path):
            jobs = submit_many(cluster, 15, seed=31)
            until(lambda: bool(running(cluster, machine)), "a job runs")
        jobs += submit_many(cluster, 5, seed=32)
        until(lambda: not running(cluster, machine), "what was released has ended")
        waiting = [job for job, record in states(cluster, jobs).items() if record["job_state"] == "PENDING"]
        assert waiting
        with driving(cluster, tmp_path):
            assert set(settle(cluster, jobs).values()) == {"COMPLETED"}
