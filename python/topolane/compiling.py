"""Compiles a program with the compiler that the user names, and reports the tool's first error."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from topolane._engine import InputError


class Missing(Exception):
    """A program cannot be built here: what is absent, and the package."""


def split(text: str, option: str) -> list[str]:
    """The words of a command, split as a shell would. Raises InputError, naming the option, if there are
    none.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"{option} {text!r}: {error}") from error
    if not words:
        raise InputError(f"{option}: no command")
    return words


def compiled(option: str, compiler: str, words: Sequence[str], made: Path) -> Path:
    """Compiles the file `made` with the compiler that an option names. Raises InputError with the compiler's
    first error.
    """
    command = [*split(compiler, option), "-o", str(made), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise InputError(f"{option} {compiler}: cannot be started: {error.strerror}") from error
    if done.returncode != 0 or not made.is_file():
        why = f"{ended(done.returncode)}{first_error(done.stderr)}" if done.returncode else "it made nothing"
        raise InputError(f"{option} {compiler}: {why}")
    return made


def ended(code: int) -> str:
    """How a process ended, as text."""
    return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def first_error(text: str) -> str:
    """The most useful line of a tool's output: the first with 'error', otherwise its last one with words."""
    lines = [" ".join(line.split()) for line in text.splitlines() if any(map(str.isalnum, line))]
    telling = [line for line in lines if "error" in line.lower()] or lines[-1:]
    return f": {telling[0][:200]}" if telling else ""


def compile_with(command: Sequence[str | Path], made: Path) -> None:
    """Runs a compiler. Raises Missing with its first complaint."""
    done = subprocess.run([*command, "-o", made], capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise Missing(f"{made.name} does not compile with {command[0]}{first_error(done.stderr)}")
