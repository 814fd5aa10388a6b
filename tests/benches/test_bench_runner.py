"""The runner of the benchmarks: names, options and exit codes. The measurements themselves are no tests."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benches"))

import run
from measure import Options, Result, Row
from registry import CASES, PATHS, Case, Option


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_names_a_module_that_is_there_and_quick_options_of_its_own(case: Case) -> None:
    module = case.function.partition(":")[0]
    folders = [*(ROOT / part for part in PATHS.get(case.area, ())), ROOT / "benches"]
    assert any(
        (folder / f"{module}.py").exists() or (folder / module / "__init__.py").exists() for folder in folders
    )
    assert set(case.quick) <= {option.key for option in case.options}


def test_names_are_unique_and_an_area_skips_what_must_be_named() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert [case.name for case in run.selected(["nova"])] == ["nova/weighing", "nova/optimum"]
    with pytest.raises(ValueError, match="there is no benchmark 'slurm': name one of slurm/scale"):
        run.selected(["slurm"])


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """A case `toy`, with the options that it was measured with."""
    seen: list[Options] = []
    toy = ModuleType("toy")

    def measure(options: Options) -> Result:
        seen.append(options)
        if options.size < 0:
            raise ValueError("--size: less than nothing")
        return Result([Row("toy", "size", "", (options.size,), limit=5)])

    toy.measure = measure  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toy", toy)
    case = Case("toy", "nothing", "toy:measure", (Option("size", 3, "of it"),), quick={"size": 1})
    monkeypatch.setattr(run, "CASES", (case,))
    return seen


def test_a_given_option_comes_before_quick_and_quick_before_the_default(measured: list[Options]) -> None:
    for words in (["toy"], ["toy", "--quick"], ["toy", "--quick", "--size", "2"]):
        assert run.main(words) == 0
    assert [options.size for options in measured] == [3, 1, 2]


def test_a_missed_target_is_exit_code_1_and_an_error_2(
    measured: list[Options], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(["toy", "--size", "9"]) == 1
    assert "MISSED" in capsys.readouterr().out
    assert run.main(["toy", "--size", "-1"]) == 2
    assert capsys.readouterr().err == "toy: --size: less than nothing\n"
    assert run.main(["other"]) == 2
    assert "there is no benchmark 'other'" in capsys.readouterr().err


def test_json_without_a_file_is_all_that_is_printed(
    measured: list[Options], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(["toy", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [row["median"] for row in facts["figures"]] == [3]
    assert facts["options"]["size"] == "3"


def test_a_missing_module_is_named(
    measured: list[Options], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case("toy", "nothing", "toy:measure", needs={"import nothing_of_that_name": "get it"})
    monkeypatch.setattr(run, "CASES", (case,))
    assert importlib.util.find_spec("nothing_of_that_name") is None
    assert run.main(["toy"]) == 2
    assert capsys.readouterr().err == "toy: nothing_of_that_name is missing: get it\n"


def test_the_makefile_is_given_each_target_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["nova", "kubernetes", "--builds"]) == 0
    assert capsys.readouterr().out == ".venv/.optimised .venv/.test-installed kubernetes-components\n"
    assert run.main(["slurm/scale", "--help", "--builds"]) == 0
    assert capsys.readouterr().out == ""
