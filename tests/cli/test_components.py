"""tools/components.py makes a component once, whole or not at all, and again when what it is made of changes."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "tools" / "components.py"
RUN = """\
import sys
sys.path.insert(0, {folder!r})
import components
components.TREE = components.Path({tree!r})
components.made(components.Component("one", {command!r}))
"""


@pytest.fixture
def components(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program, with a tree and a cache of its own."""
    spec = importlib.util.spec_from_file_location("components", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "components", module)
    spec.loader.exec_module(module)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "TREE", tmp_path)
    return module


def shell(text: str) -> str:
    """A command that does this and leaves a line in `runs`."""
    return f"sh -c 'echo >>runs; {text}'"


def folders(components: Any) -> list[Path]:
    return [each for each in components.cache().iterdir() if not each.name.startswith(".")]


def test_a_component_is_made_once_even_by_two_runs_at_a_time(components: Any, tmp_path: Path) -> None:
    one = components.Component("one", shell("sleep 0.2; touch {to}/whole"))
    with ThreadPoolExecutor(2) as two:
        first, second = two.map(components.made, [one, one])
    assert first == second == components.made(one)
    assert (first / "whole").exists()
    assert (tmp_path / "runs").read_text() == "\n"


def test_a_killed_run_leaves_no_half_component(components: Any, tmp_path: Path) -> None:
    """The next run makes it whole."""
    command = shell("touch {to}/half; [ -e again ] || sleep 60; rm {to}/half; touch {to}/whole")
    program = RUN.format(folder=str(PROGRAM.parent), tree=str(tmp_path), command=command)
    killed = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    while not list(components.cache().glob(".*/half")):
        assert killed.poll() is None
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert folders(components) == []
    (tmp_path / "again").touch()
    made = components.made(components.Component("one", command))
    assert [each.name for each in made.iterdir()] == ["whole"]


def test_what_a_component_is_made_of_decides_its_folder(components: Any, tmp_path: Path) -> None:
    """A changed input, or a changed script, makes another version. The newest two stay."""
    (tmp_path / "input").write_text("1")
    (tmp_path / "script").write_text("#!/bin/sh\ncp input $1/copy\n")
    (tmp_path / "script").chmod(0o755)
    one = components.Component("one", "script {to}", ["input"])
    other = components.made(components.Component("one-more", "script {to}", ["input"]))
    versions = [components.made(one)]
    (tmp_path / "input").write_text("2")
    versions.append(components.made(one))
    with (tmp_path / "script").open("a") as file:
        file.write("# another\n")
    versions.append(components.made(one))
    assert len(set(versions)) == 3
    assert [(each / "copy").read_text() for each in versions[1:]] == ["2", "2"]
    assert sorted(folders(components)) == sorted([*versions[1:], other])


def test_what_cannot_be_had_is_named_and_its_old_link_goes(
    components: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that no test runs another version than the tree names."""
    links = {"bin/whole": "whole"}
    monkeypatch.setattr(
        components, "FETCHED", [components.Component("one", "sh -c 'touch {to}/whole'", links=links)]
    )
    monkeypatch.setattr(components, "COMPILED", [])
    assert components.main(["one"]) == 0
    assert (tmp_path / "bin" / "whole").is_file()
    broken = components.Component("one", "sh -c 'touch {to}/whole; echo no way; exit 1'", links=links)
    monkeypatch.setattr(components, "FETCHED", [broken, components.Component("two", "no-such-program")])
    assert components.main(["one"]) == 1
    said = capsys.readouterr().out
    assert "one: cannot be had here, its tests will be skipped: no way (exit code 1" in said
    assert not (tmp_path / "bin" / "whole").is_symlink()
    assert components.main(["--path", "two"]) == 3
    assert capsys.readouterr().err == "two: no-such-program is missing\n"
    assert components.main(["--path", "one"]) == 1
    assert components.main(["three"]) == 2
