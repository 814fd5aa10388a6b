"""`topolane slurm shadow` next to a real Slurm: what it says of Slurm's starts, of links and of the policy is so."""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx", reason="needs the extra slurm: httpx")

from links_in_tree import completed, crossed, expanded, switches
from live_cluster import Cluster, Inside, running
from reading import TOPOLANE, topolane, with_commands
from test_status import Site, site  # noqa: F401
from topolane import Machine, State
from waiting import DEADLINE, until


@pytest.fixture(scope="module")
def trixie(inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """24 nodes of Slurm 24.11 in 4 leaves and 2 pods. Jobs of `pbatch` have whole nodes, those of `parts` share them."""
    partitions = "pbatch:ALL:EXCLUSIVE parts:ALL:NO"
    options = ("--select", "cons_tres", "--partitions", partitions, "--pod", 2)
    with running(24, tmp_path_factory.mktemp("shadow"), *options, inside=inside) as cluster:
        yield cluster


@contextlib.contextmanager
def shadowing(
    environment: dict[str, str], directory: Path, *options: object, policy: str = "isolated"
) -> Iterator[Path]:
    """A shadow at work; its log. It ends with code 0 when it is asked to."""
    log = directory / "log.jsonl"
    words = ["slurm", "shadow", "--policy", policy, "--interval", 0.5, "--log", log, *options]
    shadow = subprocess.Popen(
        [*TOPOLANE, *map(str, words)],
        env=environment,
        stdout=(directory / "printed").open("w"),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: bool(events(log, "shadow")) or shadow.poll() is not None, "the shadow looks")
        yield log
    finally:
        shadow.send_signal(signal.SIGTERM)
        _, said = shadow.communicate(timeout=DEADLINE)
        assert (shadow.returncode, said) == (0, ""), said


def events(log: Path, *kinds: str) -> list[dict[str, Any]]:
    """The events of these kinds. A line that is being written is not there yet."""
    text = log.read_text() if log.exists() else ""
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in lines if line["event"] in kinds]


def all_ended(cluster: Cluster) -> bool:
    return cluster.run("squeue", "-h", "-o", "%i") == ""


def calls(cluster: Cluster) -> set[str]:
    """The kinds of messages that slurmctld got."""
    found = cluster.run("sdiag").partition("by message type")[2].partition("by user")[0]
    return set(re.findall(r"^\s*([A-Z_]+)\s", found, re.MULTILINE))


def out_of_service(log: Path) -> Iterator[list[str]]:
    """The nodes that were out of service at each start in a log."""
    out = ""
    for event in events(log, "service", "start"):
        out = event.get("out", out)
        if event["event"] == "start":
            yield sorted(expanded(out))


def holders(log: Path) -> Iterator[tuple[dict[str, Any], dict[int, dict[str, Any]]]]:
    """Each start in a log, with the jobs that held nodes then, by the log."""
    here: dict[int, dict[str, Any]] = {}
    for event in events(log, "holds", "start", "ends"):
        if event["event"] == "ends":
            here.pop(event["id"], None)
            continue
        if event["event"] == "start":
            yield event, dict(here)
        here[event["id"]] = event


def check_links(log: Path, topology: Path) -> int:
    """How many jobs may meet each started one, derived from topology.conf alone; and that `isolated` lets none meet."""
    tree, shared = switches(topology), 0
    for start, here in holders(log):
        held = {job: crossed(expanded(each["nodes"]), tree) for job, each in here.items()}
        over = crossed(expanded(start["nodes"]), tree)
        assert start["shares_with"] == sum(bool(over & other) for other in held.values()), start
        shared += start["shares_with"] > 0
        if "nodes" in start["policy"]:
            ours = expanded(start["policy"]["nodes"])
            assert not any(crossed(ours, tree) & other for other in held.values()), start
            assert not any(ours & expanded(each["nodes"]) for each in here.values()), start
    return shared


def check_offline(log: Path) -> tuple[int, int]:
    """The engine, asked offline with the jobs and the nodes of the log, says the same; how many it places and refuses."""
    (first,) = events(log, "shadow")
    machine, placed, refused = Machine.parse(first["machine"], "log", "toml"), 0, 0
    for (start, here), out in zip(holders(log), out_of_service(log), strict=True):
        state = State(machine)
        state.take_out([machine.node_named(name) for name in out])
        for job, each in here.items():
            state.hold(machine.nodes_named(each["nodes"]), each.get("share"), id=job)
        eligible = machine.nodes_named(start["eligible"]) if "eligible" in start else None
        count = len(machine.nodes_named(start["nodes"]))
        found = state.place(first["policy"], count, eligible=eligible, share=start.get("share"))
        if hasattr(found, "nodes"):
            assert start["policy"]["nodes"] == machine.hostlist(found.nodes), start
            assert start["policy"]["aph"] == found.aph
            placed += 1
        else:
            assert (start["policy"]["refusal"], start["policy"]["why"]) == (found.name, found.why), start
            refused += 1
    return placed, refused


def test_what_it_says_of_a_busy_slurm_is_so(trixie: Cluster, tmp_path: Path) -> None:
    """Forty jobs, one that ran before, some that end within a second, an array and excluded nodes: each start is there once
    with Slurm's nodes and times; links and the policy's answers are those that others count; only reads reach Slurm."""
    environment = with_commands(trixie, tmp_path)
    excluding: list[int] = []
    draw, since = random.Random(4), len(completed(trixie.directory / "log/jobs.log"))
    before = trixie.submit("--nodes=3", "--nodelist=node[5-7]", script="sleep 8")
    until(lambda: trixie.job(before)["job_state"] == "RUNNING", "the first job runs")
    trixie.run("sdiag", "-r")
    with shadowing(environment, tmp_path, "--json") as log:
        for number in range(36):
            options = ["--exclude=node[1-3]"] if number % 7 == 0 else []
            nodes, seconds = draw.choice([1, 2, 2, 3, 5, 8]), draw.choice([0, 1, 2, 4])
            job = trixie.submit(f"--nodes={nodes}", *options, script=f"sleep {seconds}")
            excluding += [job] if options else []
        trixie.submit("--nodes=2", "--array=0-3", script="sleep 1")
        until(lambda: all_ended(trixie), "all jobs end")
        until(lambda: len(events(log, "ends")) == 41, "it has seen all ends")
        said = calls(trixie)
    ran = {each.job: each for each in completed(trixie.directory / "log/jobs.log")[since:]}
    starts = events(log, "start")
    assert [event["id"] for event in events(log, "holds")] == [before]
    number_of = {each["job"]: each for each in starts}
    assert len(starts) == len(number_of) == 40 and len(ran) == 41
    by_start = sorted((each.start, sorted(each.nodes)) for each in ran.values() if each.job != before)
    assert by_start == sorted((each["start"], sorted(expanded(each["nodes"]))) for each in starts)
    assert [each["start"] for each in starts] == sorted(each["start"] for each in starts)
    assert {"REQUEST_JOB_INFO", "REQUEST_NODE_INFO"} <= said
    assert not [
        call for call in said if re.search("UPDATE|KILL|CANCEL|REQUEUE|SUSPEND|CREATE|DELETE", call)
    ], said
    shared = check_links(log, trixie.directory / "topology.conf")
    placed, refused = check_offline(log)
    assert shared > 0 and placed > 10 and placed + refused == 40
    assert sorted(each["id"] for each in starts if "eligible" in each) == excluding
    assert all(each["eligible"] == "node[4-24]" for each in starts if "eligible" in each)
    printed = [json.loads(line) for line in (tmp_path / "printed").read_text().splitlines()]
    assert [line["job"] for line in printed[:-1]] == [each["job"] for each in starts]
    summary = printed[-1]["summary"]
    assert summary["starts"] == 40 and sum(summary["would_have_waited"].values()) == refused
    assert summary["with_policy"]["jobs"] == placed and summary["with_policy"]["sharing"] == 0
    check_replay(environment, log, summary, trixie.directory / "topology.conf")


def check_replay(environment: dict[str, str], log: Path, summary: dict[str, Any], topology: Path) -> None:
    """The same decisions and the same summary; a log that says otherwise is reported; the table can be simulated."""
    table = log.parent / "jobs.csv"
    again = topolane(environment, "slurm", "replay", log, "--csv", table, "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert json.loads(again.stdout) == summary | {"differing": []}
    assert "40 decisions made once more: all the same" in topolane(environment, "slurm", "replay", log).stdout
    compared = topolane(environment, "compare", "--trace", table, "--machine", topology)
    assert compared.returncode == 0, compared.stderr
    changed = log.parent / "changed.jsonl"
    changed.write_text(
        log.read_text().replace('"policy": {"nodes": "node', '"policy": {"nodes": "node2,node', 1)
    )
    result = topolane(environment, "slurm", "replay", changed)
    assert result.returncode == 1 and "1 differ" in result.stdout


def test_jobs_on_parts_of_nodes(trixie: Cluster, tmp_path: Path) -> None:
    """Two jobs of 6 of 16 cores fit on a node, a third does not: the policy counts what each holds, as Slurm does."""
    environment = with_commands(trixie, tmp_path)
    with shadowing(environment, tmp_path, "--partition", "parts", policy="first-fit") as log:
        wide = trixie.submit("-ppbatch", "--nodes=23", "--nodelist=node[2-24]", script="sleep 60")
        until(lambda: trixie.job(wide)["job_state"] == "RUNNING", "the wide job runs")
        jobs = [
            trixie.submit("-pparts", "--ntasks=1", "-c6", "--mem=100", script="sleep 4") for _ in range(2)
        ]
        until(lambda: len(events(log, "start")) == 2, "both run")
        jobs.append(trixie.submit("-pparts", "--ntasks=1", "-c6", "--mem=100", script="sleep 1"))
        until(lambda: len(events(log, "start")) == 3, "the third runs too, in its turn")
        trixie.run("scancel", wide, *jobs)
        until(lambda: all_ended(trixie) and len(events(log, "ends")) == 4, "all end")
    starts = events(log, "start")
    assert [each["id"] for each in events(log, "holds")] == [wide]
    assert [(each["share"]["cores"], each["nodes"], each["policy"]["nodes"]) for each in starts] == [
        (6, "node1", "node1")
    ] * 3
    assert check_offline(log) == (3, 0)
    assert topolane(environment, "slurm", "replay", log).returncode == 0


def test_a_shadow_goes_on_in_its_log(trixie: Cluster, tmp_path: Path) -> None:
    """A second shadow with the log of the first: no start is logged twice, that of a job that came in between is, and the end of one
    that ran before. The log is repeated to the same decisions."""
    environment = with_commands(trixie, tmp_path)
    with shadowing(environment, tmp_path) as log:
        first = trixie.submit("--nodes=2", script="sleep 600")
        until(lambda: len(events(log, "start")) == 1, "the first start is logged")
    second = trixie.submit("--nodes=3", script="sleep 600")
    until(lambda: trixie.job(second)["job_state"] == "RUNNING", "the second runs")
    with shadowing(environment, tmp_path) as log:
        until(lambda: len(events(log, "start", "holds")) == 2, "the second start is logged")
        trixie.run("scancel", first, second)
        until(lambda: len(events(log, "ends")) == 2, "both ends are logged")
    assert [each["id"] for each in events(log, "start")] == [first, second] and not events(log, "holds")
    assert events(log, "shadow")[1]["away"] > 0
    assert "goes on after" in (tmp_path / "printed").read_text()
    again = topolane(environment, "slurm", "replay", log, "--json")
    assert again.returncode == 0 and json.loads(again.stdout)["starts"] == 2


def test_a_slurm_that_restarts_and_a_job_that_is_requeued(trixie: Cluster, tmp_path: Path) -> None:
    """slurmctld is killed and comes back; the shadow goes on. A requeued job starts twice, and each start is logged."""
    environment = with_commands(trixie, tmp_path)
    with shadowing(environment, tmp_path, "--slurmrestd", f"unix:{trixie.facts['SOCKET']}") as log:
        job = trixie.submit("--nodes=2", "--requeue", script="sleep 100")
        until(lambda: len(events(log, "start")) == 1, "the start is logged")
        trixie.script("stop", "slurmctld")
        until(lambda: bool(events(log, "error")), "it says that Slurm is away")
        trixie.script("start", "slurmctld")
        trixie.run("scontrol", "requeue", job)
        until(lambda: len(events(log, "start")) == 2, "the second start is logged")
        trixie.run("scancel", job)
        until(lambda: len(events(log, "ends")) == 2, "the end is logged")
    first, second = events(log, "start")
    assert first["id"] == second["id"] == job and second["start"] > first["start"]
    order = [each["event"] for each in events(log, "start", "ends")]
    assert order == ["start", "ends", "start", "ends"]
    assert topolane(environment, "slurm", "replay", log).returncode == 0


def test_nodes_that_the_machine_does_not_name(trixie: Cluster, tmp_path: Path) -> None:
    """They are named at the beginning; a job there is not asked about, one elsewhere is."""
    environment = with_commands(trixie, tmp_path)
    small = tmp_path / "small.conf"
    lines = (trixie.directory / "topology.conf").read_text().splitlines()
    small.write_text("\n".join(line for line in lines if re.match(r"SwitchName=(leaf[12]|pod1) ", line)))
    with shadowing(environment, tmp_path, "--machine", small) as log:
        for place in ("node[1-2]", "node[23-24]", "node[12-13]"):
            trixie.submit("--nodes=2", f"--nodelist={place}", script="sleep 1")
        until(lambda: len(events(log, "ends")) == 3, "all have ended")
    asked = {each["nodes"]: each for each in events(log, "start")}
    assert asked["node[1-2]"]["policy"]["nodes"] == "node[1-2]"  # its own list says which
    assert "node23, node24" in asked[""]["not_asked"] and "node13" in asked["node12"]["not_asked"]
    printed = (tmp_path / "printed").read_text()
    assert "12 nodes of Slurm are not in the machine (node13, node14, node15, ...)" in printed
    assert "3 starts, 1 asked about: 1 placed, 0 would have waited" in printed
    assert topolane(environment, "slurm", "replay", log).returncode == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--policy", "nosuch"), "unknown policy"),
        (
            ("--policy", "isolated", "--partition", "nosuch"),
            "Slurm has no partition nosuch; there are pbatch, parts",
        ),
        (("--policy", "isolated", "--machine", "cab"), "cab names no node of this Slurm"),
        (
            ("--policy", "isolated", "--min-bandwidth", "0.5"),
            "--min-bandwidth is not used by policy 'isolated'",
        ),
        (("--policy", "isolated", "--slurmrestd", "nowhere"), "slurmrestd is at unix:PATH"),
        (
            ("--policy", "isolated", "--slurmrestd", "unix:/nowhere"),
            "slurmrestd at unix:/nowhere does not answer",
        ),
        (("--policy", "isolated", "--token-file", "x"), "a token-file is for slurmrestd"),
    ],
)
def test_what_is_wrong_at_the_start(
    trixie: Cluster, tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    """One sentence and exit code 2."""
    done = topolane(with_commands(trixie, tmp_path), "slurm", "shadow", "--for", 1, *options)
    assert (done.returncode, done.stdout) == (2, "") and sentence in done.stderr, done
    assert len(done.stderr.strip().splitlines()) == 1


def test_through_slurmrestd_for_some_seconds(slurm: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """On the Slurm of this machine, whose scontrol writes no JSON: by slurmrestd, and --for ends it."""
    directory, out = tmp_path_factory.mktemp("rest"), tmp_path_factory.mktemp("out")
    with running(12, directory) as cluster:
        without = topolane(cluster.environment, "slurm", "shadow", "--policy", "isolated", "--for", 1)
        newer = cluster.run("scontrol", "--version").split()[-1] >= "23.02"
        assert newer or (without.returncode == 2 and "Slurm 23.02 or newer has it" in without.stderr), without
        # It runs when the shadow begins, however long that takes.
        first = cluster.submit("--nodes=2", script="sleep 600")
        running_now = ("squeue", "--noheader", "--states=RUNNING", "--format=%i")
        until(lambda: str(first) in cluster.run(*running_now).split(), "it runs")
        address = f"unix:{cluster.facts['SOCKET']}"
        with shadowing(cluster.environment, out, "--slurmrestd", address) as log:
            for nodes in (3, 2, 4):
                cluster.submit(f"--nodes={nodes}", script="sleep 2")
            cluster.run("scancel", first)
            until(lambda: all_ended(cluster), "all end")
            until(lambda: len(events(log, "ends")) == 4, "it has seen all ends")
        check_links(log, cluster.directory / "topology.conf")
        assert len(events(log, "start")) in (3, 4) and sum(check_offline(log)) == len(events(log, "start"))
        words = ("slurm", "shadow", "--policy", "isolated", "--slurmrestd", address, "--for", 1)
        done = topolane(cluster.environment, *words)
        assert done.returncode == 0 and "0 starts, 0 asked about" in done.stdout, done


def test_with_the_plugin_at_work(site: Site, tmp_path: Path) -> None:  # noqa: F811
    """The plugin chooses where the same policy in the shadow does; its policy for each job is logged, and the links that jobs
    own are respected."""
    cluster = site.cluster
    environment = with_commands(cluster, tmp_path)
    until(site.asks, "nodes")
    options = ("--machine", cluster.directory / "machine.toml", "--min-bandwidth", 0.5)
    with shadowing(environment, tmp_path, *options, policy="dedicated") as log:
        jobs = [cluster.submit("-ppowned", "--nodes=8", script="sleep 60") for _ in range(2)]
        until(lambda: len(events(log, "start")) == 2, "both start")
        stock = cluster.submit("-ppstock", "--nodes=1", script="sleep 60")
        until(lambda: len(events(log, "start")) == 3, "so does a job of stock Slurm")
        cluster.run("scancel", *jobs, stock)
        until(lambda: len(events(log, "ends")) == 3, "all end")
    starts = {each["id"]: each for each in events(log, "start")}
    for job in jobs:
        assert starts[job]["policy"]["nodes"] == starts[job]["nodes"] and starts[job]["links"]
        assert starts[job]["policy"]["links"] == starts[job]["links"]
        assert starts[job]["plugin"] in ("dedicated", None)  # the plugin writes its file once a second
    assert not set(starts[jobs[0]]["links"]) & set(starts[jobs[1]]["links"])
    assert [each["shares_with"] for each in starts.values()] == [0, 0, 0]
    assert topolane(environment, "slurm", "replay", log).returncode == 0
