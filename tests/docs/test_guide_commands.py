"""The commands of README, the tutorials and the guides do what their pages say.

How a page marks its code blocks:

- ```console: lines that begin with `$ ` are run, in order, in one empty directory for the whole page. The lines after
  a command are what it prints: each must occur in its output, in this order, spaces aside; rules of tables may be left
  out, and `...` stands for any lines. A command succeeds, or ends with `# exit code N`.
- ```python: is run in that directory.
- ```sh: commands that are not run here. The line before says why: `<!-- not run: REASON -->`. A reason names the test
  that runs them, if there is one.
- `<!-- needs: NAME, NAME -->` before a block that is run: it is skipped where a program or a Python module is missing.
- `<!-- file: NAME -->` before a block of any other language: it is written to that file first.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import DEADLINE

TREE = Path(__file__).resolve().parents[2]
PAGES = [
    TREE / "README.md",
    TREE / "CONTRIBUTING.md",
    *sorted((TREE / "docs" / "tutorials").glob("*.md")),
    *sorted((TREE / "docs" / "guides").glob("*.md")),
]
RUN = ("console", "python")
BLOCK = re.compile(
    r"^(?: *<!-- (?P<marker>[a-z ]+): (?P<value>.*?) -->\n+)?^(?P<indent> *)```(?P<language>[\w-]*)\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
NAMED_TEST = re.compile(r"\b(?:(?:sites|gang|studies)/)?tests/[\w/.]*\w")
UNFENCED = re.compile(r"\n\n {4,}(?:\$|make|sudo|topolane|\S*bin/\w+) ")


@dataclass(frozen=True)
class Block:
    """A code block of a page, and the comment before it."""

    line: int
    language: str
    marker: str
    value: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command of a console block, and what the page says it prints."""

    line: str
    printed: list[str]

    @property
    def exit_code(self) -> int:
        found = re.search(r"# exit code (\d+)$", self.line)
        return int(found[1]) if found else 0


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        code = textwrap.dedent(found["text"])
        yield Block(line, found["language"], found["marker"] or "", found["value"] or "", code)


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block; a line that ends with a backslash goes on in the next."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        found = re.match(r"((?:.*\\\n)*.*)\n?", part)
        assert found is not None
        yield Command(found[1], part[found.end() :].splitlines())


def squeezed(text: str) -> str:
    return " ".join(text.split())


def missing(names: str) -> list[str]:
    """Which of these programs and Python modules are not installed."""
    wanted = [name.strip() for name in names.split(",")]
    return [name for name in wanted if shutil.which(name) is None and importlib.util.find_spec(name) is None]


def run(arguments: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        arguments,
        cwd=directory,
        env=os.environ | {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE,
    )


def check(command: Command, directory: Path) -> None:
    done = run(["bash", "-c", command.line], directory)
    assert done.returncode == command.exit_code, f"{command.line}\n{done.stdout}"
    rest = squeezed(done.stdout)
    for line in command.printed:
        if line.strip() in ("", "..."):
            continue
        _, found, rest = rest.partition(squeezed(line))
        assert found, f"{command.line}\ndoes not print: {line}\nbut:\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TREE)))
def test_the_commands_of_a_page_do_what_it_says(
    page: Path, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """Every command that a page shows can be typed in, and prints what the page shows."""
    (tmp_path / "examples").symlink_to(TREE / "examples")
    for block in blocks(page):
        if block.marker == "file":
            (tmp_path / block.value).write_text(block.text)
        if block.language not in RUN or block.marker == "not run":
            continue
        with subtests.test(f"line {block.line}"):
            if block.marker == "needs" and (absent := missing(block.value)):
                pytest.skip(f"{page.name}, line {block.line}: {', '.join(absent)} not installed")
            if block.language == "python":
                done = run([sys.executable, "-c", block.text], tmp_path)
                assert done.returncode == 0, done.stdout
            for command in commands(block) if block.language == "console" else ():
                check(command, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TREE)))
def test_every_command_is_run_or_says_why_not(page: Path) -> None:
    """A page has no command that is never tried: its blocks are run, or name a reason, and tests that exist."""
    found = list(blocks(page))
    assert not UNFENCED.search(page.read_text()), "write code blocks with a fence and a language"
    for block in found:
        where = f"{page.name}, line {block.line}"
        assert block.language, f"{where}: name the language of the block"
        assert block.marker in ("", "not run", "needs", "file"), f"{where}: no such marker: {block.marker}"
        if block.language == "console":
            assert block.text.startswith("$ "), f"{where}: a console block begins with a command"
        if block.language in ("sh", "bash", "shell"):
            assert block.marker == "not run", f"{where}: say why it is not run, or make it a console block"
        for path in NAMED_TEST.findall(block.value if block.marker == "not run" else ""):
            assert (TREE / path).exists(), f"{where}: {path} is not there"


def test_the_demo_is_the_command_of_the_readme() -> None:
    """The README's table is what `make demo` prints: both run the same command."""
    recipe = re.search(r"^demo:.*\n\t\$\(BIN\)/(.*)$", (TREE / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    shown = [command.line for block in blocks(TREE / "README.md") for command in commands(block)]
    assert recipe[1] in [squeezed(line.replace("\\\n", " ")) for line in shown]
