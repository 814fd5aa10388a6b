"""Hashes the decisions of runs, so that a change of the engine can be compared with them.

`python benches/decisions.py --check`, with the interpreter in which Topolane is installed, computes every run
and names those whose decisions differ from `decisions/expected.json`. A key of that file is
WORKLOAD/QUEUE/POLICY/NETWORK/JOBS, or names a sequence of single decisions. Its value is the start of the
SHA-256 of the decisions as text, with floats as exact bits. `--show KEY` prints this text, so that the texts
of two versions can be compared.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))

from decision_runs import matrix
from measure import Options, Result
from topolane import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXPECTED = Path(__file__).resolve().parent / "decisions" / "expected.json"
DIGITS = 16
"""Digits of a hash that are kept: enough to detect a change, and short to read."""


def hashed(decisions: Callable[[], Iterator[str]]) -> str:
    """The hash of the decisions, or a text that says why there are none."""
    whole = hashlib.sha256()
    try:
        for line in decisions():
            whole.update(f"{line}\n".encode())
    except InputError as error:
        return f"failed: {error}"
    return whole.hexdigest()[:DIGITS]


def expected() -> dict[str, str]:
    """The recorded hash of every run."""
    return json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}


def differences(found: dict[str, str], known: set[str]) -> list[str]:
    """The differences between found and expected hashes; `known` are the keys of all existing runs."""
    wanted = expected()
    changed = [
        f"{key}: {wanted.get(key, 'nothing')} expected, {value} found"
        for key, value in found.items()
        if value != wanted.get(key)
    ]
    return changed + [f"{key}: expected, but there is no such run" for key in sorted(wanted.keys() - known)]


def measure(options: Options) -> Result:
    """Computes the hashes, prints them, and compares or writes them. Raises ValueError for an unknown run."""
    began = time.process_time()
    every = matrix(seed=options.seed, logs=options.logs)
    if options.show:
        if options.show not in every:
            raise ValueError(f"there is no run {options.show!r}")
        print(*every[options.show][1](), sep="\n")
        return Result()
    runs = matrix(quick=True, seed=options.seed) if options.quick else every
    found: dict[str, str] = {}
    skipped: dict[str, int] = {}
    for key, (log, decisions) in runs.items():
        if not fnmatch.fnmatchcase(key, options.only):
            continue
        if log and not (options.logs / log).exists():
            skipped[log] = skipped.get(log, 0) + 1
            continue
        found[key] = hashed(decisions)
        if not options.json and not options.check:
            print(found[key], key, flush=True)
    for log, count in skipped.items():
        print(f"skipped: {count} runs, for {options.logs / log} is not there", file=sys.stderr)
    print(f"{len(found)} runs in {time.process_time() - began:.0f} s of CPU time", file=sys.stderr)
    if options.write:
        kept = {key: value for key, value in (expected() | found).items() if key in every}
        EXPECTED.parent.mkdir(exist_ok=True)
        EXPECTED.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n")
    differing = differences(found, set(every)) if options.check else []
    for line in differing:
        print(f"differs: {line}", file=sys.stderr)
    return Result(facts=found, failed=bool(differing))


if __name__ == "__main__":
    import run

    sys.exit(run.main(["decisions", *sys.argv[1:]]))
