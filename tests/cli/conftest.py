"""The installed `topolane` script, run as a user runs it, and small inputs for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import DEADLINE

SCRIPT = Path(sys.executable).parent / "topolane"

MACHINE = """
name = "toy"
[[site]]
name = "core"
children = [4, 2, 2]
parents = [1, 2, 2]
"""


class Script:
    """Runs the script in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def run(self, *arguments: object, stdin: str | bytes = b"") -> subprocess.CompletedProcess[str]:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [SCRIPT, *map(str, arguments)],
            cwd=self.directory,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            input=given,
            capture_output=True,
            timeout=DEADLINE,
        )
        text = [stream.decode(errors="replace") for stream in (done.stdout, done.stderr)]
        return subprocess.CompletedProcess(done.args, done.returncode, *text)

    def __call__(self, *arguments: object, stdin: str | bytes = b"", code: int = 0) -> str:
        """What a command that works prints; a pipe sees nothing else."""
        done = self.run(*arguments, stdin=stdin)
        assert (done.returncode, done.stderr) == (code, "")
        return done.stdout

    def refused(self, *arguments: object, says: str | tuple[str, ...], stdin: str | bytes = b"") -> None:
        """Bad input: one sentence that names what is wrong, exit code 2, and nothing written."""
        before = self.files()
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 2, done
        assert done.stdout == ""
        (sentence,) = done.stderr.splitlines()
        assert sentence.startswith("topolane: ")
        assert "Errno" not in sentence
        for part in [says] if isinstance(says, str) else says:
            assert part in sentence
        assert self.files() == before

    def files(self) -> dict[str, bytes | None]:
        found = self.directory.rglob("*")
        return {str(path): path.read_bytes() if path.is_file() else None for path in found}


@pytest.fixture
def topolane(tmp_path: Path) -> Script:
    """The script, in an empty directory of its own."""
    return Script(tmp_path)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Writes a file there."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def toy(write: Callable[[str, str], Path]) -> Path:
    """16 nodes: 2 pods of 2 leaves of 4."""
    return write("toy.toml", MACHINE)


@pytest.fixture
def log(write: Callable[[str, str], Path]) -> Path:
    """40 jobs for it, of 1 to 9 nodes, more than it can run at once."""
    rows = [
        f"{index},{30 * index},{60 + 40 * (37 * index % 11)},{1 + 7 * index % 9},{600 + index}"
        for index in range(40)
    ]
    return write("log.csv", "\n".join(["id,submit,run,nodes,walltime", *rows, ""]))
