"""Topolane as the scheduler of a real Flux instance with synthetic nodes."""

from __future__ import annotations

import itertools
import json
import math
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flux_instance import Instance, Job, instance, missing, resources
from topolane._engine import Machine, Scheduler
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

LEAF, POD, NODES = 6, 24, 72
HOSTS = f"n[{NODES // 2}-{NODES - 1},0-{NODES // 2 - 1}]"
"""In another order than the ranks."""
TREE = f"""\
name = "tree"
[[site]]
name = "core"
children = [{LEAF}, {POD // LEAF}, {NODES // POD}]
parents = [1, {LEAF}, 4]
cables = [1, 1, 1]
nodes = "{HOSTS}"
"""
MACHINE = Machine.parse(TREE, "tree.toml")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("machine") / "tree.toml"
    file.write_text(TREE)
    return file


@pytest.fixture
def flux(tmp_path: Path) -> Iterator[Instance]:
    with instance(tmp_path, resources(NODES)) as found:
        yield found


def numbers(hosts: str) -> list[int]:
    return sorted(MACHINE.nodes_named(hosts)) if hosts else []


def crossed(hosts: str) -> set[tuple[str, int]]:
    """The groups of the tree that have some of the nodes and not all: the job may use links above them."""
    found = set()
    for name, size in (("leaf", LEAF), ("pod", POD)):
        groups = {node // size for node in numbers(hosts)}
        found |= {(name, group) for group in groups} if len(groups) > 1 else set()
    return found


def check_apart(jobs: list[Job]) -> int:
    """No two jobs hold one node at once, or cross one group. Returns how many pairs ran at once."""
    met = 0
    for one, other in itertools.combinations([job for job in jobs if job.nodes], 2):
        if one.start < other.end and other.start < one.end:
            met += 1
            assert not set(numbers(one.nodes)) & set(numbers(other.nodes)), (one, other)
            assert not crossed(one.nodes) & crossed(other.nodes), (one, other)
    return met


def test_no_node_and_no_link_is_shared_under_a_random_mix(flux: Instance, machine: Path) -> None:
    """150 jobs of random sizes, under `isolated`, in random order of priority. All of them run."""
    flux.load(f"machine={machine}", "policy=isolated")
    draw = random.Random(3)
    sizes = (1, 2, 3, 5, 7, 8, 12, 20, 30)
    flux.submit_all([(draw.choice(sizes), draw.uniform(0.1, 1.5), draw.randint(1, 31)) for _ in range(150)])
    done = list(flux.idle().values())
    assert {job.result for job in done} == {"COMPLETED"} and len(done) == 150
    assert check_apart(done) > 100
    assert flux.stats()["engine_failures"] == 0


@pytest.mark.parametrize("policy", ["isolated", "dedicated", "slurm-tree", "hop-bytes", "first-fit"])
def test_nodes_are_those_of_the_engine(flux: Instance, machine: Path, policy: str) -> None:
    """Jobs that come one after the other get the nodes that the engine chooses in the same state."""
    flux.load(f"machine={machine}", f"policy={policy}")
    engine = Scheduler(MACHINE, policy, "easy")
    for size in (4, 7, 5, 13, 2, 9):
        jobid = flux.submit(f"-N{size}", "--exclusive", seconds=3600)
        job = flux.wait_state(jobid, "RUN")
        engine.submit(jobid, size, math.inf)
        (chosen,) = engine.start(0)
        assert numbers(job.nodes) == sorted(chosen.nodes)


def test_easy_lets_small_jobs_go_first_and_keeps_its_promise(flux: Instance, machine: Path) -> None:
    """The first of the queue gets its latest start and the reason for its wait. A job that ends before starts at once, a longer one does not."""
    flux.load(f"machine={machine}", "policy=first-fit")
    long = flux.submit("-N40", "--exclusive", "-t10m", seconds=3600)
    flux.wait_state(long, "RUN")
    wide = flux.submit("-N60", "--exclusive", "-t60s")
    until(lambda: flux.job(wide).annotations.get("t_estimate"), "the head has its notes")
    short = flux.submit("-N20", "--exclusive", "-t1s")
    after = flux.submit("-N20", "--exclusive", "-t1h")
    flux.wait_state(short, "INACTIVE")
    head = flux.job(wide)
    assert head.annotations["reason_pending"] == "does not fit now: 60 wanted, 32 to be had"
    flux.run("cancel", long)
    jobs = flux.idle()
    assert jobs[short].start < jobs[wide].start < jobs[after].start
    assert head.annotations["t_estimate"] == pytest.approx(jobs[long].start + 600, abs=1)
    assert jobs[wide].start <= head.annotations["t_estimate"] + 1
    assert "reason_pending" not in jobs[wide].annotations


def test_priorities_cancellations_and_other_limits_reach_the_engine(flux: Instance, machine: Path) -> None:
    """A job that is made more urgent goes first, one that is cancelled does not run, and one whose limit grows is waited for longer."""
    flux.load(f"machine={machine}", "policy=first-fit")
    first = flux.submit("-N72", "--exclusive", "-t60s", seconds=3600)
    flux.wait_state(first, "RUN")
    low, gone, high = (flux.submit("-N72", "--exclusive", "-t60s") for _ in range(3))
    estimate = until(lambda: flux.job(low).annotations.get("t_estimate"), "the head has its notes")
    flux.run("update", first, "duration=+1m")
    until(
        lambda: (flux.job(low).annotations.get("t_estimate") or 0) == pytest.approx(estimate + 60, abs=1),
        "the promise is later",
    )
    flux.run("job", "urgency", high, 31)
    flux.run("cancel", gone)
    flux.run("cancel", first)
    jobs = flux.idle()
    assert jobs[high].start < jobs[low].start and not jobs[gone].nodes
    assert jobs[high].result == jobs[low].result == "COMPLETED" and jobs[gone].result == "CANCELED"


def test_priorities_of_a_plugin_reach_the_engine(flux: Instance, machine: Path, tmp_path: Path) -> None:
    """A plugin of Flux's job manager puts later jobs first. The jobs that wait already start in this order. After a change of urgency, Flux
    asks for the job again; here it says no more than the new priorities.
    """
    plugin = tmp_path / "later_first.so"
    headers = Path(str(shutil.which("flux"))).parents[1] / "include"
    if shutil.which("cc") is None or not (headers / "flux" / "jobtap.h").exists():
        pytest.skip("needs cc and the headers of flux-core")
    source = Path(__file__).with_name("later_first.c")
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{headers}", source, "-o", plugin], check=True)
    flux.load(f"machine={machine}", "policy=first-fit")
    first = flux.submit("-N72", "--exclusive", seconds=3600)
    flux.wait_state(first, "RUN")
    waiting = [flux.submit("-N72", "--exclusive", "-t60s") for _ in range(3)]
    flux.run("jobtap", "load", plugin)
    flux.run("cancel", first)
    jobs = flux.idle()
    assert sorted(waiting, key=lambda job: jobs[job].start) == waiting[::-1]


def test_drained_and_lost_nodes_get_no_job(tmp_path: Path) -> None:
    """Four real brokers. A job gets no drained node, and none whose broker is gone. A job that needs one waits until it is back."""
    with instance(tmp_path, resources(4), brokers=4) as flux:
        flux.load("policy=isolated")
        flux.run("resource", "drain", 1)
        assert flux.wait_state(flux.submit("-N3", "--exclusive"), "INACTIVE").nodes == "n[0,2-3]"
        flux.run("overlay", "disconnect", 3)
        until(
            lambda: "3" in flux.run("resource", "list", "-n", "-s", "down", "-o", "{ranks}"),
            "the rank is lost",
        )
        wide = flux.submit("-N3", "--exclusive", "-t60s")
        assert flux.wait_state(flux.submit("-N2", "--exclusive", "-t1s"), "INACTIVE").nodes == "n[0,2]"
        assert flux.job(wide).state == "SCHED"
        flux.run("resource", "undrain", 1)
        assert flux.wait_state(wide, "INACTIVE").nodes == "n[0-2]"


def test_a_job_holds_its_claim_until_all_its_nodes_are_free(tmp_path: Path) -> None:
    """Four real brokers, with a housekeeping of Flux that takes longer on one rank. Flux frees the other three before. Topolane gives no
    node of the job away until the last is free.
    """
    over = tmp_path / "over"
    housekeeping = f"""
[job-manager.housekeeping]
command = ["sh", "-c", "until test $(flux getattr rank) -ne 3 -o -e {over}; do sleep 0.1; done"]
release-after = "0s"
"""
    with instance(tmp_path, resources(4), brokers=4) as flux:
        flux.run("config", "load", text=(tmp_path / "flux.toml").read_text() + housekeeping)
        flux.load("policy=isolated")
        flux.wait_state(flux.submit("-N4", "--exclusive"), "INACTIVE")
        until(
            lambda: flux.run("resource", "list", "-n", "-s", "free", "-o", "{ranks}").strip() == "0-2",
            "three ranks are free",
        )
        waiting = flux.submit("-N2", "--exclusive")
        job = until(
            lambda: (
                ((now := flux.job(waiting)).state != "SCHED" or now.annotations.get("reason_pending")) and now
            ),
            "it waits or runs",
        )
        assert job.state == "SCHED"
        over.touch()
        assert flux.wait_state(waiting, "INACTIVE").result == "COMPLETED"


def _range(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)


@pytest.mark.parametrize("policy", ["isolated", "dedicated"])
def test_ten_reloads_in_the_midst_lose_nothing(flux: Instance, machine: Path, policy: str) -> None:
    """The module is unloaded and loaded again while jobs run and wait. Every job runs once, on nodes and links of its own."""
    flux.load(f"machine={machine}", f"policy={policy}")
    draw = random.Random(7)
    through = flux.submit("-N2", "--exclusive", seconds=3600)
    flux.wait_state(through, "RUN")
    for round_ in range(10):
        flux.submit_all([(draw.choice((2, 4, 7, 9, 14, 26)), draw.uniform(0.5, 4), 16) for _ in range(8)])
        flux.run("module", "remove", "sched-topolane")
        flux.load(f"machine={machine}", f"policy={policy}")
        assert flux.stats()["running_jobs"] > 0, round_
    flux.run("cancel", through)
    done = list(flux.idle().values())
    assert Counter(job.result for job in done) == {"COMPLETED": 80, "CANCELED": 1}
    apart = check_nodes_and_links(flux, done)
    assert apart[0] > 50 and (policy != "dedicated" or apart[1] > 20)
    if policy == "isolated":
        check_apart(done)
    said = flux.run("dmesg")
    assert "cannot be taken over" not in said and "does not start on the nodes" not in said


@pytest.mark.parametrize(
    ("policy", "sizes"),
    [("dedicated", (14, 8, 7)), ("laas", (9, 26, 4)), ("laas", (8, 7, 26, 4)), ("jigsaw", (5, 26, 26))],
)
def test_a_reload_changes_no_choice(
    flux: Instance, machine: Path, policy: str, sizes: tuple[int, ...]
) -> None:
    """The module is loaded again before each job. Each job gets the nodes and links that an engine without a break chooses. The last one
    would wait or get others if the links, or the nodes that are held and not used, of the jobs before were forgotten.
    """
    engine = Scheduler(MACHINE, policy, "easy")
    expected = {}
    for size in sizes:
        flux.load(f"machine={machine}", f"policy={policy}")
        jobid = flux.submit(f"-N{size}", "--exclusive", "-t1h", seconds=3600)
        engine.submit(jobid, size, 3600)
        (chosen,) = engine.start(0)
        assert numbers(flux.wait_state(jobid, "RUN").nodes) == sorted(chosen.nodes)
        expected[jobid] = sorted(chosen.links)
        flux.run("module", "remove", "sched-topolane")
    assert {job: sorted(note["links"]) for job, note in flux.notes(list(expected)).items()} == expected


def check_nodes_and_links(flux: Instance, jobs: list[Job]) -> tuple[int, int]:
    """No two jobs at once have one node or own one link. Returns the pairs that ran at once, and those of which both own links."""
    notes = flux.notes([job.id for job in jobs])
    met = both = 0
    for one, other in itertools.combinations(jobs, 2):
        if one.start < other.end and other.start < one.end:
            met += 1
            assert not set(numbers(one.nodes)) & set(numbers(other.nodes))
            mine, others = (set(notes[job.id]["links"]) for job in (one, other))
            both += bool(mine and others)
            assert not mine & others
    return met, both


def test_jobs_of_another_scheduler_are_taken_over(flux: Instance, machine: Path) -> None:
    """Jobs that sched-simple started keep their nodes under ours, and ours keep theirs under sched-simple."""
    flux.run("module", "load", "sched-simple")
    stock = flux.submit("-N20", "--exclusive", seconds=3600)
    part = flux.submit("-N1", "-n1", "-c3", seconds=3600)
    flux.wait_state(part, "RUN")
    flux.run("module", "remove", "sched-simple")
    flux.load(f"machine={machine}", "policy=isolated")
    ours = flux.wait_state(flux.submit("-N8", "--exclusive", seconds=3600), "RUN")
    wide = flux.submit("-N44", "--exclusive", seconds=3600)
    assert flux.stats()["running_jobs"] == 3
    held = [numbers(flux.job(each).nodes) for each in (stock, part)]
    assert not set(numbers(ours.nodes)) & {*held[0], *held[1]}
    assert flux.job(wide).state == "SCHED"
    flux.run("module", "remove", "sched-topolane")
    flux.run("module", "load", "sched-simple")
    flux.run("cancel", stock)
    assert not set(numbers(flux.wait_state(wide, "RUN").nodes)) & {*held[1], *numbers(ours.nodes)}


def test_another_machine_file_keeps_nodes_and_says_so(flux: Instance, machine: Path, tmp_path: Path) -> None:
    """Links have numbers of a machine. After a change of the file, a running job keeps its nodes, and a new one gets others."""
    flux.load(f"machine={machine}", "policy=dedicated")
    before = flux.wait_state(flux.submit("-N9", "--exclusive", seconds=3600), "RUN")
    flux.run("module", "remove", "sched-topolane")
    other = tmp_path / "other.toml"
    other.write_text(TREE.replace("cables = [1, 1, 1]", "cables = [1, 2, 1]"))
    flux.load(f"machine={other}", "policy=dedicated")
    after = flux.wait_state(flux.submit("-N9", "--exclusive", seconds=3600), "RUN")
    assert not set(numbers(before.nodes)) & set(numbers(after.nodes))
    assert "started on another machine file: it keeps its nodes" in flux.run("dmesg")


def test_jobs_share_nodes_by_cores_and_gpus(tmp_path: Path) -> None:
    """Jobs that ask for cores and GPUs share nodes; no core and no GPU is given twice. Slots without nodes go on one node if they fit."""
    with instance(tmp_path, resources(4, cores=8, gpus=4)) as flux:
        flux.load("policy=best-fit")
        asked = [
            ("-n12",),
            ("-n2", "-c2"),
            ("-N1", "-n1", "-c1", "-g1"),
            ("-n5",),
            ("-N2", "-n4", "-c1", "-g1"),
        ]
        ids = [flux.submit(*words, seconds=3600) for words in asked]
        for jobid in ids:
            flux.wait_state(jobid, "RUN")
        taken: set[tuple[int, str, int]] = set()
        counts = []
        for jobid in ids:
            mine = {each for entry in flux.resources(jobid)["execution"]["R_lite"] for each in _units(entry)}
            assert not mine & taken
            taken |= mine
            counts.append(
                (sum(kind == "core" for _, kind, _ in mine), sum(kind == "gpu" for _, kind, _ in mine))
            )
        assert counts == [(12, 0), (4, 0), (1, 1), (5, 0), (4, 4)]
        assert [len(numbers(flux.job(jobid).nodes)) for jobid in ids] == [2, 1, 1, 1, 2]
        assert flux.stats()["notes"] == ["nothing is known of switches: all nodes are taken to be on one"]


def _units(entry: dict[str, Any]) -> Iterator[tuple[int, str, int]]:
    for rank in (rank for part in str(entry["rank"]).split(",") for rank in _range(part)):
        for kind, ids in entry["children"].items():
            for each in (each for part in str(ids).split(",") for each in _range(part)):
                yield rank, kind, each


@pytest.mark.parametrize("when", ["third", "always"])
def test_a_failing_engine_stops_nothing(flux: Instance, machine: Path, when: str) -> None:
    """After a failure, the state is rebuilt from what Flux has allocated. If it fails again and again, jobs start on what is free. All
    jobs run, no node is given twice, and the log says what happened.
    """
    faulty = Path(__file__).with_name("faulty_sched.py")
    flux.run("module", "load", faulty, f"machine={machine}", f"when={when}")
    draw = random.Random(5)
    flux.submit_all([(draw.choice((2, 7, 9, 26)), draw.uniform(0.1, 1), 16) for _ in range(40)])
    done = list(flux.idle().values())
    assert {job.result for job in done} == {"COMPLETED"} and len(done) == 40
    for one, other in itertools.combinations(done, 2):
        if one.start < other.end and other.start < one.end:
            assert not set(numbers(one.nodes)) & set(numbers(other.nodes))
    stats = json.loads(flux.run("module", "stats", "faulty_sched"))
    said = flux.run("dmesg")
    assert "topolane: the engine failed: Panic: broken on purpose" in said
    if when == "third":
        check_apart(done)
        assert stats["decides"] == "engine" and 3 < stats["engine_failures"] <= 100
    else:
        assert stats["decides"] == "order of priority" and stats["engine_failures"] == 101
        assert "jobs start in order of priority on any free nodes" in said


def test_a_job_over_which_the_engine_fails_is_denied(flux: Instance, machine: Path) -> None:
    """It is denied in a sentence, and the engine goes on deciding for the others."""
    faulty = Path(__file__).with_name("faulty_sched.py")
    flux.run("module", "load", faulty, f"machine={machine}", "when=wide")
    jobs = flux.submit_all([(2, 0.1, 16), (26, 0.1, 16), (9, 0.1, 16)])
    done = flux.idle()
    assert [done[job].result for job in jobs] == ["COMPLETED", "FAILED", "COMPLETED"]
    assert "Topolane's engine fails over this job" in flux.run("job", "eventlog", jobs[1])
    stats = json.loads(flux.run("module", "stats", "faulty_sched"))
    assert stats["decides"] == "engine" and stats["engine_failures"] == 2


@pytest.mark.parametrize(("calm", "decides"), [(0, "engine"), (3600, "order of priority")])
def test_only_failures_close_to_each_other_add_up(
    flux: Instance, machine: Path, calm: int, decides: str
) -> None:
    """More than two failures of the engine with less than `calm` seconds between them: jobs start in order. Others are forgotten."""
    faulty = Path(__file__).with_name("faulty_sched.py")
    flux.run("module", "load", faulty, f"machine={machine}", "when=third", "most=2", f"calm={calm}")
    for _ in range(4):
        flux.submit_all([(26, 0.1, 16)] * 6)
        flux.idle()
    stats = json.loads(flux.run("module", "stats", "faulty_sched"))
    assert stats["engine_failures"] > 2 and stats["decides"] == decides


def test_a_waiting_job_that_the_engine_refuses_later_is_denied(flux: Instance, machine: Path) -> None:
    """A change of priority queues a job in the engine again. If the engine refuses it then, it is denied; the others run."""
    faulty = Path(__file__).with_name("faulty_sched.py")
    flux.run("module", "load", faulty, f"machine={machine}", "when=again")
    blocker = flux.submit("-N72", "--exclusive", seconds=3600)
    flux.wait_state(blocker, "RUN")
    refused, other = (flux.submit("-N2", "--exclusive") for _ in range(2))
    until(lambda: _pending(flux) == 2, "both wait")
    flux.run("job", "urgency", refused, 20)
    assert flux.wait_state(refused, "INACTIVE").result == "FAILED"
    assert "refused on purpose" in flux.run("job", "eventlog", refused)
    assert _pending(flux) == 1
    flux.run("cancel", blocker)
    assert flux.wait_state(other, "INACTIVE").result == "COMPLETED"


def test_a_running_job_that_the_engine_refuses_keeps_its_nodes(flux: Instance, machine: Path) -> None:
    """Such a job is warned of when the scheduler is loaded. No other job gets its nodes before it ends."""
    flux.load(f"machine={machine}")
    runs = flux.submit("-N2", "--exclusive", seconds=3600)
    flux.wait_state(runs, "RUN")
    flux.run("module", "remove", "sched-topolane")
    faulty = Path(__file__).with_name("faulty_sched.py")
    flux.run("module", "load", faulty, f"machine={machine}", "when=running")
    assert "cannot be taken over (refused on purpose)" in flux.run("dmesg")
    second = flux.submit(f"-N{NODES - 2}", "--exclusive")
    assert flux.wait_state(second, "INACTIVE").result == "COMPLETED"
    wide = flux.submit(f"-N{NODES - 1}", "--exclusive")
    until(lambda: _pending(flux) == 1, "the wide job waits")
    flux.run("cancel", runs)
    assert flux.wait_state(wide, "INACTIVE").result == "COMPLETED"


def _pending(flux: Instance) -> int:
    return int(json.loads(flux.run("module", "stats", "faulty_sched"))["pending_jobs"])


def test_what_no_job_may_ask_for_is_denied_in_a_sentence(flux: Instance, machine: Path) -> None:
    """A job that could never run, or that says what is not understood, is denied. The next one runs."""
    flux.load(f"machine={machine}", "policy=isolated", "min-bandwidth=0.5")
    cases = {
        ("-N73",): "need 73",
        (
            "-N2",
            "--setattr=system.topolane.min-bandwidth=3",
        ): "min-bandwidth is a share above 0 and up to 1, not 3",
        (
            "-N2",
            "--setattr=system.topolane.min-bandwith=1",
        ): "'min-bandwith' is none of min-bandwidth, segment",
        ("-N2", "--setattr=system.topolane=5"): "must be a table of min-bandwidth and segment, not 5",
        ("-N2", "--setattr=system.topolane.segment=0"): "segment is a number of nodes, not 0",
        ("-n1", "-g1"): "GPU",
    }
    ids = {words: flux.submit(*words) for words in cases}
    jobs = flux.idle()
    for words, sentence in cases.items():
        assert jobs[ids[words]].result == "FAILED", words
        assert sentence in flux.run("job", "eventlog", ids[words]), words
    jobspec = json.loads(flux.run("submit", "--dry-run", "-n1", "true"))
    jobspec["resources"][0]["with"][0]["type"] = "pencil"
    without_cores = flux.run("job", "submit", text=json.dumps(jobspec)).strip()
    denied = flux.run("job", "wait-event", without_cores, "exception")
    assert "cannot parse jobspec: Unable to determine slot size" in denied
    assert flux.wait_state(flux.submit("-N2", "--requires=ranks:40-50"), "INACTIVE").result == "COMPLETED"
    assert set(numbers(flux.jobs()[max(flux.jobs())].nodes)) <= set(numbers("n[40-50]"))


def test_what_cannot_be_loaded_is_reported_in_a_sentence(
    flux: Instance, machine: Path, tmp_path: Path
) -> None:
    """Bad words are reported before the module counts as loaded, since Flux ends with a module that fails later. The instance goes on."""
    broken = tmp_path / "broken.toml"
    broken.write_text('name = "x"\n[[site]]\nname = 5\n')
    short = tmp_path / "short.toml"
    short.write_text(TREE.replace(HOSTS, f"m[0-{NODES - 1}]"))
    cases = {
        "policy=nothing": "unknown policy 'nothing'",
        "policy=recorded": "there is no log here",
        "queue=slurm": "queue=slurm: there are fcfs, easy, conservative",
        "machine=/nowhere": "/nowhere",
        f"machine={broken}": f"{broken}:3",
        f"machine={short}": f"{short} does not name n0 and 71 more, which Flux has",
        "min-bandwidth=2": "min-bandwidth is a share above 0 and up to 1, not '2'",
        "colour=red": "unknown argument 'colour=red'",
        "pool-class=TreePool": "pool-class= cannot be used",
    }
    for word, sentence in cases.items():
        flux.load(word, code=1)
        assert sentence in flux.run("dmesg"), word
    assert "Traceback" not in flux.log.read_text()
    flux.load(f"machine={machine}")
    assert flux.wait_state(flux.submit("-N2"), "INACTIVE").result == "COMPLETED"


def test_two_ranks_of_one_name_are_refused(tmp_path: Path) -> None:
    """Several brokers on one host are several ranks with its name: no tree has it twice."""
    twice = resources(2)
    twice["execution"]["nodelist"] = ["host,host"]
    with instance(tmp_path, twice) as flux:
        flux.load(code=1)
        assert "host is the name of several ranks" in flux.run("dmesg")


def test_a_thousand_waiting_jobs_leave_the_instance_responsive(flux: Instance, machine: Path) -> None:
    """While 1,000 jobs wait, the module answers. All of them run."""
    flux.load(f"machine={machine}", "policy=isolated")
    blocker = flux.submit("-N72", "--exclusive", seconds=3600)
    flux.wait_state(blocker, "RUN")
    flux.submit_all([(9, 0.01, 16)] * 1000)
    until(lambda: flux.stats()["pending_jobs"] == 1000, "all wait")
    flux.run("cancel", blocker)
    done = flux.idle()
    assert sum(job.result == "COMPLETED" for job in done.values()) == 1000
