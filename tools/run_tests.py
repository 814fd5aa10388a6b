"""Runs the tests in parts. A part that fails does not keep the others from running.

run_tests.py check            format, lints, types, and the tests that need no other program
run_tests.py test             all unit and property tests, and each host's main path on the real component
run_tests.py live SUITE...    the deep tests of hosts; without a name, of all
run_tests.py ci               `test`, then the live suites that tools/live_suites.py names
run_tests.py explore MINUTES  property tests with new random cases, until one fails or the time is over
"""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

TREE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TREE / "tests"), str(TREE / "tools")]

import live_suites
from suites import SUITES, suite_of

BIN = Path(sys.executable).parent
SEED = "20231112"
"""The seed of Rust's property tests, so that the cases of `make check` and `make test` are always the same.
"""

CARGO_TEST = ["cargo", "test", "--workspace", "--exclude", "topolane-python", "--locked", "--quiet"]
ENCLOSED = str(TREE / "tools" / "enclosed")
PYTEST = [sys.executable, "-m", "pytest"]
ENDED_WITH_THIS = [ENCLOSED, "--processes"]
"""The prefix of a command that must end, with all that it started, when this program is killed."""
RECORDS = TREE / "target" / "tests"
"""The results of each part of the last run, in JUnit's format."""
WORKERS = 4
"""The number of processes for tests that start other programs. It exceeds the cores, because most tests wait
for Slurm, Nova or a guest.
"""


RUNNING: set[subprocess.Popen[bytes]] = set()
"""The commands that run now, of all parts."""
FEW_FAILURES = "--maxfail=6"
"""If all tests of a host fail, each would otherwise take until its deadline."""


def side_by_side(workers: int) -> list[str]:
    """The options of pytest-xdist for `workers` processes, each of them enclosed."""
    process = f"{workers}*popen//python={ENCLOSED} {sys.executable}"
    return ["--tx", process, "--dist", "loadscope", "--no-loadscope-reorder"]


NO_TESTS = 5
"""The exit code of pytest if no test has the marks."""


@dataclass(frozen=True)
class Part:
    """Commands that run one after the other until one fails."""

    name: str
    commands: Sequence[Sequence[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    yielding: bool = False
    """Whether this part runs at low priority, because tests with deadlines run at the same time."""

    def run(self, output: IO[bytes] | None = None) -> Outcome:
        began, processor, code = time.monotonic(), 0.0, 0
        environment = os.environ | self.environment
        for command in self.commands:
            words = [*ENDED_WITH_THIS, *(["nice", "-n", "19"] if self.yielding else []), *command]
            running = subprocess.Popen(words, cwd=TREE, env=environment, stdout=output, stderr=output)
            RUNNING.add(running)
            try:
                _, status, used = os.wait4(running.pid, 0)
            except BaseException:  # after Ctrl-C too, no process may be left running
                running.kill()
                running.wait()
                raise
            finally:
                RUNNING.discard(running)
            running.returncode = code = os.waitstatus_to_exitcode(status)
            processor += used.ru_utime + used.ru_stime
            if code:
                break
        return Outcome(self.name, code, time.monotonic() - began, processor)


@dataclass(frozen=True)
class Outcome:
    name: str
    code: int
    seconds: float
    processor: float
    """Seconds of CPU time, including processes that its tests left behind: a process of the tests adopts
    those (tools/enclosed).
    """

    def __str__(self) -> str:
        verdict = "FAILED" if self.code else "passed"
        return f"{verdict:8}{self.seconds:6.0f} s{self.processor / 60:6.1f} CPU min  {self.name}"


def rust(*, yielding: bool = False) -> Part:
    return Part("Rust tests", [CARGO_TEST], {"PROPTEST_RNG_SEED": SEED}, yielding)


def python(name: str, marks: str, *options: str, workers: int = 0) -> Part:
    """A part with the tests that have these marks: in parallel with `workers`, otherwise one after the other."""
    record = f"--junitxml={record_of(name)}"
    command = [*PYTEST, *side_by_side(workers)] if workers else [ENCLOSED, *PYTEST]
    return Part(name, [[*command, "-m", marks, record, *options]])


def record_of(name: str) -> Path:
    return RECORDS / f"{name.replace(' ', '-').lower()}.xml"


LINTS = Part(
    "format, lints and types",
    [
        ["cargo", "fmt", "--all", "--check"],
        ["cargo", "clippy", "--quiet", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        [str(BIN / "ruff"), "check", "--quiet", "."],
        [str(BIN / "ruff"), "format", "--quiet", "--check", "."],
        [sys.executable, "tools/words.py"],
        [str(BIN / "mypy")],
        [sys.executable, "-m", "mypy.stubtest", "--concise", "topolane._engine"],
    ],
    {"PYO3_PYTHON": str(BIN / "python")},
)
COMPONENTS = Part("components for the other tests", [["make", "--silent", "components"]])
RUST_BUILD = Part("build of the Rust tests", [[*CARGO_TEST, "--no-run"]])


def together(front: Part, *behind: Part) -> list[Outcome]:
    """Runs parts at the same time. The output of `behind` is printed after `front` has ended. If `front` is
    interrupted, the others end with it.
    """
    with contextlib.ExitStack() as stack:
        others = stack.enter_context(ThreadPoolExecutor(len(behind)))
        kept = [stack.enter_context(tempfile.TemporaryFile()) for _ in behind]
        later = [others.submit(part.run, file) for part, file in zip(behind, kept, strict=True)]
        try:
            outcomes = [front.run()]
        except BaseException:  # only the main thread gets Ctrl-C, and it would wait for the other parts
            for command in list(RUNNING):
                command.kill()
            raise
        for part, file, outcome in zip(behind, kept, later, strict=True):
            outcomes.append(outcome.result())
            file.seek(0)
            print(f"\n{part.name}:\n{file.read().decode(errors='replace')}", flush=True)
    return outcomes


def lint() -> list[Outcome]:
    return [LINTS.run()]


def check() -> list[Outcome]:
    units = python("Python unit tests", "not components and not alone", workers=2)
    return [LINTS.run(), RUST_BUILD.run(), *together(units, rust())]


def test() -> list[Outcome]:
    """Runs every unit and property test, and the main path and the worst failure of each host."""
    units = python("Python unit tests", "not components and not alone", workers=2)
    hosts = python("main paths of the hosts", "components and not live and not alone", workers=WORKERS)
    last = python("main paths that need all cores", "alone and not live")
    return [RUST_BUILD.run(), *together(units, rust(yielding=True), COMPONENTS), hosts.run(), last.run()]


def live(names: Sequence[str]) -> list[Outcome]:
    """Runs the deep tests of these suites. Suites that pass are recorded, so that `ci` runs them again only
    after a change.
    """
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        sys.exit(f"{unknown[0]} is no suite: there are {', '.join(SUITES)}")
    parts = []
    for workers in sorted({SUITES[name].workers for name in names}, reverse=True):
        some = [name for name in names if SUITES[name].workers == workers]
        files = [file for name in some for file in SUITES[name].tests]
        words = [*files, FEW_FAILURES]
        parts.append(
            python(f"deep tests in {workers} processes", "live and not alone", *words, workers=workers)
        )
    if "gang" in names:
        words = [*SUITES["gang"].tests, FEW_FAILURES]
        parts.append(python("deep tests that need all cores", "live and alone", *words))
    outcomes = [part.run() for part in parts]
    seconds, failed, seen = dict.fromkeys(names, 0.0), set[str](), set[str]()
    for part in parts:
        for test, took, passed in cases(record_of(part.name)):
            name = suite_of(test)
            if name in seconds:
                seconds[name] += took
                seen.add(name)
                failed |= set() if passed else {name}
    if seen == set(names):
        # All tests of a suite may belong to another part.
        outcomes = [replace(each, code=0) if each.code == NO_TESTS else each for each in outcomes]
    if any(outcome.code for outcome in outcomes) and not failed:  # a part ended before it wrote its results
        failed |= set(names)
    live_suites.note({name: seconds[name] / SUITES[name].workers for name in names if name not in failed})
    return outcomes


def cases(record: Path) -> Iterable[tuple[str, float, bool]]:
    """For each test in a record: its file, its seconds, and whether it passed or was skipped."""
    for case in ET.parse(record).iter("testcase"):
        file = case.get("classname", "").replace(".", "/") + ".py"
        failed = case.find("failure") is not None or case.find("error") is not None
        yield file, float(case.get("time", 0)), not failed


def ci(began: float) -> list[Outcome]:
    """Runs `test`, and the live suites for which there is time."""
    outcomes = test()
    left = live_suites.LIMIT - (time.time() - began)
    chosen = live_suites.chosen(left)
    return [*outcomes, *(live(chosen) if chosen else [])]


def explore(minutes: float) -> list[Outcome]:
    """Runs property tests in rounds with new seeds. A failure names its seed, with which the round can be
    repeated.
    """
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
                outcome = part.run(kept)
                if outcome.code:
                    kept.seek(0)
                    print(kept.read().decode(errors="replace"))
                    print(f"round {rounds}: seed {seed} breaks the {part.name}; to repeat it:")
                    print(f"  {words_of(part)}", flush=True)
                    return [outcome]
        print(f"round {rounds}: seed {seed}: nothing found", flush=True)
        if time.monotonic() - began > 60 * minutes:
            return [Outcome(f"{rounds} rounds of new cases", 0, time.monotonic() - began, 0.0)]


def words_of(part: Part) -> str:
    """The command line that a user can type to repeat a part."""
    settings = [f"{name}={value}" for name, value in part.environment.items()]
    return shlex.join([*settings, *part.commands[-1]])


def main(what: str, *arguments: str) -> int:
    commands = {
        "lint": lint,
        "check": check,
        "test": test,
        "live": lambda: live(arguments or list(SUITES)),
        "ci": lambda: ci(float(arguments[0]) if arguments else time.time()),
        "explore": lambda: explore(float(arguments[0])),
    }
    # A shell lets background programs ignore Ctrl-C, and so would the programs to which the tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        outcomes = commands[what]()
    except KeyboardInterrupt:
        return 130
    print("\nSummary:")
    print(*outcomes, sep="\n", flush=True)
    return 1 if any(outcome.code for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
