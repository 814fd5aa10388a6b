"""The engine from C: every function under the address sanitizer and under valgrind, and the same decisions as from
Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from topolane._engine import Decision, Machine, State

HERE = Path(__file__).parent
CRATE = HERE.parents[1] / "crates" / "capi"
WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-g")

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="cc is missing"),
    pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing"),
]


@pytest.fixture(scope="module")
def library() -> Path:
    """The static library, with the function that panics."""
    command = ["cargo", "build", "--profile", "quick", "--locked", "--quiet", "-p", "topolane-capi"]
    command += ["--features", "test-panic"]
    subprocess.run(command, check=True, cwd=CRATE)
    metadata = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"]
    metadata_text = subprocess.run(metadata, check=True, cwd=CRATE, capture_output=True, text=True).stdout
    return (
        Path(metadata_text.partition('"target_directory":"')[2].partition('"')[0]) / "quick" / "libtopolane.a"
    )


def compiled(source: str, library: Path, tmp_path: Path, *options: str) -> Path:
    program = tmp_path / source
    command = ["cc", *WARNINGS, *options, "-I", str(CRATE / "include"), str(HERE / f"{source}.c")]
    subprocess.run([*command, str(library), "-lpthread", "-ldl", "-lm", "-o", str(program)], check=True)
    return program


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_function_is_used() -> None:
    """Every function of the header is called by the programs that the sanitizers and valgrind watch."""
    header = (CRATE / "include" / "topolane.h").read_text()
    used = "".join((HERE / name).read_text() for name in ("use.c", "misuse.c", "check.h"))
    declared = set(re.findall(r"\b(topolane_\w+)\(", header))
    assert len(declared) > 20
    assert not {name for name in declared if f"{name}(" not in used}


@pytest.mark.parametrize("source", ["use", "misuse"])
def test_nothing_leaks_and_nothing_is_used_after_it_is_freed(
    source: str, library: Path, tmp_path: Path
) -> None:
    """The address and undefined-behaviour sanitizers, leaks included, find nothing in a program that uses every function,
    and in one that uses them wrongly."""
    options = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    assert run(compiled(source, library, tmp_path, *options)) == "ok\n"


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is missing")
@pytest.mark.parametrize("source", ["use", "misuse"])
def test_valgrind_finds_nothing(source: str, library: Path, tmp_path: Path) -> None:
    """Nor does valgrind, which sees the engine's own accesses too."""
    program = compiled(source, library, tmp_path)
    flags = ("--quiet", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=definite,indirect")
    assert run("valgrind", *flags, program) == "ok\n"


@pytest.mark.parametrize("policy", ["isolated", "dedicated", "jigsaw"])
def test_decisions_are_those_of_python(policy: str, library: Path, tmp_path: Path) -> None:
    """The same requests in the same order get the same nodes and links, or the same refusal with the same jobs in the way,
    whichever language asks; two threads may share a machine and a policy. Of 2,000 steps about a third release a job."""
    name, steps = "fat-tree(radix=8)", 2_000
    program = compiled("sequence", library, tmp_path)
    assert run(program, name, policy, str(steps)).splitlines() == sequence(name, policy, steps)


def sequence(name: str, policy: str, steps: int) -> list[str]:
    """What sequence.c prints."""
    machine = Machine.preset(name)
    assert machine is not None
    lines: list[str] = []
    jobs: list[tuple[int, Decision]] = []
    random = 12345
    for step in range(1, steps + 1):
        random = (random * 1103515245 + 12345) & 0x7FFFFFFF
        if random % 3 == 0 and jobs:
            at = (random // 3) % len(jobs)
            jobs[at] = jobs[-1]
            jobs.pop()
            continue
        state = State(machine)
        for job, given in jobs:
            state.hold(given.nodes, None, given.links, given.bandwidth_share, id=job)
        found = state.place(policy, 1 + (random >> 8) % 9, id=step)
        if isinstance(found, Decision):
            jobs.append((step, found))
            words = [*map(str, found.nodes), *(f"l{link}" for link in found.links)]
        else:
            words = [found.name, *(str(job) for each in found.obstacles for job in each.jobs)]
        lines.append(" ".join([str(step), *words]))
    return lines
