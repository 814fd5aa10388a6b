"""Runs the tests in parts. A part that fails does not keep the others from running.

run_tests.py check            format, lints, types, and the tests that need no other program
run_tests.py test             all tests
run_tests.py explore MINUTES  property tests with new random cases, until one fails or the time is over
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

TREE = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
SEED = "20231112"
"""Of the random cases of Rust's property tests. The cases of `make check` and `make test` are always the same."""

CARGO_TEST = ["cargo", "test", "--workspace", "--exclude", "topolane-python", "--locked", "--quiet"]
PYTEST = [sys.executable, "-m", "pytest"]
SIDE_BY_SIDE = ["--dist", "loadscope", "--no-loadscope-reorder"]
WORKERS = 4
"""Processes of the Python tests: more than there are cores, because most tests wait for Slurm, Nova or a guest."""


@dataclass(frozen=True)
class Part:
    """Commands that run one after the other until one fails."""

    name: str
    commands: Sequence[Sequence[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    yielding: bool = False
    """Whether it leaves the cores to the part beside it, whose tests have deadlines."""

    def run(self, output: IO[bytes] | None) -> int:
        environment = os.environ | self.environment
        for command in self.commands:
            words = ["nice", "-n", "19", *command] if self.yielding else command
            done = subprocess.run(words, cwd=TREE, env=environment, stdout=output, stderr=output)
            if done.returncode:
                return done.returncode
        return 0


@dataclass(frozen=True)
class Outcome:
    name: str
    code: int
    seconds: float

    def __str__(self) -> str:
        return f"{'FAILED' if self.code else 'passed':8}{self.seconds:6.0f} s  {self.name}"


def rust(*, yielding: bool = False) -> Part:
    return Part("Rust tests", [CARGO_TEST], {"PROPTEST_RNG_SEED": SEED}, yielding)


def python(name: str, marks: str, *options: str) -> Part:
    return Part(name, [[*PYTEST, "-m", marks, *options]])


LINTS = Part(
    "format, lints and types",
    [
        ["cargo", "fmt", "--all", "--check"],
        ["cargo", "clippy", "--quiet", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        [str(BIN / "ruff"), "check", "--quiet", "."],
        [str(BIN / "ruff"), "format", "--quiet", "--check", "."],
        [str(BIN / "mypy")],
        [sys.executable, "-m", "mypy.stubtest", "--concise", "topolane._engine"],
    ],
    {"PYO3_PYTHON": str(BIN / "python")},
)
RUST_BUILD = Part("build of the Rust tests", [[*CARGO_TEST, "--no-run"]])


def timed(part: Part, output: IO[bytes] | None = None) -> Outcome:
    began = time.monotonic()
    code = part.run(output)
    return Outcome(part.name, code, time.monotonic() - began)


def together(front: Part, behind: Part) -> list[Outcome]:
    """Runs two parts at the same time. What the second one prints comes after the first has ended."""
    with ThreadPoolExecutor(1) as other, tempfile.TemporaryFile() as kept:
        later = other.submit(timed, behind, kept)
        outcomes = [timed(front), later.result()]
        kept.seek(0)
        print(f"\n{behind.name}:\n{kept.read().decode(errors='replace')}", flush=True)
    return outcomes


def lint() -> list[Outcome]:
    return [timed(LINTS)]


def check() -> list[Outcome]:
    units = python("Python unit tests", "not components and not alone", "-n", "2", *SIDE_BY_SIDE)
    return [timed(LINTS), timed(RUST_BUILD), *together(units, rust())]


def test() -> list[Outcome]:
    built = timed(RUST_BUILD)
    most = python(
        "Python tests", "not alone", "-n", str(WORKERS), *SIDE_BY_SIDE, "--ignore", "tests/kubernetes"
    )
    clusters = python("tests of Kubernetes", "not alone", "-n", "2", *SIDE_BY_SIDE, "tests/kubernetes")
    last = python("tests that need all cores", "alone")
    return [built, *together(most, rust(yielding=True)), timed(clusters), timed(last)]


def explore(minutes: float) -> list[Outcome]:
    """Each round has a seed of its own, which a failure names: with it the round can be repeated."""
    began, rounds = time.monotonic(), 0
    while True:
        seed, rounds = str(random.randrange(2**32)), rounds + 1
        parts = (
            Part("Rust tests", [CARGO_TEST], {"PROPTEST_RNG_SEED": seed}),
            Part(
                "Python property tests",
                [[*PYTEST, "-q", "-m", "hypothesis and not components", f"--hypothesis-seed={seed}"]],
                {"HYPOTHESIS_PROFILE": "explore"},
            ),
        )
        for part in parts:
            with tempfile.TemporaryFile() as kept:
                outcome = timed(part, kept)
                if outcome.code:
                    kept.seek(0)
                    print(kept.read().decode(errors="replace"))
                    print(f"round {rounds}: seed {seed} breaks the {part.name}; to repeat it:")
                    print(f"  {words_of(part)}", flush=True)
                    return [outcome]
        print(f"round {rounds}: seed {seed}: nothing found", flush=True)
        if time.monotonic() - began > 60 * minutes:
            return [Outcome(f"{rounds} rounds of new cases", 0, time.monotonic() - began)]


def words_of(part: Part) -> str:
    """The command of a part, to be typed in."""
    settings = [f"{name}={value}" for name, value in part.environment.items()]
    return shlex.join([*settings, *part.commands[-1]])


def main(what: str, *arguments: str) -> int:
    try:
        outcomes = (
            {"lint": lint, "check": check, "test": test}[what]()
            if what != "explore"
            else explore(float(arguments[0]))
        )
    except KeyboardInterrupt:
        return 130
    print("\nSummary:")
    print(*outcomes, sep="\n", flush=True)
    return 1 if any(outcome.code for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
