"""Changes the code in small ways, one at a time, and lists the changes that no test notices.

mutants.py AREA MINUTES: stops after that time. The next call continues there, and tries unnoticed changes
again, so that new tests count. Records are in target/mutants/AREA. Cosmic Ray changes Python, cargo-mutants
changes Rust.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
RECORDS = TREE / "target" / "mutants"
FORKED = TREE / "tools" / "forked_tests.py"

KEPT = (
    "Add_Sub|Sub_(Add|BitOr)|Mul_Div|Div_Mul|FloorDiv_Mul|BitAnd_(BitOr|Sub)|BitXor_(BitOr|Sub)|LShift_RShift"
)
KEPT_COMPARISONS = "Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is|Lt_(LtE|GtE)|LtE_(Lt|Gt)|Gt_(GtE|LtE)|GtE_(Gt|Lt)"
EXCLUDED = f"core/Replace(BinaryOperator_(?!({KEPT})$)|ComparisonOperator_(?!({KEPT_COMPARISONS})$)).*"
"""Changes of Cosmic Ray that are not tried. Of its twelve changes for an operator, one or two are enough,
because the others fail in the same way. `|` is not changed because it occurs in types, which no test reads.
"""


@dataclass(frozen=True)
class PythonArea:
    """Modules, and the tests that must notice changes in them, quickest first."""

    modules: Sequence[str]
    tests: Sequence[str]
    skipped: Sequence[str]
    """Tests among these that are skipped, because they start programs and would take most of the time."""
    seconds: int = 600
    """A test run of more than this many seconds counts as having noticed the change."""


@dataclass(frozen=True)
class RustArea:
    package: str
    tests: Sequence[str] = ()
    """Further packages whose tests count."""


AREAS: dict[str, PythonArea | RustArea] = {
    "slurm": PythonArea(
        [
            f"slurm/{name}.py"
            for name in ("room_plan", "drain_plan", "candidates", "requeueing", "hypothetical")
        ],
        [
            "tests/slurm/test_gres.py",
            "tests/slurm/test_candidates.py",
            "tests/slurm/test_hypothetical.py",
            "tests/slurm/test_room_plan_files.py",
            "tests/slurm/test_drain_plan_files.py",
        ],
        [
            "test_room_plan_files.py::test_bad_input_is_reported_in_a_sentence",
            "test_drain_plan_files.py::test_options_that_do_not_fit_are_reported_in_a_sentence",
        ],
    ),
    "kubernetes": PythonArea(
        [
            f"kubernetes/{name}.py"
            for name in ("room_plan", "room_holds", "fit", "budgets", "hypothetical", "objects")
        ],
        [
            f"tests/kubernetes/test_k8s_{topic}.py"
            for topic in ("pods", "proofs", "hostile", "readers", "room_files")
        ],
        [
            "test_k8s_room_files.py::test_bad_input_is_reported_in_a_sentence",
            "test_k8s_readers.py::test_a_cluster_that_cannot_be_reached_is_one_sentence",
            "test_k8s_readers.py::test_an_export_that_fails_writes_nothing",
            "test_k8s_readers.py::test_users_of_a_kubeconfig",
        ],
    ),
    "placement": RustArea("topolane-placement"),
    "scheduler": RustArea("topolane-scheduler", ["topolane-simulator"]),
}


def try_python(name: str, area: PythonArea, minutes: float) -> None:
    """Tries changes of Python code, in a copy of the tree because Cosmic Ray edits files in place."""
    bin = RECORDS / "cosmic-ray" / "bin"
    modules = [Path("python/topolane") / module for module in area.modules]
    digest = hashlib.sha256(b"".join((TREE / module).read_bytes() for module in modules)).hexdigest()[:12]
    records = RECORDS / name / digest
    records.mkdir(parents=True, exist_ok=True)
    session, config, copy = records / "session.sqlite", records / "config.toml", records / "tree"
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ("python", "tests"):
        shutil.copytree(TREE / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "conftest.py"):
        shutil.copy(TREE / file, copy)
    skipped = [f"--deselect=tests/{name}/{test}" for test in area.skipped]
    words = ["-x", "-q", "-p", "no:cacheprovider", *area.tests, *skipped]
    python = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(copy / "python")}
    address = f"{tempfile.mkdtemp()}/tests"
    command = f"{sys.executable} -S {FORKED} ask {address}"
    config.write_text(
        f"[cosmic-ray]\nmodule-path = {[str(module) for module in modules]}\ntimeout = {area.seconds + 60}\n"
        f'excluded-modules = []\ntest-command = "{command}"\n[cosmic-ray.distributor]\nname = "local"\n'
        f"[cosmic-ray.filters.operators-filter]\nexclude-operators = ['{EXCLUDED}']\n"
    )
    if not session.exists():
        subprocess.run([bin / "cosmic-ray", "init", config, session], cwd=copy, check=True)
    subprocess.run([bin / "cr-filter-operators", session, config], cwd=copy, check=True)
    with contextlib.closing(sqlite3.connect(session)) as results, results:
        results.execute("DELETE FROM work_results WHERE test_outcome = 'SURVIVED'")
    # First, the tests must pass with the unchanged code. This run writes the bytecode, so that later runs
    # need not.
    environment = os.environ | python
    subprocess.run([sys.executable, "-m", "pytest", *words], cwd=copy, env=environment, check=True)
    serve = [sys.executable, FORKED, "serve", address, str(area.seconds), *words]
    with subprocess.Popen(serve, cwd=copy, env=environment) as server:
        while not Path(address).exists() and server.poll() is None:
            time.sleep(0.1)
        try:
            subprocess.run([bin / "cosmic-ray", "exec", config, session], cwd=copy, timeout=60 * minutes)
        except subprocess.TimeoutExpired:
            print("The time is over; the next call goes on.")
        if server.poll() is not None:
            raise RuntimeError("the process of the tests has ended: delete the records and begin again")
        server.kill()
    subprocess.run([bin / "cr-report", "--surviving-only", "--show-diff", session], cwd=copy, check=True)
    shutil.rmtree(copy)


def try_rust(name: str, area: RustArea, minutes: float) -> None:
    """Tries changes of Rust code.

    cargo-mutants works on a copy of the tree and builds the tests again for each change, so debug information
    is off. The order is random, so that changes of all files are tried within the time.
    """
    command = ["cargo", "mutants", "--package", area.package, "--iterate", "--output", str(RECORDS / name)]
    command += ["--shuffle", "--minimum-test-timeout", "300", "--cargo-arg=--tests"]
    command += [f"--test-package={package}" for package in (area.package, *area.tests)]
    builds = {"CARGO_PROFILE_TEST_DEBUG": "false", "CARGO_TARGET_DIR": str(RECORDS / "builds")}
    running = subprocess.Popen(command, cwd=TREE, env=os.environ | builds)
    try:
        running.wait(60 * minutes)
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGINT)
        running.wait()
        print("The time is over; the next call goes on.")
    missed = RECORDS / name / "mutants.out" / "missed.txt"
    print(missed.read_text() if missed.exists() else "No change was tried to its end.")


def main(name: str, minutes: float) -> int:
    if name not in AREAS:
        print(f"no area {name!r}: {', '.join(AREAS)}", file=sys.stderr)
        return 2
    (RECORDS / name).mkdir(parents=True, exist_ok=True)
    area = AREAS[name]
    if isinstance(area, RustArea) and shutil.which("cargo-mutants") is None:
        print(
            "cargo-mutants is missing: cargo install cargo-mutants --locked --version 27.1.0", file=sys.stderr
        )
        return 2
    if isinstance(area, PythonArea):
        try_python(name, area, minutes)
    else:
        try_rust(name, area, minutes)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
