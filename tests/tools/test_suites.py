"""Which tests run when: tests/suites.py and tools/live_suites.py."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
import suites
from suites import SUITES

TREE = Path(__file__).parents[2]
sys.path.append(str(TREE / "tools"))

import live_suites


@pytest.mark.parametrize("name", SUITES)
def test_all_that_the_table_names_is_there(name: str) -> None:
    """A test that is renamed, and stays in the table by its old name, would leave `make test` without a word."""
    suite = SUITES[name]
    assert all((TREE / path).exists() for path in [*suite.tests, *suite.sources])
    for test in suite.main:
        file, _, function = test.partition("::")
        assert f"def {function}" in (TREE / file).read_text() if function else (TREE / file).exists(), test
    for file in (*suites.UNITS, *suites.ALONE):
        assert (TREE / file).exists(), file


def test_a_test_is_live_unless_make_test_runs_it() -> None:
    """Units and tests outside the suites are never live; of a suite all are but its main path."""
    assert not suites.is_live("tests/api/test_state.py::test_any")
    assert not suites.is_live("tests/slurm/test_gres.py::test_any")
    assert suites.is_live("tests/slurm/test_shadow.py::test_any")
    assert not suites.is_live("tests/slurm/test_plugin.py::test_a_promise_obeys_the_rule")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of two suites of one file each, and a machine on which nothing has passed."""
    few = {
        name: dataclasses.replace(SUITES["slurm"], tests=[f"tests/{name}"], sources=[], main=[], seconds=60)
        for name in ("first", "second")
    }
    monkeypatch.setattr(live_suites, "TREE", tmp_path)
    monkeypatch.setattr(live_suites, "SUITES", few)
    monkeypatch.setattr(live_suites, "PASSED", tmp_path / "cache" / "passed.json")
    git(tmp_path, "init", "--quiet")
    for name in few:
        change(tmp_path, name)
    return tmp_path


def git(repository: Path, *words: str) -> None:
    owner = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *owner, *words], cwd=repository, check=True)


def change(repository: Path, name: str) -> None:
    """Commits a change of a suite's tests."""
    file = repository / "tests" / name / "test_one.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{file.read_text()}x" if file.exists() else "x")
    git(repository, "add", "tests")
    git(repository, "commit", "--quiet", "-m", "tests: change")


def test_a_suite_runs_again_only_after_a_change(repository: Path) -> None:
    """One that has passed here as it is, or is as it was at the last tag, does not run."""
    assert live_suites.chosen(1000) == ["first", "second"]
    live_suites.note({"first": 50, "second": 50})
    assert live_suites.chosen(1000) == []
    change(repository, "second")
    assert live_suites.chosen(1000) == ["second"]
    git(repository, "tag", "v1")
    assert live_suites.chosen(1000) == []
    change(repository, "second")
    assert live_suites.chosen(1000) == ["second"]


def test_what_has_no_time_is_left_and_said(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The time of a suite is what it took when it passed, or the table's."""
    assert live_suites.chosen(100) == ["first"]
    assert "live suite second: LEFT FOR THE NEXT RUN" in capsys.readouterr().out
    live_suites.note({"first": 95})
    change(repository, "first")
    assert live_suites.chosen(100) == ["first"]
    assert live_suites.chosen(90) == ["second"]


def test_a_tree_with_changes_is_not_noted(repository: Path) -> None:
    """What passed is then not what git has."""
    (repository / "tests" / "first" / "test_one.py").write_text("other")
    live_suites.note({"first": 50})
    assert live_suites.chosen(1000) == ["first", "second"]


def test_a_damaged_record_counts_as_none(repository: Path) -> None:
    live_suites.note({"first": 50})
    live_suites.PASSED.write_text("{")
    assert live_suites.chosen(1000) == ["first", "second"]
