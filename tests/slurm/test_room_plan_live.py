"""`topolane slurm plan` and `apply` on a real slurmctld with the plugin: room for a waiting job by requeueing running ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import links_in_tree as tree
import pytest
from live_cluster import Inside
from plugin_site import LACKS_NODES, PARTITIONS, RULES, Site, plugin_cluster
from waiting import DEADLINE, until

LEAVES = ("node[1-6]", "node[7-12]", "node[13-18]", "node[19-24]")
TOPOLANE = (sys.executable, "-c", "from topolane.cli import main; main()", "slurm")


class Room(Site):
    """A cluster with the plugin, and `topolane slurm plan` on it."""

    def command(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = self.tried(*TOPOLANE, *words)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    def plan(self, job: object, *words: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.command("plan", "--json", "--room-for", job, *words).stdout)
        return found

    def fill(self, *options: tuple[object, ...]) -> list[int]:
        """Isolated jobs, each on a whole leaf, the oldest first and at least two seconds apart."""
        jobs: list[int] = []
        for nodes, words in zip(LEAVES, options):
            if jobs:
                before = self.started(jobs[-1])
                until(lambda before=before: time.time() >= before + 2, "two seconds apart")
            jobs.append(self.start("-w", nodes, *words))
        return jobs

    def started(self, job: object) -> float:
        return float(self.cluster.rest(f"job/{job}")["jobs"][0]["start_time"])

    def seen(self) -> list[str]:
        """All jobs with state and nodes, and all reservations."""
        return sorted(self.cluster.run("squeue", "-h", "-o", "%i %T %N %v").splitlines())

    def wait(self, *words: object) -> int:
        """A wide isolated job that waits, which the plugin or Slurm has looked at."""
        job = self.cluster.submit("-p", "pbatch", "--priority=2000", *words, script="sleep 600")
        until(lambda: self.reason(job) in LACKS_NODES, "a look at the job")
        return job

    def reason(self, job: object) -> str:
        return self.cluster.run("squeue", "-h", "-o", "%r", "-j", job).strip()


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    options = ("--leaf", 6, "--pod", 2, "--deadline", 240, "--partitions", PARTITIONS)
    directory = tmp_path_factory.mktemp("slurm")
    with plugin_cluster(built, inside, directory, *options, conf=("MinJobAge=10",)) as cluster:
        yield Room(cluster, built)


@pytest.fixture
def quiet(site: Room) -> Room:
    """The cluster with nothing running, whose plugin has reported that it is active."""
    site.wait_idle()
    site.call()
    return site


class Dying:
    """A scontrol that ends the one who calls it with kill -9, before or after its first change of Slurm."""

    def __init__(self, site: Room, directory: Path) -> None:
        self.site, self.directory = site, directory
        self.changes = directory / "changes"
        path = site.cluster.environment["PATH"]
        # The scontrol of the Slurm that the cluster runs is only there in its own mounts.
        real = site.cluster.run("sh", "-c", "command -v scontrol").strip()
        script = directory / "scontrol"
        script.write_text(
            f"""#!/bin/sh
case "$1" in
create | update | requeue)
    if [ "$DIES" = before ]; then kill -9 $PPID; exit 1; fi
    {real} "$@" || exit $?
    echo "$*" >>{self.changes}
    if [ "$DIES" = after ]; then kill -9 $PPID; fi
    ;;
*) exec {real} "$@" ;;
esac
"""
        )
        script.chmod(0o755)
        self.path = f"{directory}:{path}"

    def apply(self, plan: Path, dies: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.site.cluster.inside.prefix, *TOPOLANE, "apply", plan, "--timeout", "240"],
            env=self.site.cluster.environment | {"PATH": self.path, "DIES": dies},
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )

    def changed(self) -> list[str]:
        """The changes that were made, in order."""
        return self.changes.read_text().splitlines() if self.changes.exists() else []


def requeued(plan: dict[str, Any]) -> set[int]:
    return {int(each["job"]) for each in plan["requeued"]}


OLD = ("-p", "pbatch", "--priority=1000")


def test_the_cheapest_jobs_that_may_go_are_named_and_nothing_changes(quiet: Room, tmp_path: Path) -> None:
    """Four isolated jobs, each on a leaf of its own. A job of 12 nodes gets a pod, and the two younger jobs must go for it. The
    cost is what they have done. For a job of 6 nodes the youngest that may go must go: not one with Requeue=0, not one of a
    higher priority, not one of a partition that is named."""
    _, second, third, young = quiet.fill(OLD, OLD, OLD, OLD)
    wide, narrow = quiet.wait("-N", 12), quiet.wait("-N", 6)
    before = quiet.seen()
    plan = quiet.plan(wide, "--out", tmp_path / "plan")
    assert requeued(plan) == {third, young}
    done = sum(6 * (plan["time"] - quiet.started(job)) for job in (third, young))
    assert plan["node_hours"] == pytest.approx(done / 3600, abs=1e-5)
    assert plan["least_node_hours"] == pytest.approx(plan["node_hours"], abs=1e-5)
    assert tree.expanded(plan["nodes"]) == tree.expanded("node[13-24]")
    assert json.loads((tmp_path / "plan").read_text())["nodes"] == plan["nodes"]
    assert requeued(quiet.plan(narrow)) == {young}
    quiet.cluster.run("scontrol", "update", f"jobid={young}", "requeue=0")
    assert requeued(quiet.plan(narrow)) == {third}
    quiet.cluster.run("scontrol", "update", f"jobid={third}", "priority=3000")
    assert requeued(quiet.plan(narrow)) == {second}
    assert requeued(quiet.plan(narrow, "--any-priority")) == {third}
    said = quiet.command("plan", "--room-for", narrow, "--untouchable", "partition=pbatch", code=1)
    assert said.stderr == (
        f"there is no plan for job {narrow}: no jobs that may be disturbed hold what is missing "
        "(4 running jobs must stay: 3 named by --untouchable, 1 that Slurm may not requeue).\n"
    )
    assert quiet.seen() == before


def test_links_that_jobs_own_are_made_free_too(quiet: Room) -> None:
    """Three dedicated jobs own all uplinks of two leaves, and another job holds the other pod. A fourth of six nodes has enough idle
    nodes and no uplink: some jobs of the first three go, and not the one of the other pod, which costs more."""
    other = quiet.start("-p", "powned", "-w", "node[13-24]", "--priority=1000")
    small = [
        quiet.start("-p", "powned", "-w", f"node[{each},{each + 6}]", "--priority=1000") for each in (1, 2, 3)
    ]
    wide = quiet.cluster.submit("-p", "powned", "-N", 6, "--priority=2000")
    until(lambda: quiet.reason(wide) in LACKS_NODES, "a look at the job")
    plan = quiet.plan(wide)
    gone = requeued(plan)
    assert gone and gone <= set(small) and other not in gone
    assert plan["least_node_hours"] <= plan["node_hours"]


def test_a_job_that_does_not_wait_for_nodes_is_refused(quiet: Room) -> None:
    """One sentence that says why, and exit code 2."""
    runs = quiet.start("-p", "pbatch", "-w", "node[1-24]")
    held = quiet.cluster.submit("-p", "pbatch", "-N", 2, "--hold")
    later = quiet.cluster.submit("-p", "pbatch", "-N", 2, f"--dependency=afterok:{runs}")
    stock = quiet.cluster.submit("-p", "pstock", "-N", 2)
    listed = quiet.cluster.submit("-p", "pbatch", "-w", "node[1-2]")
    shared = quiet.cluster.submit("-p", "pshared", "-N", 2)
    for job, sentence in (
        (99999, "Slurm knows no such job"),
        (runs, "the job does not wait: it is RUNNING"),
        (held, "the job is held"),
        (later, "not for nodes"),
        (stock, "stock Slurm chooses its nodes"),
        (listed, "plans are not made for jobs with --nodelist"),
        (shared, "may share its nodes"),
    ):
        said = quiet.command("plan", "--room-for", job, code=2).stderr
        assert f"--room-for {job}: " in said and sentence in said and said.count("\n") == 1, said


def test_a_plugin_that_does_not_decide_is_reported(quiet: Room) -> None:
    quiet.start("-p", "pbatch", "-w", "node[1-24]")
    wide = quiet.wait("-N", 12)
    try:
        quiet.configure(RULES + "Partition=pbatch Policy=best\n")
        quiet.call()
        said = quiet.command("plan", "--room-for", wide, code=2).stderr
        assert "topology/topolane is not active" in said and "there is no policy 'best'" in said
    finally:
        quiet.configure()


def restarts(site: Room, job: object) -> int:
    return int(site.cluster.rest(f"job/{job}")["jobs"][0]["restart_cnt"])


def test_apply_starts_the_job_on_the_nodes_of_the_plan(quiet: Room, tmp_path: Path) -> None:
    """The jobs that the plan names are requeued once; the others run on. The reservation is gone, and the job outlives it. A second
    time nothing is done."""
    old, second, third, young = quiet.fill(OLD, OLD, OLD, OLD)
    wide = quiet.wait("-N", 12)
    plan = quiet.plan(wide, "--out", tmp_path / "plan")
    stayed = [quiet.started(job) for job in (old, second)]
    said = quiet.command("apply", tmp_path / "plan", "--timeout", 240).stdout
    assert said.endswith(f"Job {wide} runs on {plan['nodes']}.\n")
    assert quiet.nodes(wide) == tree.expanded(plan["nodes"])
    assert [quiet.started(job) for job in (old, second)] == stayed
    assert [restarts(quiet, job) for job in (old, second, third, young)] == [0, 0, 1, 1]
    until(lambda: "No reservations" in quiet.cluster.run("scontrol", "show", "reservation"), "its end")
    before = quiet.seen()
    said = quiet.command("apply", tmp_path / "plan").stdout
    assert said == "The plan has been carried out already, or given up: nothing is changed.\n"
    assert quiet.seen() == before and quiet.nodes(wide) == tree.expanded(plan["nodes"])


def test_apply_makes_links_free_too(quiet: Room, tmp_path: Path) -> None:
    """A dedicated job that waited for uplinks starts where the plan says, and owns links that no other job owns."""
    quiet.start("-p", "powned", "-w", "node[13-24]", "--priority=1000")
    for each in (1, 2, 3):
        quiet.start("-p", "powned", "-w", f"node[{each},{each + 6}]", "--priority=1000")
    wide = quiet.cluster.submit("-p", "powned", "-N", 8, "--priority=2000", script="sleep 600")
    until(lambda: quiet.reason(wide) in LACKS_NODES, "a look at the job")
    plan = quiet.plan(wide, "--out", tmp_path / "plan")
    quiet.command("apply", tmp_path / "plan", "--timeout", 240)
    assert quiet.nodes(wide) == tree.expanded(plan["nodes"])
    owners = quiet.owners()
    runs = {job.job for job in quiet.running() or []}
    assert not owners[wide] & {link for job in runs - {wide} for link in owners.get(job, ())}
    quiet.check(quiet.running() or [])


def test_apply_killed_before_and_after_each_step_goes_on(quiet: Room, tmp_path: Path) -> None:
    """kill -9 before each change of Slurm and after it. Each time the next `apply` goes on. One of the requeued jobs runs again
    elsewhere by then: it is not requeued a second time. In the end each change was made once."""
    old, third, young = (quiet.start("-w", nodes, *OLD) for nodes in LEAVES[1:])
    quiet.cluster.run("scontrol", "update", f"jobid={old}", "requeue=0")
    wide = quiet.wait("-N", 12)
    quiet.plan(wide, "--out", tmp_path / "plan")
    dying = Dying(quiet, tmp_path)
    name = f"topolane_room_{wide}"
    steps = [
        f"create reservation ReservationName={name}",
        f"update JobId={wide} ReservationName={name}",
        f"requeue {third}",
        f"requeue {young}",
        f"update ReservationName={name} Flags+=FLEX EndTime=",
    ]
    for number, step in enumerate(steps):
        for dies in ("before", "after"):
            done = dying.apply(tmp_path / "plan", dies)
            assert done.returncode == -9, (step, dies, done.stdout, done.stderr)
            made = dying.changed()
            assert len(made) == number + (dies == "after"), (step, dies, made)
        assert made[-1].startswith(step)
        if step == f"requeue {third}":
            until(lambda: quiet.reason(third) != "None" and not quiet.nodes(third), "its end")
            quiet.cluster.run("scontrol", "update", f"jobid={third}", "ReqNodeList=")
            until(lambda: quiet.nodes(third) == tree.expanded(LEAVES[0]), "the new start of a requeued job")
    done = dying.apply(tmp_path / "plan", "no")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert len(dying.changed()) == len(steps)
    assert [restarts(quiet, job) for job in (old, third, young)] == [0, 1, 1]
    assert quiet.nodes(wide) == tree.expanded("node[13-24]")
    until(lambda: "No reservations" in quiet.cluster.run("scontrol", "show", "reservation"), "its end")


def test_a_plan_that_is_no_longer_true_is_refused(quiet: Room, tmp_path: Path) -> None:
    """A job of the plan has been requeued by another user, the nodes have been given to another job, or the waiting job is gone:
    apply says so and changes nothing."""
    until(lambda: "No reservations" in quiet.cluster.run("scontrol", "show", "reservation"), "none of others")
    _, _, third, young = quiet.fill(OLD, OLD, OLD, OLD)
    wide = quiet.wait("-N", 12)
    file = tmp_path / "plan"

    def refused(*sentences: str) -> None:
        before = quiet.seen()
        said = quiet.command("apply", file, code=1).stderr
        assert said.startswith("the plan is no longer true: ") and said.count("\n") == 1
        assert all(sentence in said for sentence in sentences), said
        assert quiet.seen() == before and not (tmp_path / "plan.journal").exists()
        assert "No reservations" in quiet.cluster.run("scontrol", "show", "reservation")

    quiet.plan(wide, "--out", file)
    quiet.cluster.run("scontrol", "update", f"jobid={young}", "requeue=0")
    refused(f"job {young} may not be requeued any more")
    quiet.cluster.run("scontrol", "update", f"jobid={young}", "requeue=1")
    quiet.cluster.run("scontrol", "update", f"jobid={wide}", "priority=1")
    quiet.cluster.run("scancel", third)
    until(lambda: not quiet.cluster.run("squeue", "-h", "-j", third).strip(), "the end of a job")
    narrow = quiet.start("-p", "pbatch", "-N", 1)
    refused(f"job {third} does not run on node[13-18] any more")
    quiet.cluster.run("scancel", wide, narrow)
    until(lambda: len(quiet.seen()) == 3, "the end of both")
    refused(f"job {wide} does not wait any more", f"job {third} does not run")


def the_time(seconds: float) -> str:
    """The time `seconds` seconds from now, as --by takes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + seconds))


def reservation(site: Room, name: str) -> dict[str, Any]:
    """A reservation as slurmctld knows it."""
    (found,) = [each for each in site.cluster.rest("reservations")["reservations"] if each["name"] == name]
    return dict(found)


@pytest.fixture
def drained(quiet: Room) -> Iterator[Room]:
    """The same cluster. Afterwards the reservations for maintenance are deleted."""
    yield quiet
    quiet.cluster.run("scancel", "--user=root")
    until(lambda: not quiet.cluster.run("squeue", "-h"), "an empty queue")
    shown = quiet.cluster.run("scontrol", "show", "reservation")
    for name in re.findall(r"ReservationName=(topolane_drain_\S+)", shown):
        quiet.cluster.run("scontrol", "delete", f"ReservationName={name}")


def test_nodes_are_emptied_before_maintenance(drained: Room, tmp_path: Path) -> None:
    """Ten hours before it, a job without a limit is on the first leaf, one of an hour and one of a day on the second and third, one on the
    fourth. The first three leaves are emptied: the first and the third job are requeued, the others run on. The
    requeued jobs, which want their old nodes, do not start there any more; a job that ends before still does."""
    endless, brief, day, other = drained.fill(
        (*OLD, "--time=UNLIMITED"), (*OLD, "--time=60"), (*OLD, "--time=1-0"), (*OLD, "--time=1-0")
    )
    before, by = drained.seen(), the_time(10 * 3600)
    words = ("plan", "--drain", "node[1-18]", "--by", by)
    said = drained.command(*words).stdout
    assert f"Job {brief} wrap of root, on node[7-12], ends by itself by " in said
    plan = json.loads(drained.command(*words, "--json", "--out", tmp_path / "plan").stdout)
    assert requeued(plan) == {endless, day} and [int(each["job"]) for each in plan["ending"]] == [brief]
    done = sum(6 * (plan["time"] - drained.started(job)) for job in (endless, day))
    assert plan["node_hours"] == pytest.approx(done / 3600, abs=1e-5)
    assert drained.seen() == before
    stayed = [drained.started(job) for job in (brief, other)]
    said = drained.command("apply", tmp_path / "plan", "--timeout", 240).stdout
    assert f"node[1-18]: what runs there ends in time: job {brief}.\n" in said
    assert [restarts(drained, job) for job in (endless, brief, day, other)] == [1, 0, 1, 0]
    assert [drained.started(job) for job in (brief, other)] == stayed
    kept = reservation(drained, "topolane_drain_node1")
    assert kept["node_list"] == "node[1-18]" and {"MAINT", "IGNORE_JOBS"} <= set(kept["flags"])
    assert time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(kept["start_time"])) == by
    short = drained.start("-p", "pbatch", "-w", "node[1-6]", "--time=60")
    assert drained.nodes(short) == tree.expanded("node[1-6]")
    until(lambda: "ReqNodeNotAvail" in drained.reason(endless), "the reason why a requeued job waits")
    assert not drained.nodes(endless) and not drained.nodes(day)


def test_nodes_are_emptied_at_once_and_killed_applies_go_on(drained: Room, tmp_path: Path) -> None:
    """Without --by all jobs go, also those that share nodes. kill -9 comes before each change of Slurm and after it; in the end each was made once, and no
    job is on the nodes, which are for maintenance."""
    whole = drained.start("-w", "node[1-6]", *OLD)
    shared = [drained.start("-p", "pshared", "-n", 1, "-w", "node7") for _ in range(2)]
    other = drained.start("-w", "node[13-18]", *OLD)
    drained.command("plan", "--drain", "node[1-7]", "--out", tmp_path / "plan")
    dying = Dying(drained, tmp_path)
    steps = ["create reservation ReservationName=topolane_drain_node1 "]
    steps += [f"requeue {job}" for job in (whole, *shared)]
    for number, step in enumerate(steps):
        for dies in ("before", "after"):
            done = dying.apply(tmp_path / "plan", dies)
            assert done.returncode == -9, (step, dies, done.stdout, done.stderr)
            made = dying.changed()
            assert len(made) == number + (dies == "after"), (step, dies, made)
        assert made[-1].startswith(step)
    done = dying.apply(tmp_path / "plan", "no")
    assert done.returncode == 0 and "node[1-7]: no job runs there.\n" in done.stdout, (
        done.stdout,
        done.stderr,
    )
    assert len(dying.changed()) == len(steps)
    assert [restarts(drained, job) for job in (whole, *shared, other)] == [1, 1, 1, 0]
    until(lambda: "maint" in drained.cluster.run("sinfo", "-h", "-n", "node[1-7]", "-o", "%T"), "maintenance")
    assert not drained.cluster.run("squeue", "-h", "-t", "running", "-w", "node[1-7]").strip()


def test_nodes_whose_jobs_must_stay_are_not_emptied(drained: Room, tmp_path: Path) -> None:
    """A job with Requeue=0 must stay, so there is no plan, and nothing changes. A plan is no longer true once another job without a limit runs on the
    nodes."""
    job = drained.start("-w", "node[1-6]", *OLD, "--no-requeue")
    said = drained.command("plan", "--drain", "node[1-7]", code=1).stderr
    assert said.startswith("there is no plan that empties node[1-7] by ") and said.count("\n") == 1
    assert f": job {job} that Slurm may not requeue must stay" in said
    drained.command("plan", "--drain", "node7", "--by", the_time(3600), "--out", tmp_path / "plan")
    new = drained.start("-p", "pbatch", "-w", "node7", "--time=UNLIMITED")
    before = drained.seen()
    said = drained.command("apply", tmp_path / "plan", code=1).stderr
    assert said.startswith(f"the plan is no longer true: job {new} runs on node7 and does not end before ")
    assert drained.seen() == before and not (tmp_path / "plan.journal").exists()
    assert "No reservations" in drained.cluster.run("scontrol", "show", "reservation")


def test_a_plan_that_was_begun_is_given_up(quiet: Room, tmp_path: Path) -> None:
    """apply is killed once it has requeued one of two jobs. --undo removes the reservation and lets the waiting job out of it; the
    other job runs on. Nothing is left to go on with."""
    old, _, young = (quiet.start("-w", nodes, *OLD) for nodes in LEAVES[1:])
    quiet.cluster.run("scontrol", "update", f"jobid={old}", "requeue=0")
    wide = quiet.wait("-N", 12)
    quiet.plan(wide, "--out", tmp_path / "plan")
    dying = Dying(quiet, tmp_path)
    for _ in ("create", "update", "requeue"):
        assert dying.apply(tmp_path / "plan", "after").returncode == -9
    started = quiet.started(young)
    said = quiet.command("apply", "--undo", tmp_path / "plan").stdout
    assert said == f"The reservation topolane_room_{wide} ends.\nThe plan is given up.\n"
    until(lambda: "No reservations" in quiet.cluster.run("scontrol", "show", "reservation"), "its end")
    assert quiet.cluster.run("squeue", "-h", "-o", "%v", "-j", wide).strip() in ("", "(null)")
    assert quiet.started(young) == started and restarts(quiet, young) == 0
    said = quiet.command("apply", tmp_path / "plan").stdout
    assert said == "The plan has been carried out already, or given up: nothing is changed.\n"
