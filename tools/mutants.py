"""Changes the code in small ways, one at a time, and lists the changes that no test notices.

mutants.py AREA MINUTES: it stops after so many minutes, and the next call goes on where it stopped.
Records are in target/mutants/AREA. Cosmic Ray changes Python, cargo-mutants changes Rust.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
RECORDS = TREE / "target" / "mutants"


@dataclass(frozen=True)
class PythonArea:
    """Modules, and the tests that must notice a change in one of them: those that start no other program."""

    modules: Sequence[str]
    tests: Sequence[str]
    seconds: int = 120
    """A run of the tests that takes longer counts as noticed."""


@dataclass(frozen=True)
class RustArea:
    package: str


AREAS: dict[str, PythonArea | RustArea] = {
    "slurm": PythonArea(
        [
            f"slurm/{name}.py"
            for name in ("room_plan", "drain_plan", "candidates", "requeueing", "hypothetical")
        ],
        [
            "tests/slurm/test_room_plan_files.py",
            "tests/slurm/test_drain_plan_files.py",
            "tests/slurm/test_candidates.py",
        ],
    ),
    "kubernetes": PythonArea(
        [
            f"kubernetes/{name}.py"
            for name in ("room_plan", "room_holds", "fit", "budgets", "hypothetical", "objects")
        ],
        ["tests/kubernetes/test_k8s_room_files.py", "tests/kubernetes/test_k8s_readers.py"],
    ),
    "placement": RustArea("topolane-placement"),
    "scheduler": RustArea("topolane-scheduler"),
}


def try_python(name: str, area: PythonArea, minutes: float) -> None:
    """Cosmic Ray changes files where they are, so it works on a copy of the tree."""
    bin = RECORDS / "cosmic-ray" / "bin"
    modules = [Path("python/topolane") / module for module in area.modules]
    inputs = [*modules, *map(Path, area.tests)]
    digest = hashlib.sha256(b"".join((TREE / file).read_bytes() for file in inputs)).hexdigest()[:12]
    records = RECORDS / name / digest
    records.mkdir(parents=True, exist_ok=True)
    session, config, copy = records / "session.sqlite", records / "config.toml", records / "tree"
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ("python", "tests"):
        shutil.copytree(TREE / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TREE / "pyproject.toml", copy)
    command = f"env PYTHONPATH={copy / 'python'} {sys.executable} -m pytest -x -q -p no:cacheprovider {' '.join(area.tests)}"
    config.write_text(
        f"[cosmic-ray]\nmodule-path = {[str(module) for module in modules]}\ntimeout = {area.seconds}\n"
        f'excluded-modules = []\ntest-command = "{command}"\n[cosmic-ray.distributor]\nname = "local"\n'
        # Types are written with it, and no test reads them.
        '[cosmic-ray.filters.operators-filter]\nexclude-operators = ["core/ReplaceBinaryOperator_BitOr_.*"]\n'
    )
    if not session.exists():
        subprocess.run([bin / "cosmic-ray", "init", config, session], cwd=copy, check=True)
        subprocess.run([bin / "cr-filter-operators", session, config], cwd=copy, check=True)
    subprocess.run([bin / "cosmic-ray", "baseline", config], cwd=copy, check=True)
    try:
        subprocess.run([bin / "cosmic-ray", "exec", config, session], cwd=copy, timeout=60 * minutes)
    except subprocess.TimeoutExpired:
        print("The time is over; the next call goes on.")
    subprocess.run([bin / "cr-report", "--surviving-only", "--show-diff", session], cwd=copy, check=True)
    shutil.rmtree(copy)


def try_rust(name: str, area: RustArea, minutes: float) -> None:
    command = ["cargo", "mutants", "--package", area.package, "--iterate", "--output", str(RECORDS / name)]
    try:
        subprocess.run([*command, "--profile", "quick", "--no-shuffle"], cwd=TREE, timeout=60 * minutes)
    except subprocess.TimeoutExpired:
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
