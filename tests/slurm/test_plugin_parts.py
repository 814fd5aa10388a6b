"""The parts of the plugin that know nothing of Slurm, and what commands know of topolane.conf by what the plugin publishes."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from plugin_files import write_counters
from room_records import FULL, a_job, look_at, waits
from topolane import InputError
from topolane.slurm import plugin_build, plugin_state
from topolane.slurm.plugin_conf import PluginConf, PolicyRule
from topolane.slurm.plugin_install import POLICIES
from topolane.slurm.plugin_state import PluginJobs
from topolane.slurm.room_plan import make_plan
from waiting import DEADLINE

HERE = Path(__file__).parent
PARTS = (
    "config",
    "option",
    "policies",
    "waiting",
    "record",
    "links_file",
    "links_out",
    "whole_file",
    "holders",
    "engine",
)


PUBLISHING = ("publish", "record", "waiting", "links_out", "links_file", "whole_file")


def compiled(name: str, parts: Sequence[str], directory: Path) -> Path:
    """A program of the tests with parts of the plugin, under the address and undefined-behaviour sanitizers, leaks included."""
    sources = [HERE / f"{name}.c", *(plugin_build.SOURCES / f"{part}.c" for part in parts)]
    words = ["cc", "-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-I", plugin_build.SOURCES]
    words += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    program = directory / name
    subprocess.run([*words, *sources, "-ldl", "-o", program], check=True)
    return program


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("plugin_parts", PARTS, tmp_path_factory.mktemp("parts"))


def test_the_parts_without_slurm(parts: Path, engine: Path, tmp_path: Path) -> None:
    """The rules of topolane.conf, the files of links cut short and changed anywhere, and the jobs in the engine's state against a new
    state."""
    done = subprocess.run([parts, engine, tmp_path / "links", tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    cases = json.loads((HERE.parent / "cluster" / "record_cases.json").read_text())
    texts = [case["text"] for case in cases if case["host"] == "slurm"]
    assert (tmp_path / "records").read_text().splitlines() == texts


def test_publishing_ends_while_its_thread_waits_or_looks(tmp_path: Path) -> None:
    """A caller that has the locks for which the thread waits never waits for it. The thread then looks at nothing, frees the locks,
    and another one publishes. What a look uses is there until the look has ended."""
    program = compiled("publish_parts", PUBLISHING, tmp_path)
    done = subprocess.run([program, tmp_path], capture_output=True, text=True, timeout=DEADLINE)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    assert (tmp_path / plugin_state.COUNTERS).read_text().startswith("active 1\n")


def published(parts: Path, directory: Path, text: bytes) -> tuple[PluginJobs, PluginConf]:
    """What commands know of a topolane.conf with this text."""
    done = subprocess.run([parts], input=text, capture_output=True, check=True)
    (directory / plugin_state.JOBS).write_bytes(b"topolane-jobs 1 0\n" + done.stdout)
    jobs = plugin_state.read(directory).jobs
    assert jobs is not None and jobs.conf is not None
    return jobs, jobs.conf


def test_commands_know_what_the_plugin_read(parts: Path, tmp_path: Path) -> None:
    """Blanks, comments, ends of lines and keys are read as the plugin reads them, because no other program reads the file. The first
    line that fits partition, QOS and account gives the policy."""
    jobs, conf = published(
        *(parts, tmp_path),
        b"# Policy=isolated\nEngine=/x CallTime=500 # short\nOutside=share\tMachine=m,n\r\n"
        b"Partition=a,B QOS=high Policy=jigsaw\nAccount=Chem policy=dedicated MinBandwidth=0.123456789\n"
        b"partition=b Policy=isolated WithoutEngine=wait\nPartition=\xff Policy=stock\nPartition=, Policy=isolated",
    )
    assert jobs.why is None
    assert (conf.call_time, conf.engine) == (0.0005, Path("/x"))
    assert conf.rules == (
        PolicyRule(4, "jigsaw", 1.0, frozenset({"a", "b"}), frozenset({"high"})),
        PolicyRule(5, "dedicated", 0.123456789, accounts=frozenset({"chem"})),
        PolicyRule(6, "isolated", 1.0, frozenset({"b"})),
        PolicyRule(7, "stock", 1.0, frozenset({"\ufffd"})),
        PolicyRule(8, "isolated", 1.0, frozenset({""})),
    )
    for partitions, qos, account, found, share in (
        (("a",), "HIGH", "", ("jigsaw", 4), 1.0),
        (("b",), "low", "chem", ("dedicated", 5), 0.123456789),
        (("b",), "low", "", ("isolated", 6), 1.0),
        (("a",), "low", "", ("stock", 0), 1.0),
        (("a", "b"), "low", "", None, 1.0),
    ):
        job = a_job(1, partitions=partitions, qos=qos, account=account)
        assert (conf.policy(job), conf.min_bandwidth(job)) == (found, share)


NO_BEST = f"there is no policy 'best'; there are {', '.join(POLICIES)}"
NO_SHARE = "not a number from 0.01 to 1"
BAD = {
    "": "1: Engine, the path of libtopolane.so, is missing",
    "Engine": "1: 'Engine' is not of the form Key=Value",
    "Engine=": "1: Engine has no value",
    "Engine=/e\nEngine=/f": "2: Engine is given twice",
    "Engine=/e Stock=torus": "1: Stock is 'torus', not tree or block",
    "Engine=/e CallTime=soon": "1: CallTime is 'soon', not a number from 1 to 1e+06",
    "Engine=/e CallTime=nan": "1: CallTime is 'nan', not a number from 1 to 1e+06",
    "Engine=/e Outside=maybe": "1: Outside is 'maybe', not apart or share",
    "Engine=/e WithoutEngine=maybe": "1: WithoutEngine is 'maybe', not stock or wait",
    "Engine=/e JobsMay=isolated,best": f"1: JobsMay: {NO_BEST}; min-bandwidth and share-links may stand there too",
    "Engine=/e\n\n\nColour=red": "4: there is no setting 'Colour'",
    "Engine=/e\nPartition=a": "2: the line has no Policy",
    "Engine=/e\nPolicy=best": f"2: {NO_BEST}",
    "Engine=/e\nPolicy=mine:Policy": "2: mine:Policy is a policy in Python, and nothing runs Python inside slurmctld",
    "Engine=/e\nPolicy=isolated Policy=isolated": "2: Policy is given twice",
    "Engine=/e\nPolicy=isolated Partition=": "2: Partition has no value",
    "Engine=/e\nPolicy=isolated WithoutEngine=wait WithoutEngine=wait": "2: WithoutEngine is given twice",
    "Engine=/e\nPolicy=hop-bytes WithoutEngine=wait": "2: WithoutEngine is for policies that isolate, not for hop-bytes",
    "Engine=/e\nPolicy=isolated MinBandwidth=0.5": "2: MinBandwidth is for the policy dedicated, not for isolated",
    "Engine=/e\nPolicy=dedicated MinBandwidth=2": f"2: MinBandwidth is '2', {NO_SHARE}",
    "Engine=/e\nPolicy=dedicated MinBandwidth=half": f"2: MinBandwidth is 'half', {NO_SHARE}",
    "Engine=/e\nPolicy=dedicated MinBandwidth=1e-320": f"2: MinBandwidth is '1e-320', {NO_SHARE}",
}


@pytest.mark.parametrize(("text", "says"), BAD.items())
def test_a_wrong_line_is_said_as_the_plugin_says_it(
    parts: Path, tmp_path: Path, text: str, says: str
) -> None:
    """The sentence names file, line and value, and no plan is made: an InputError, which is exit code 2. The wrong line gives no job a
    policy; the others do, because the plugin lets jobs wait by them."""
    look, good = look_at(tmp_path, *FULL, waits(9, 6)), "\nPartition=other Policy=isolated\n"
    write_counters(tmp_path, active=False, calls=1)
    jobs, conf = published(parts, tmp_path, f"{text}{good}".encode())
    assert jobs.why == f"topolane.conf line {says}"
    assert [rule.policy for rule in conf.rules] == ["isolated"]
    look = dataclasses.replace(look, state=plugin_state.read(tmp_path))
    with pytest.raises(InputError) as refused:
        make_plan(look, "9")
    assert str(refused.value).endswith(f"is not active: Stock Slurm decides everything: {jobs.why}")


def test_a_zero_byte_does_not_end_the_rules_unseen(parts: Path, tmp_path: Path) -> None:
    jobs, _ = published(
        parts, tmp_path, b"Engine=/e\nPartition=a\0 Policy=isolated\nPartition=b Policy=isolated\n"
    )
    assert jobs.why == "topolane.conf line 2: the line has no Policy"
    jobs, _ = published(parts, tmp_path, b"Engine=/e\nPolicy=hop-bytes\0\nPolicy=isolated\n")
    assert jobs.why == "topolane.conf line 2: a zero byte ends the text"
