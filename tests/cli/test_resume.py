"""A sweep that is interrupted goes on: what was kept is not done again, and the answer is the same to the last digit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import until

SCRIPT = Path(sys.executable).parent / "topolane"

MANY = (
    *("compare", "--workload", "cab-aug", "--limit", 200, "--policies", "first-fit,isolated"),
    *("--scenarios", "none", "--loads", "0.9,1.1", "--seeds", 15, "--json"),
)


@pytest.fixture
def few(toy, log):
    return ("compare", "--machine", toy, "--trace", log, "--policies", "first-fit,isolated", "--json")


def lines(topolane, folder="kept"):
    path = topolane.directory / folder / "runs.jsonl"
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def killed_at(topolane, count, arguments):
    """Kills the command with SIGKILL once `count` runs are kept; returns the lines that are whole then."""
    running = subprocess.Popen(
        [SCRIPT, *map(str, arguments)], cwd=topolane.directory, stdout=subprocess.DEVNULL
    )
    until(lambda: len(lines(topolane)) >= count or running.poll() is not None, f"{count} runs are kept")
    running.kill()
    assert running.wait() == -9, "it ended before it was killed"
    return [line for line in lines(topolane) if line.endswith(b"\n")]


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_and_resumed(topolane, workers):
    """A command that SIGKILL ends goes on when it is given again: lines that were there stay as they are."""
    command = (*MANY, "--jobs", workers, "--resume", "kept")
    before = killed_at(topolane, 5, command)
    assert 5 <= len(before) < 60
    done = topolane.run(*command)
    assert (done.returncode, done.stdout) == (0, topolane(*MANY, "--jobs", 1))
    assert f"{len(before)} runs kept from before" in done.stderr
    after = lines(topolane)
    assert after[: len(before)] == before
    assert len(after) == len({json.loads(line)["key"] for line in after}) == 60


def test_shards_at_once_do_each_run_once(topolane):
    """All shards of a job array run at the same time on one folder. The whole command then does no run, and prints what it prints
    without shards. One shard is killed, and given again."""
    many = (*MANY[: MANY.index("--seeds")], "--seeds", 3, "--json")
    command = (*many, "--jobs", 1, "--resume", "kept")
    kept = topolane.directory / "kept"
    of = [kept / f"runs-{number}-of-3.jsonl" for number in (1, 2, 3)]

    def started(number):
        shard = (*command, "--shard", f"{number}/3")
        return subprocess.Popen([SCRIPT, *map(str, shard)], cwd=topolane.directory, stdout=subprocess.PIPE)

    running = [started(number) for number in (1, 2, 3)]
    until(lambda: of[2].exists() and of[2].stat().st_size, "the third shard keeps a run")
    running[2].kill()
    running[2].communicate()
    said = [json.loads(one.communicate()[0]) for one in [*running[:2], started(3)]]
    assert [row["runs"] for row in said] == [4, 4, 4]
    keys = [json.loads(line)["key"] for file in of for line in file.read_bytes().splitlines()]
    assert len(keys) == len(set(keys)) == 12
    whole = topolane.run(*command)
    assert "12 runs kept from before" in whole.stderr
    assert whole.stdout == topolane(*many, "--jobs", 1)
    assert lines(topolane) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--shard", "4/3", "--resume", "kept", "--seeds", 2), "'4/3' is not K/N, with K from 1 to N"),
        (
            ("--shard", "1/3", "--seeds", 2),
            "--shard is for many runs: it needs --resume, and --seeds or --loads",
        ),
        (("--shard", "1/3", "--resume", "kept"), "--shard is for many runs"),
        (("--shard", "1/3", "--resume", "kept", "--seeds", 2, "--out", "out"), "--out is for all runs"),
    ],
)
def test_a_shard_that_cannot_be_is_refused(topolane, few, options, sentence):
    refused = topolane.run(*few, *options)
    assert (refused.returncode, sentence in refused.stderr) == (2, True), refused.stderr
    assert not (topolane.directory / "kept").exists()


def test_runs_keep_their_tables(topolane, few):
    """Without seeds and loads the tables are kept as well: the files of a comparison are the same."""
    topolane(*few, "--out", "fresh", "--no-report", "--jobs", 1)
    topolane(*few, "--resume", "kept", "--jobs", 1)
    done = topolane.run(*few, "--resume", "kept", "--out", "resumed", "--no-report")
    assert "3 runs kept from before" in done.stderr
    fresh, resumed = (
        {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        for place in (topolane.directory / "fresh", topolane.directory / "resumed")
    )
    assert len(fresh) == 7
    assert resumed == fresh


def test_more_runs_take_what_is_there(topolane, few):
    """Runs of the same settings are taken from a narrower sweep."""
    topolane(*few, "--seeds", 2, "--resume", "kept", "--jobs", 1)
    done = topolane.run(*few, "--seeds", 3, "--resume", "kept", "--jobs", 1)
    assert "6 runs kept from before" in done.stderr
    assert done.stdout == topolane(*few, "--seeds", 3, "--jobs", 1)
    assert len(lines(topolane)) == 9


@pytest.mark.parametrize("name", ["log.csv", "toy.toml"])
def test_a_run_with_a_changed_input_is_repeated(topolane, few, name):
    """Runs of a file that has changed are not used, and one sentence says so."""
    topolane(*few, "--resume", "kept", "--jobs", 1)
    path = topolane.directory / name
    path.write_text(path.read_text().replace("600,", "601,").replace("[4, 2, 2]", "[8, 2, 2]") + "\n")
    done = topolane.run(*few, "--resume", "kept", "--jobs", 1)
    assert done.stdout == topolane(*few, "--jobs", 1)
    assert "0 runs kept from before; 3 others there not used" in done.stderr
    assert len(done.stderr.splitlines()) == 1


POLICY = """
import numpy, topolane
import parts.order
class Mine(topolane.Policy):
    name = "mine"
    def choose(self, request, state):
        from parts import amounts
        return numpy.flatnonzero(state.free)[: request.nodes + amounts.MORE]
"""


@pytest.mark.parametrize(
    "name", ["parts/__init__.py", "parts/order.py", "parts/amounts.py", "parts/deeper.py"]
)
def test_what_a_policy_in_python_imports_is_an_input(topolane, few, write, name):
    """Runs of a policy are repeated if a module has changed that its module imports: by its own import statements, in a function or
    through another module, relative or not."""
    (topolane.directory / "parts").mkdir()
    for file in ("__init__", "amounts", "deeper"):
        write(f"parts/{file}.py", "MORE = 0\n")
    write("parts/order.py", "from . import deeper\n")
    write("parts/unused.py", "")
    write("mine.py", POLICY)
    words = (*few, "--policies", "mine:Mine", "--resume", "kept", "--jobs", 1)
    topolane(*words)
    write("parts/unused.py", "MORE = 1\n")
    again = topolane.run(*words)
    assert "1 run kept from before\n" in again.stderr
    write(name, "from . import deeper\nMORE = 0\nLESS = 0\n")
    again = topolane.run(*words)
    assert "0 runs kept from before; 1 other there not used" in again.stderr


LAZY = """
import topolane
class Mine(topolane.Policy):
    name = "mine"
    def choose(self, request, state):
        return [node for node, free in enumerate(state.free) if free][: request.nodes]
    def elsewhere(self):
        from parts import order
"""


@pytest.mark.parametrize("says", ["raise RuntimeError('no licence')", "raise SystemExit(3)"])
def test_what_a_policy_in_python_imports_is_not_run(topolane, few, write, says):
    """Modules that a policy imports only in a function are read and not run: they may not work on this machine."""
    (topolane.directory / "parts").mkdir()
    write("parts/__init__.py", says)
    write("parts/order.py", "")
    write("mine.py", LAZY)
    words = (*few, "--policies", "mine:Mine", "--resume", "kept", "--jobs", 1)
    topolane(*words)
    write("parts/order.py", "LESS = 0\n")
    assert "0 runs kept from before; 1 other there not used" in topolane.run(*words).stderr


def test_runs_of_another_build_are_repeated(topolane, few):
    """Runs of another build of Topolane are not used."""
    topolane(*few, "--resume", "kept", "--jobs", 1)
    code = (
        "import sys; from topolane.sweep import kept; kept.build = lambda: 'another'; "
        "from topolane.cli import main; main()"
    )
    done = subprocess.run(
        [SCRIPT.parent / "python", "-c", code, *map(str, few), "--resume", "kept", "--jobs", "1"],
        cwd=topolane.directory,
        capture_output=True,
        text=True,
    )
    assert "0 runs kept from before; 3 others there not used" in done.stderr


def test_the_run_of_a_cut_line_is_repeated(topolane, few):
    """The end of a file that a command was killed while writing is cut off, and that run is repeated."""
    topolane(*few, "--resume", "kept", "--jobs", 1)
    path = topolane.directory / "kept/runs.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    done = topolane.run(*few, "--resume", "kept", "--jobs", 1)
    assert (done.stdout, path.read_bytes()) == (topolane(*few, "--jobs", 1), whole)


def test_a_damaged_folder(topolane, few):
    """A number that has changed, a table that has, or what is no such folder: one sentence, exit code 2."""
    topolane(*few, "--resume", "kept", "--jobs", 1)
    path = topolane.directory / "kept/runs.jsonl"
    whole = path.read_text()
    first, rest = whole.split("\n", 1)
    for damaged in (first.replace('"jobs": 40', '"jobs": 41'), first[:-1], "[]", "7", "[" * 100_000):
        path.write_text(f"{damaged}\n{rest}")
        topolane.refused(*few, "--resume", "kept", says="kept/runs.jsonl:1: damaged")
    path.write_text(whole)
    table = next((topolane.directory / "kept/tables").iterdir())
    content = table.read_bytes()
    table.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    topolane.refused(*few, "--resume", "kept", says=(table.name, "damaged"))
    table.unlink()
    topolane.refused(*few, "--resume", "kept", says=table.name)
    (topolane.directory / "other").mkdir()
    (topolane.directory / "other/mine").write_text("")
    topolane.refused(*few, "--resume", "other", says="a folder with other files")
    topolane.refused(*few, "--resume", "log.csv", says="--resume log.csv: ")
    topolane.refused(*few, "--resume", "new", "--queue", "nope", says='unknown queue "nope"')


def test_two_commands_at_once(topolane, few):
    """A folder is of one command at a time."""
    running = subprocess.Popen(
        [SCRIPT, *map(str, MANY), "--jobs", "1", "--resume", "kept"],
        cwd=topolane.directory,
        stdout=subprocess.DEVNULL,
    )
    try:
        until(lambda: lines(topolane), "the first run is kept")
        os.kill(running.pid, 19)
        done = topolane.run(*few, "--resume", "kept")
        assert (done.returncode, done.stderr) == (2, "topolane: --resume kept: another command uses it\n")
    finally:
        running.kill()
        running.wait()
