"""The manual pages and the completion that `make wheel` puts into the wheel."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest
from topolane import wings
from topolane.cli import cli

pytest.importorskip("click_man", reason="click-man, of the extra test, is not installed")
TOOL = Path(__file__).parents[2] / "tools" / "command_files.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("command_files", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def prefix(tool: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pip would install of topolane and of the wings that are installed here."""
    prefix = tmp_path_factory.mktemp("prefix")
    added = (command for group in wings.DISTRIBUTIONS for command in wings.added(group).values())
    for distribution in {"topolane", *(command.distribution for command in added)}:
        tool.write(prefix, distribution)
    return prefix


def paths(
    command: click.Command, words: tuple[str, ...], context: click.Context | None = None
) -> list[tuple[str, ...]]:
    """A command and all below it, in words."""
    here = click.Context(command, info_name=words[-1], parent=context)
    found = [words]
    if isinstance(command, click.Group):
        for name in command.list_commands(here):
            below = command.get_command(here, name)
            assert below is not None
            found += paths(below, (*words, name), here)
    return found


def test_every_command_has_a_page_that_man_shows_without_a_warning(prefix: Path) -> None:
    """The page names the options of the command, and its whole first sentence."""
    every = paths(cli, ("topolane",))
    pages = {file.stem: file for file in (prefix / "share/man/man1").iterdir()}
    assert sorted(pages) == sorted("-".join(words) for words in every) and len(every) > 50
    assert "the migrations that gain most" in pages["topolane-nova-plan"].read_text()
    assert "..." not in pages["topolane-nova"].read_text().split(".SH COMMANDS")[1]
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    for name, file in sorted(pages.items()):
        shown = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-l", file],
            capture_output=True,
            text=True,
            env={"LANG": "C.UTF-8", "MANPAGER": "cat", "PATH": "/usr/bin:/bin"},
        )
        assert shown.returncode == 0 and shown.stderr == "", name + shown.stderr
        assert "NAME" in shown.stdout and "SYNOPSIS" in shown.stdout


def test_an_example_keeps_its_lines(prefix: Path) -> None:
    page = (prefix / "share/man/man1/topolane-links.1").read_text()
    assert "\b" not in page and ".nf\n" in page


def test_a_page_ends_with_the_examples_of_the_help(prefix: Path) -> None:
    page = (prefix / "share/man/man1/topolane-slurm-plan.1").read_text().partition("\n.SH EXAMPLES\n")[2]
    assert page.splitlines()[:3] == [
        ".TP",
        "Make room for job 97:",
        r".B topolane slurm plan \-\-room\-for 97 \-\-out plan.json",
    ]


def test_bash_completes_a_command_and_an_option(prefix: Path, tmp_path: Path) -> None:
    """As bash does it: the function of the file, with the words so far, calls the installed command."""
    command = tmp_path / "topolane"
    command.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c \'import sys; sys.argv[0] = "topolane"; from topolane.cli import main; main()\' "$@"\n'
    )
    command.chmod(0o755)
    file = prefix / "share/bash-completion/completions/topolane"
    for words, completed in (
        (("topolane", "no"), "nova"),
        (("topolane", "nova", "plan", "--defr"), "--defragment"),
    ):
        script = f'source {file}; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _topolane_completion {command}; echo "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        assert done.stdout.strip() == completed, done.stderr


def test_the_wheel_carries_them(tmp_path: Path) -> None:
    """Packed again, with the sums of all files, so that pip installs it and the pages lie below its prefix."""
    tree = tmp_path / "tree"
    info = tree / "topolane-0.1.0.dist-info"
    info.mkdir(parents=True)
    (tree / "topolane.py").write_text("")
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: topolane\nVersion: 0.1.0\n")
    (info / "WHEEL").write_text(
        "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    pack = [sys.executable, "-m", "wheel", "pack", "--dest-dir", tmp_path, tree]
    subprocess.run(pack, check=True, capture_output=True)
    (whole,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, TOOL, whole], check=True)
    there = tmp_path / "there"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", there]
    subprocess.run([*pip, whole], check=True)
    assert (there / "share/man/man1/topolane-nova-plan.1").is_file()
    assert (there / "share/zsh/site-functions/_topolane").is_file()
