"""`topolane gang`: the daemon and those who talk to it, as a user runs them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gang_processes import CORES, computes, lives
from waiting import DEADLINE, until

MAIN = [sys.executable, "-c", "from topolane.cli import main; main()", "gang"]
CORE_LIST = ",".join(map(str, CORES))


def gang(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Runs `topolane gang` with these words."""
    return subprocess.run([*MAIN, *words], capture_output=True, text=True, timeout=DEADLINE, **more)


def run(tmp_path: Path, *words: str) -> list[str]:
    """The words of an agent with a socket of its own."""
    return ["run", "--cores", CORE_LIST, "--socket", str(tmp_path / "control"), *words]


@contextlib.contextmanager
def daemon(tmp_path: Path, *words: str) -> Iterator[tuple[str, ...]]:
    """An agent that runs; yields the option that names its socket."""
    with (tmp_path / "said").open("w") as said:
        agent = subprocess.Popen([*MAIN, *run(tmp_path, *words)], stdout=said, stderr=said)
    try:
        until(lambda: (tmp_path / "control").exists() or agent.poll() is not None, "the agent listens")
        assert agent.poll() is None, (tmp_path / "said").read_text()
        yield ("--socket", str(tmp_path / "control"))
    finally:
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(DEADLINE) is not None


def jobs(at: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """What `list --json` says, by name."""
    return {job["name"]: job for job in json.loads(gang("list", "--json", *at).stdout)["jobs"]}


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)])
def test_a_command_gives_its_exit_code_and_output(tmp_path: Path, script: str, code: int) -> None:
    done = gang(*run(tmp_path, "--", "sh", "-c", f"echo hello; {script}"))
    assert (done.returncode, done.stdout) == (code, "hello\n")
    assert "exit code" not in done.stderr, "the caller has it"
    assert not (tmp_path / "control").exists()


def test_a_file_of_jobs_runs_to_its_end_and_fails_if_one_fails(tmp_path: Path) -> None:
    """Standard error names each job that failed once, with its exit code as in a shell."""
    (tmp_path / "place").mkdir()
    text = """
    [[job]]
    name = "one"
    command = ["sh", "-c", 'echo "$WORD" > one; pwd > where']
    directory = "place"
    environment = { WORD = "said" }

    [[job]]
    name = "two"
    command = ["sh", "-c", "LATER"]
    threads = 2
    weight = 2.0

    [[job]]
    name = "three"
    command = ["sh", "-c", "LAST"]
    """
    four, killed = "job two failed: exit code 4", "job three was ended by signal 9: exit code 137"
    for later, last, code, failures in (
        ("exit 0", "exit 0", 0, set()),
        ("exit 4", "exit 0", 1, {four}),
        ("exit 4", "kill -9 $$", 1, {four, killed}),
    ):
        (tmp_path / "jobs.toml").write_text(text.replace("LATER", later).replace("LAST", last))
        done = gang(*run(tmp_path, str(tmp_path / "jobs.toml")))
        assert done.returncode == code, done.stderr
        said = [line.removeprefix("topolane: ") for line in done.stderr.splitlines() if "exit code" in line]
        assert (len(said), set(said)) == (len(failures), failures)
    assert (tmp_path / "place/one").read_text() == "said\n"


GOOD = '[[job]]\nname = "one"\ncommand = ["true"]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no job: give tables [[job]] with name and command"),
        ('[[job]]\nname = "one"\n', ":1: command is missing"),
        (GOOD + "threads = 0\n", ":4: threads must be a number from 1 to 1048576, not 0"),
        (GOOD + "weight = -1\n", ":4: weight must be a number from 0.001 to 1000, not -1"),
        (GOOD + "weight = nan\n", ":4: weight must be a number from 0.001 to 1000, not nan"),
        (GOOD + GOOD, ":5: name 'one' is the name of another job already"),
        (GOOD + "cores = 3\n", ":4: cores is not known here; there are name, "),
        (GOOD + 'directory = "nowhere"\n', "nowhere' is no directory"),
        (GOOD + "environment = { A = 1 }\n", ":4: environment must be a table of texts, not {'A': 1}"),
        (GOOD.replace('"true"', ""), ":3: command must not be empty"),
        ("[[job]\n", "jobs.toml: "),
    ],
)
def test_a_bad_file_of_jobs_is_refused_by_file_line_and_value(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "jobs.toml").write_text(text)
    done = gang(*run(tmp_path, str(tmp_path / "jobs.toml")))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"topolane: {tmp_path / 'jobs.toml'}")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--policy", "nice", "--", "true"], 'no gang policy is called "nice"; there are batch, free'),
        (["run", "--cores", "a", "--", "true"], "a is not a list of cores such as 0-3,8"),
        (["run", "--cores", "99999", "--", "true"], "99999 is not a core that this process may use"),
        (["run", "--slice", "0", "--", "true"], "0"),
        (["run", "file", "--", "true"], "give a FILE or a command after --, not both"),
        (["run", "--", "no-such-command"], "job no-such-command: no-such-command: no such command"),
        (["add"], "give one of: a command after --, --pid"),
        (["list"], "no agent listens there"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(tmp_path: Path, words: list[str], said: str) -> None:
    done = gang(words[0], "--socket", str(tmp_path / "control"), *words[1:])
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert said in done.stderr
    assert not (tmp_path / "control").exists()


def test_jobs_are_added_listed_shown_and_stopped(tmp_path: Path) -> None:
    """A command keeps the directory, environment and output of who added it; a process that is there is adopted."""
    alone = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with daemon(tmp_path, "--policy", "gang", "--slice", "0.02") as at:
            script = 'echo "$WORD in $(pwd)"; sleep 600'
            with (tmp_path / "out").open("w") as out:
                words = [
                    "add",
                    *at,
                    "--name",
                    "talks",
                    "--threads",
                    "1",
                    "--weight",
                    "2",
                    "--",
                    "sh",
                    "-c",
                    script,
                ]
                around = os.environ | {"WORD": "hello"}
                subprocess.run(
                    [*MAIN, *words], stdout=out, cwd=tmp_path, env=around, check=True, timeout=DEADLINE
                )
            until(lambda: f"hello in {tmp_path}\n" in (tmp_path / "out").read_text(), "it spoke")
            assert gang("add", *at, "--pid", str(alone.pid), "--name", "alone").returncode == 0
            until(lambda: jobs(at).keys() == {"talks", "alone"}, "both are there")
            assert jobs(at)["talks"]["weight"] == 2
            table = gang("list", *at).stdout
            assert all(name in table for name in ("talks", "alone", "threads", "blocked"))
            top = gang("top", *at).stdout
            assert all(f"core {core}" in top for core in CORES)
            shown = json.loads(gang("top", "--json", *at).stdout)
            assert len(shown["round"]["slices"]) == 2
            refused = gang("add", *at, "--pid", str(2**22 + 1))
            assert refused.returncode == 2
            assert "there is no process" in refused.stderr
            assert "no job is called 'absent'" in gang("stop", *at, "absent").stderr
            stopped = gang("stop", *at, "talks")
            assert stopped.stdout == "talks ended\n"
            assert jobs(at).keys() == {"alone"}
            second = gang("run", "--cores", CORE_LIST, "--socket", str(tmp_path / "other"), "--", "true")
            assert second.returncode == 2
            assert f"core {CORES[0]}: another agent (process " in second.stderr
            third = gang("run", *at, "--", "true")
            assert third.returncode == 2
            assert "another agent listens there" in third.stderr
            assert gang("stop", *at).returncode == 0
        assert lives(alone.pid)
        until(lambda: computes(alone.pid), "whom the agent adopted runs on")
    finally:
        alone.kill()
        alone.wait()


def test_jobs_of_an_interrupted_agent_end_with_it(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path / 'number'}; sleep 600"
    with daemon(tmp_path, "--", "sh", "-c", script):
        until(lambda: (tmp_path / "number").exists() and (tmp_path / "number").read_text(), "the job runs")
    assert not lives(int((tmp_path / "number").read_text()))
