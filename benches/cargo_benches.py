"""Benchmarks of crates/placement that print their own tables: `links`, and `kueue` against Kueue's own code."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from measure import Options, Result

ROOT = Path(__file__).resolve().parent.parent
ANSWERS = ROOT / "target" / "kueue-answers"
"""The program built from benches/kueue. It reads a state per line and prints Kueue's answer to it."""


def links(options: Options) -> Result:
    """Benchmark `links`: a line of JSON for each policy."""
    printed = _bench("links", options.policies, str(options.decisions))
    print(printed, end="")
    return Result(facts=[json.loads(line) for line in printed.splitlines()])


def kueue(options: Options) -> Result:
    """Benchmark `kueue`: for each kind of request, the number of states, and of those with another answer.
    Raises RuntimeError without its program.
    """
    if not ANSWERS.exists():
        raise RuntimeError(
            f"{ANSWERS.relative_to(ROOT)} is missing: make {ANSWERS.relative_to(ROOT)} builds it"
        )
    words = ("--seed", str(options.seed), "--states", str(options.states))
    if options.record is not None:
        print(_bench("kueue", str(ANSWERS), *words, "--record", str(options.record), quick=True), end="")
        return Result()
    if not options.json:
        print(_bench("kueue", str(ANSWERS), *words, quick=True), end="")
        return Result()
    return Result(facts=json.loads(_bench("kueue", str(ANSWERS), *words, "--json", quick=True)))


def _bench(name: str, *words: str, quick: bool = False) -> str:
    """The output of a benchmark; `quick` compiles it with the profile `quick`. Raises CalledProcessError."""
    profile = ("--profile", "quick") if quick else ()
    command = [
        "cargo",
        "bench",
        "--quiet",
        *profile,
        "-p",
        "topolane-placement",
        "--locked",
        "--bench",
        name,
        "--",
        *words,
    ]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
