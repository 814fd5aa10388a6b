"""`topolane gang try`: a program alone, in copies, and in gangs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gang_processes import lives
from test_gang_commands import CORE_LIST, MAIN, gang
from topolane_gang.trial import TrialRun, notes
from waiting import DEADLINE, until

CORES = ("--cores", CORE_LIST)


def test_a_program_runs_alone_shared_and_in_gangs_each_copy_in_a_group_of_its_own(tmp_path: Path) -> None:
    """Rule: three kinds of runs; all copies have control groups and sessions of their own, also where they share
    plainly; nothing is left afterwards."""
    program = "import os; print(os.getsid(0), open('/proc/self/cgroup').read().replace('\\n', ' '))"
    command = f'{sys.executable} -c "{program}" >> {tmp_path}/seen; sleep 0.2'
    done = gang("try", "--json", "--copies", "3", *CORES, "--", "sh", "-c", command)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert [(run["how"], run["copies"], run["ended"]) for run in shown["runs"]] == [
        ("alone", 1, True),
        ("shared", 3, True),
        ("gangs", 3, True),
    ]
    assert all(0.2 <= run["first"] <= run["last"] for run in shown["runs"])
    assert any("The program alone takes" in note for note in shown["notes"])
    seen = (tmp_path / "seen").read_text().splitlines()
    assert len({line.split()[0] for line in seen}) == len(seen) == 7
    if "topolane-gang" in seen[0]:
        assert len({line.partition(" ")[2] for line in seen}) == 7
    assert not [
        name
        for name in ("freezer", "unified", "cpu")
        if list(Path("/sys/fs/cgroup", name).glob("topolane-gang-*"))
    ]


def test_the_table_says_what_gangs_gain() -> None:
    """Rule: a row for each kind, and what it comes to in a sentence; no bar in a pipe."""
    done = gang("try", *CORES, "--", "sleep", "0.1")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(word in done.stdout for word in ("alone", "shared", "gangs", "of ideal", "times the work"))


@pytest.mark.parametrize(("last", "said"), [(1.2, True), (1.4, False)])
def test_copies_that_hardly_compete_are_said(last: float, said: bool) -> None:
    """Rule: so are copies that together take less than 1.3 times as long as one alone."""
    runs = [
        TrialRun(how, copies, 1.0, ended, 0.0, ended=True)
        for how, copies, ended in (("alone", 1, 1.0), ("shared", 2, last), ("gangs", 2, 1.0))
    ]
    assert any("The copies hardly compete" in note for note in notes(runs, 2)) is said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "sh", "-c", "echo oh dear; exit 3"], "sh ended with 3 in the run alone: oh dear"),
        (["--", "no-such-command"], "no-such-command: no such command"),
        ([], "no program after --"),
        (["--copies", "1", "--", "true"], "1 is not in the range"),
    ],
)
def test_what_cannot_be_tried_is_said_in_a_sentence(words: list[str], said: str) -> None:
    """Rule: exit code 2 and one sentence."""
    done = gang("try", *CORES, *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert said in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_trial_leaves_no_copy(tmp_path: Path, number: int) -> None:
    """Rule: the copies end with the command, stopped or not."""
    file = tmp_path / "numbers"
    script = f'echo $$ >> {file}; test "$(wc -l < {file})" = 1 || exec sleep 600'
    trial = subprocess.Popen([*MAIN, "try", *CORES, "--", "sh", "-c", script])
    until(lambda: file.exists() and len(file.read_text().split()) == 3, "both copies run")
    trial.send_signal(number)
    assert trial.wait(DEADLINE) == 130
    assert not any(lives(int(one)) for one in file.read_text().split())
