"""The plugin's state files as commands read them: whole, garbled, absent, hostile; and the metrics, rules and panels made of
them. No Slurm runs here: what status, explain and metrics say of a real one is in test_status.py.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
import room_records
from plugin_files import running, waiting, write_counters, write_jobs, write_links
from topolane import InputError, Machine
from topolane.cluster.decided import Decided
from topolane.cluster.view import Refused
from topolane.slurm import controllers, links_out, plugin_machine, plugin_state
from topolane.slurm.explain import explain
from topolane.slurm.inspection import SlurmInspection
from topolane.slurm.plugin_conf import PluginConf, PolicyRule
from topolane.slurm.plugin_state import COUNTERS, JOBS, LINKS
from topolane.slurm.records import Snapshot
from topolane.slurm.refusals import where
from topolane.slurm.status import status
from waiting import DEADLINE

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "slurm"
MACHINE = """\
name = "node"
[node]
sockets = 2
cores-per-socket = 8
[[site]]
name = "core"
children = [6, 2, 2]
parents = [1, 3, 3]
cables = [1, 1, 4]
nodes = "node[1-24]"
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A directory with the files of a plugin that has jobs of every kind."""
    machine = tmp_path / "machine.toml"
    machine.write_text(MACHINE)
    calls = {"calls": 100, "placed": 40, "refused": 50, "stock": 7, "stock_slow": 3}
    times = {"under_512_nanoseconds": 60, "under_1024_nanoseconds": 39, "under_134217728_nanoseconds": 1}
    write_counters(tmp_path, nanoseconds=10**9, longest_nanoseconds=9 * 10**8, **calls, **times)
    write_jobs(
        tmp_path,
        f"machine {machine} 24",
        "assumed one cable between each pair of switches",
        running(7, "dedicated", "isolated", 0.5),
        running(8, "stock", "shared"),
        waiting(9, "isolated", "would-share-links", 5, "8-11,20", time=1700000000),
        waiting(10, "stock", "no-area", 3),
        "call-time 500000",
        "rule 3 dedicated 0.5 Partition=a,B",
        "unnamed 2 extra1",
    )
    write_links(tmp_path, machine, (7, 0.5, [0, 1, 6], [24, 26]))
    return tmp_path


def test_the_files_say_what_was_written(state: Path) -> None:
    """Counters, jobs and links are those of the files; half the calls took less than 512 ns, all but one less than 1 µs."""
    found = plugin_state.read(state)
    assert found.problems == () and found.counters and found.jobs and found.links
    counters, jobs = found.counters, found.jobs
    assert (counters["calls"], counters["placed"], counters.stock, counters.active) == (100, 40, 10, True)
    assert [counters.quantile(share) for share in (0.5, 0.99, 0.999)] == [512, 1024, 9 * 10**8]
    assert (jobs.nodes, jobs.why, jobs.assumed) == (24, None, ("one cable between each pair of switches",))
    assert (jobs.unnamed, jobs.such_as) == (2, "extra1")
    assert jobs.conf == PluginConf((PolicyRule(3, "dedicated", 0.5, frozenset({"a", "b"})),), 0.0005)
    rule = "topolane.conf line 1"
    assert jobs.running[7] == Decided("dedicated", rule, "isolated", share=0.5)
    refused = Refused("would-share-links", 5, 1700000000.0)
    assert jobs.waiting[9] == Decided("isolated", rule, offered=(8, 9, 10, 11, 20), refused=refused)
    assert jobs.waiting[10].offered == () and set(jobs.running) == {7, 8} and set(jobs.waiting) == {9, 10}
    read = plugin_machine.machine_of(jobs)
    machine, its_sum = read.machine, read.sum
    own = plugin_state.owned_by(found.links, machine, its_sum)
    assert (own[7].nodes, own[7].links, own[7].bandwidth_share) == (frozenset({0, 1, 6}), (24, 26), 0.5)
    with pytest.raises(InputError, match="another machine file"):
        plugin_state.owned_by(found.links, machine, its_sum + 1)


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        (COUNTERS, "placed 40", "placed -40", "topolane_counters line 5: '-40' is not a whole number"),
        (COUNTERS, "placed 40", "placed 40 1", "line 5: 'placed 40 1' is not a name and a number"),
        (COUNTERS, "calls 100", "", "the counter `calls` is missing"),
        (JOBS, "topolane-jobs 2", "topolane-jobs 3", "line 1: 'topolane-jobs 3 "),
        (JOBS, "unnamed 2 extra1", "unnamed 2", "'2' is not a number of nodes and one of them"),
        (JOBS, "unnamed 2", "unnamed two", "'two' is not a whole number"),
        (JOBS, "call-time 5", "call-time -5", "line 8: '-500000' is not a whole number"),
        (
            JOBS,
            "rule 3 dedicated 0.5",
            "rule 3 dedicated 2",
            "line 9: share is 2.0, which is no number over 0",
        ),
        (
            JOBS,
            " dedicated 0.5 Partition=a,B",
            "",
            "line 9: 'rule 3' is not `rule LINE POLICY SHARE KEY=NAMES`",
        ),
        (JOBS, " 24\n", " 99999999999\n", "is not a whole number up to 16777216"),
        (LINKS, " 24 26", " 24 27", "its checksum does not fit, so the file is not whole"),
        (LINKS, "sum ", "sun ", "its checksum does not fit"),
    ],
)
def test_a_garbled_file_costs_one_sentence(state: Path, name: str, old: str, new: str, says: str) -> None:
    """The sentence names file, line and value; the other files are read all the same."""
    path = state / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    found = plugin_state.read(state)
    assert len(found.problems) == 1 and says in found.problems[0], found.problems
    assert found.problems[0].isprintable() and len(found.problems[0]) < 1100
    read = {COUNTERS: found.counters, JOBS: found.jobs, LINKS: found.links}
    assert read.pop(name) is None and None not in read.values()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "would-share-links",
            "does-not-like-it",
            "line 6 (kind is does-not-like-it, which is none of not-now",
        ),
        ("8-11,20", "8-11,10", "line 6 ('10' is not ascending numbers of the 24 nodes)"),
        ("8-11,20", "8-24", "'8-24' is not ascending numbers of the 24 nodes"),
        ("8-11,20", "0-99999999999", "is not ascending numbers"),
        ('"share": 0.5', '"share": NaN', "line 4 (NaN is no number that JSON has)"),
        ('"share": 0.5', '"share": 2', "line 4 (share is 2, which is no number over 0 and up to 1)"),
        ('"job": 7', '"job": -7', "line 4 (job is -7, which is no whole number from 0 to "),
        ("dedicated", "\\u001b[31m", "line 4 (policy is '\\\\x1b[31m', which is no name"),
        ("{", "[", "line 4: '[\"job\":' is not a record"),
    ],
)
def test_a_garbled_record_costs_its_own_job(state: Path, old: str, new: str, says: str) -> None:
    """The sentence names file, line and value; the other jobs are read all the same."""
    path = state / JOBS
    text = path.read_text()
    path.write_text(text.replace(old, new, 1))
    found = plugin_state.read(state)
    assert len(found.problems) == 1 and says in found.problems[0], found.problems
    assert found.problems[0].isprintable() and len(found.problems[0]) < 1100
    assert (found.jobs is None) == (new == "[")
    if found.jobs is not None:
        assert len(found.jobs.running | found.jobs.waiting) == 3


def test_a_file_of_an_earlier_release_is_read(state: Path) -> None:
    """Its lines have the same facts but the rule, in words without names."""
    path = state / JOBS
    before = plugin_state.parse_jobs(path.read_text(), "jobs")
    lines = path.read_text().splitlines()[1:3]
    lines += ["running 7 dedicated isolated 0.5", "running 8 stock shared 1"]
    lines += [
        "waiting 9 isolated 1 1700000000 would-share-links 5 8-11,20",
        "waiting 10 stock 1 0 no-area 3 -",
    ]
    text = "\n".join(
        [f"topolane-jobs 1 {int(before.time)}", *lines, "waiting 11 isolated", "running 12 x y z"]
    )
    found = plugin_state.parse_jobs(text, "jobs")
    for jobs, as_before in ((found.running, before.running), (found.waiting, before.waiting)):
        assert jobs == {job: dataclasses.replace(said, rule=None) for job, said in as_before.items()}
    (problem,) = found.problems
    assert "line 8 (share is None" in problem and "line 9 (share is 'z'" in problem


def test_no_change_of_a_file_is_more_than_a_sentence(state: Path) -> None:
    """Cut anywhere, with bytes changed, or replaced by noise: either the file is read or a sentence says why not."""
    draw = random.Random(21)
    for name in (COUNTERS, JOBS, LINKS):
        path = state / name
        whole = path.read_bytes()
        for _ in range(300):
            changed = bytearray(whole[: draw.randrange(len(whole))] if draw.random() < 0.3 else whole)
            for _ in range(draw.randrange(1, 4)):
                if changed:
                    changed[draw.randrange(len(changed))] = draw.randrange(256)
            path.write_bytes(changed)
            assert all(sentence.isprintable() for sentence in plugin_state.read(state).problems)
        path.write_bytes(whole)


def test_absent_unreadable_and_endless_files_are_said(state: Path) -> None:
    """A missing file of links is no problem, because most policies write none; a missing file of counters is one."""
    (state / LINKS).unlink()
    (state / COUNTERS).unlink()
    (state / JOBS).unlink()
    found = plugin_state.read(state)
    assert [sentence.partition(":")[0] for sentence in found.problems] == [
        f"{state / name} does not exist" for name in (COUNTERS, JOBS)
    ]
    (state / COUNTERS).symlink_to("/dev/zero")
    (state / JOBS).write_bytes(b"topolane-jobs 2 1\n" + b"why x\n" * (plugin_state.MOST_JOBS // 6))
    problems = plugin_state.read(state).problems
    assert "a device" in problems[0] and "more than 64 MiB" in problems[1]


def test_a_large_cluster_is_read(state: Path) -> None:
    """512 refused jobs, each with every second of 12,000 nodes, and a thousand jobs that hold nodes."""
    offered = ",".join(map(str, range(0, 12000, 2)))
    waits = [waiting(job, "isolated", "not-now", 9, offered) for job in range(1001, 1513)]
    write_jobs(state, "machine x 12000", *(running(job, "stock", "shared") for job in range(1, 1001)), *waits)
    jobs = plugin_state.read_jobs(state)
    assert (len(jobs.running), len(jobs.waiting), jobs.problems) == (1000, 512, ())
    assert len(jobs.waiting[1512].offered) == 6000


@pytest.mark.skipif(shutil.which("setpriv") is None or os.geteuid() != 0, reason="needs root and setpriv")
def test_a_user_who_may_not_read_the_state_learns_who_may(state: Path) -> None:
    """The plugin writes for slurmctld's user and root alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for path in (state / name for name in (COUNTERS, JOBS, LINKS)):
            shutil.copy(path, folder)
            (Path(folder) / path.name).chmod(0o600)
        done = read_as_another(folder)
    if done.returncode:
        pytest.skip(f"another user cannot run this Python: {done.stderr.strip().splitlines()[-1]}")
    assert done.stdout.count("only root and the user of slurmctld may read it") == 3, done.stdout


def read_as_another(folder: str) -> subprocess.CompletedProcess[str]:
    """What another user than root reads about the files there."""
    program = "import sys; from topolane.slurm import plugin_state; print(*plugin_state.read(sys.argv[1]).problems, sep='\\n')"
    words = ["setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-c", program, folder]
    return subprocess.run(words, capture_output=True, text=True)


def command(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    asked = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm", *map(str, words)]
    return subprocess.run(
        asked, capture_output=True, text=True, env=os.environ | environment, timeout=DEADLINE
    )


def test_without_slurm_the_state_is_still_shown(state: Path, tmp_path: Path) -> None:
    """Exit code 1 if nothing shows that the plugin is active, 2 for bad input, one sentence each."""
    nothing = {"PATH": str(tmp_path / "no-commands"), "SLURM_CONF": str(state / "slurm.conf")}
    done = command("status", "--state", state, **nothing)
    assert done.returncode == 1 and "slurmctld does not answer" in done.stdout, done
    assert "calls: 100; placed by a policy 40.0 %, refused 50.0 %" in done.stdout
    assert (
        "stock decided 10.0 %: 7.0 % the job's rule is stock; 3.0 % the engine took too long" in done.stdout
    )
    assert "median under 512 ns, 99 % under 1.02 µs, longest 900 ms" in done.stdout
    found = json.loads(command("status", "--state", state, "--json", **nothing).stdout)
    assert found["liveness"]["active"] is None and found["calls"]["ends"]["placed"] == 40
    (state / "slurm.conf").write_text(f"ClusterName=x\nStateSaveLocation={state}\n")
    assert "calls: 100;" in command("status", **nothing).stdout, "slurm.conf says where the state is"
    for words, says in (
        (("explain", "7", "--state", state), "scontrol show config cannot be run"),
        (
            ("status", "--state", state, "--svg", tmp_path / "x" / "y.svg", "--slurmrestd", "ftp://x"),
            "ftp://x",
        ),
        (("metrics",), "give one of --listen and --once"),
        (("metrics", "--listen", "0.0.0.0:9753"), "must be HOST:PORT on a loopback address"),
        (("metrics", "--listen", "example.org:9753"), "must be HOST:PORT on a loopback address"),
        (("metrics", "--listen", "unix:"), "or unix:PATH"),
    ):
        done = command(*words, **nothing)
        assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1, done
    result = command("metrics", "--once", "--state", state, **nothing)
    assert result.returncode == 0 and "topolane_slurm_up 0.0" in result.stdout
    assert "topolane_slurm_active" not in result.stdout, "that is not known"


def look_at(state: Path, **changes: Any) -> SlurmInspection:
    """A look at the files, and at a Slurm without jobs."""
    found = plugin_state.read(state)
    assert found.jobs
    read = plugin_machine.machine_of(found.jobs)
    machine, its_sum = read.machine, read.sum
    own = plugin_state.owned_by(found.links, machine, its_sum)
    now = time.time()
    known = {"TopologyPlugin": "topology/topolane"}
    out = links_out.read(state, machine, its_sum)
    whole = SlurmInspection(now, known, Snapshot(now, {}, {}, {}, {}), found, machine, own, (), out)
    return dataclasses.replace(whole, **changes)


def test_liveness(state: Path) -> None:
    """Active; not with another plugin of Slurm, nor with `active 0`; not known for the files of a slurmctld that has ended."""
    assert status(look_at(state)).liveness.is_well
    other = status(look_at(state, configuration={"TopologyPlugin": "topology/tree"})).liveness
    assert other.active is False and "topology/tree, not topology/topolane" in (other.why or "")
    boot = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime())
    ended = status(
        look_at(state, configuration={"TopologyPlugin": "topology/topolane", "BOOT_TIME": boot})
    ).liveness
    assert ended.active is None and "has not asked the plugin for nodes yet" in (ended.why or "")
    write_counters(state, active=False, calls=1)
    write_jobs(state, "why topolane.conf line 3: there is no setting 'Polcy'")
    found = plugin_state.read(state)
    broken = status(look_at_broken(found)).liveness
    assert broken.active is False and "line 3: there is no setting 'Polcy'" in (broken.why or "")


def look_at_broken(found: plugin_state.PluginState) -> SlurmInspection:
    now = time.time()
    known = {"TopologyPlugin": "topology/topolane"}
    return SlurmInspection(now, known, Snapshot(now, {}, {}, {}, {}), found, None, {}, ())


def test_idle_nodes_are_counted_by_pod_and_leaf() -> None:
    machine = Machine.parse(MACHINE, "machine.toml")
    assert where(machine, [0, 1, 8, 20]) == "pod0 3 (leaf0 2, leaf1 1), pod1 1 (leaf3 1)"
    assert where(machine, []) == ""


def test_the_metrics_are_those_of_the_page(state: Path) -> None:
    """What a look at the plugin's files exports has the name, the type and the labels that the reference page says."""
    pytest.importorskip("prometheus_client", reason="needs the extra slurm: prometheus-client")
    from metrics_page import exported
    from prometheus_client import generate_latest
    from topolane.slurm.metrics import registry

    found = exported("slurm", generate_latest(registry(lambda: look_at(state))).decode())
    assert len(found) > 12 and list(found)[:2] == ["topolane_slurm_up", "topolane_slurm_problems"]


def test_the_metrics_count_the_links_that_no_job_may_own(state: Path) -> None:
    """Failed and reserved links; none of them before the plugin knows of any."""
    pytest.importorskip("prometheus_client", reason="needs the extra slurm: prometheus-client")
    from prometheus_client import generate_latest
    from topolane.slurm.metrics import registry

    def counted() -> dict[str, float]:
        text = generate_latest(registry(lambda: look_at(state))).decode()
        found = re.findall(r'^topolane_slurm_links_out\{kind="(\w+)"\} (.*)$', text, re.MULTILINE)
        return {kind: float(count) for kind, count in found}

    assert counted() == {"failed": 0, "reserved": 0}
    look = look_at(state)
    assert look.state and look.state.links
    out = links_out.LinksOut(frozenset({24, 25, 26}), frozenset({26}))
    links_out.write(state, out, look.state.links.machine_sum)
    assert counted() == {"failed": 3, "reserved": 1}


def test_a_job_that_stock_slurm_placed_is_not_called_isolated(tmp_path: Path) -> None:
    """Its SystemComment says so, also while the plugin writes nothing of it; its rule says isolated."""
    placed = room_records.runs(3, "node[13-18]", 1, is_stock=True)
    look = room_records.look_at(tmp_path, placed, room_records.runs(4, "node[19-24]", 1))
    rows = {row.job: (row.policy, row.link_use) for row in status(look).running}
    assert rows == {"3": ("stock", "shared"), "4": ("isolated", "isolated")}
    assert "could not answer when it started" in " ".join(explain(look, "3").sentences)


RECENT = ("calls", "decided", "inactive", "failed", "slow", "unknown", "oversubscribed", "without_answer")


def recent(state: Path, **counts: int) -> None:
    """Counters of a plugin that was called 1,000 times without a fault before these last calls."""
    values = {f"recent_{name}": counts.get(name, 0) for name in RECENT}
    write_counters(state, calls=1000, placed=1000, **values)


@pytest.mark.parametrize(
    ("counts", "decides", "says"),
    [
        ({"calls": 16, "decided": 16}, True, ""),
        ({"calls": 0}, True, ""),
        ({"calls": 16, "decided": 15, "slow": 1}, True, "of the last 16 calls: 1 the engine took too long"),
        ({"calls": 16, "decided": 15, "failed": 1, "without_answer": 1}, False, "1 the engine failed"),
        ({"calls": 16, "failed": 16, "without_answer": 16}, False, "decided 0 of the last 16 calls"),
        ({"calls": 16, "decided": 8, "slow": 8}, False, "8 the engine took too long"),
        ({"calls": 16, "decided": 9, "slow": 7}, True, "7 the engine took too long"),
        ({"calls": 3, "inactive": 3, "without_answer": 3}, False, "3 the plugin was not active"),
        ({"calls": 16, "decided": 1, "unknown": 15}, True, "15 nodes that the machine file does not name"),
        ({"calls": 16, "unknown": 16}, False, "16 nodes that the machine file does not name"),
        ({"calls": 2, "oversubscribed": 2}, False, "2 the job may share cores"),
    ],
)
def test_the_first_line_follows_the_last_calls(
    state: Path, counts: dict[str, int], decides: bool, says: str
) -> None:
    """A plugin that is active and whose engine answered neither the last call nor most of the last ones, or decided none of them,
    does not decide, whatever it did in the 1,000 calls before: first line, reason and exit code say so."""
    pytest.importorskip("rich")
    from topolane.cli.slurm_status import _decisions, _health

    recent(state, **counts)
    found = status(look_at(state))
    assert found.calls and (found.liveness.decides, found.liveness.is_well) == (decides, decides)
    lines = [*_health(found.liveness, found.time), *_decisions(found.calls)]
    head = (
        "topology/topolane: active, loaded"
        if decides
        else "topology/topolane: active, but the engine does not decide"
    )
    assert lines[0].startswith(head) and says in "\n".join(lines), lines
    assert (found.liveness.why is None) == decides


def test_counters_of_an_earlier_release_count_since_the_start(state: Path) -> None:
    """They do not say what the last calls did: the engine decides if it decided most calls since slurmctld started."""
    assert status(look_at(state)).liveness.decides, "3 of 93 were too slow"
    write_counters(state, calls=436, stock_inactive=436)
    found = status(look_at(state))
    assert found.liveness.active and not found.liveness.is_well
    assert "decided 0 of the last 436 calls that it should decide: 436 the plugin was not active" in (
        found.liveness.why or ""
    )
    write_counters(state, calls=50, stock=50)
    assert status(look_at(state)).liveness.is_well, "the rule of all jobs is stock"


def test_a_backup_controller_compares_its_files(state: Path) -> None:
    """On a host of slurmctld, each file that differs from the one in use is named: on a backup so that it is copied, on the host in
    control so that slurmctld reads it. Other hosts, such as login nodes, need no such files. Old state files say nothing."""
    engine, plugin = state / "libtopolane.so", state / "topolane" / "24.11.5.so"
    conf, machine = state / "topolane.conf", state / "machine.toml"
    conf.write_text(f"Engine={engine}\nMachine=machine.toml\n")
    engine.write_bytes(b"the engine")
    (state / "topology_topolane.so").touch()
    plugin.parent.mkdir()
    plugin.write_bytes(b"the plugin")
    sums = {"conf": conf, "engine": engine, "plugin": plugin}
    lines = [f"{name}-checksum {zlib.crc32(path.read_bytes()):08x}" for name, path in sums.items()]
    own = f"machine-sum {plugin_state.sum_of(machine.read_bytes()):016x}"
    known = {
        "SLURM_VERSION": "24.11.5",
        "TopologyPlugin": "topology/topolane",
        "SLURM_CONF": str(state / "slurm.conf"),
        "PluginDir": f"/no:{state}",
    }
    known |= {"SlurmctldHost[1]": "two(10.0.0.2)", "SlurmctldHost[0]": "one.example.org"}

    def found(here: str, *given: str) -> list[str]:
        write_jobs(state, "machine machine.toml 24", *given)
        look = look_at_broken(plugin_state.read(state))
        look = dataclasses.replace(look, configuration=known)
        assert controllers.backups(look) == ["two"]
        assert controllers.hosts(known) == ["one.example.org", "two"]
        return controllers.differences(look, here)

    lines += [own, "host one", "call-time 2000000", f"engine {engine}"]
    assert found("two", *lines) == found("one", *lines) == []
    for path in (conf, engine, plugin, machine):
        before = path.read_bytes()
        path.write_bytes(before + b"\n# other")
        says = f"{path} differs from the file that slurmctld on one uses: copy that one to this host, two."
        assert found("two.example.org", *lines) == [says]
        assert found("one", *lines) == [
            f"{path} has changed since slurmctld read it: run `scontrol reconfigure`."
        ]
        assert found("login", *lines) == found("two", own) == []
        path.write_bytes(before)
    engine.unlink()
    assert found("two", *lines) == [
        f"{engine} does not exist or cannot be read: slurmctld on one uses such a file."
    ]
