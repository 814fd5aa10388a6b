"""Files with arrays nested deep, numbers of thousands of digits or no end, and what a command may say of them."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from waiting import DEADLINE

MAIN = [sys.executable, "-c", "from topolane.cli import main; main()"]
DEEP = 100_000
ARRAYS = "[" * DEEP + "]" * DEEP
TABLES = '{"a":' * DEEP + "0" + "}" * DEEP
DIGITS = "9" * 5000
HEXADECIMAL = "0x" + "f" * 5000


def topolane(folder: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAIN, *words], cwd=folder, capture_output=True, text=True, timeout=DEADLINE, **more
    )


def refused(done: subprocess.CompletedProcess[str], *says: str) -> None:
    """One sentence, not long, exit code 2."""
    assert done.returncode == 2, (done.returncode, done.stderr[-2000:])
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("topolane: ") and len(sentence) < 1000
    for part in says:
        assert part in sentence


READ = (
    "from topolane._engine import InputError\ntry:\n    {}\nexcept InputError as error:\n    print(error)\n"
)


def refused_by(reader: str, file: Path) -> None:
    """A line of Python that reads `{file!r}` raises one sentence that begins with its name."""
    script = READ.format(reader.format(file=str(file)))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=DEADLINE)
    assert done.stdout.startswith(str(file)), done.stderr[-1000:]
    assert len(done.stdout.splitlines()) == 1


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
