"""Selects the live suites to run: those whose tests or sources changed since they last passed here, or since
the last tag.

live_suites.py [MINUTES]: prints those for which there is time.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TREE / "tests")]

from suites import SUITES, Suite

LIMIT = 75 * 60
"""The time limit of `.ci/run`, in seconds."""
PASSED = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "topolane" / "live-suites.json"
"""For each suite that passed on this machine: a digest of it then (`state`), and the seconds that it took."""


SHARED = (
    "tests/suites.py",
    "conftest.py",
    "tests/waiting.py",
    "tests/quiet_cores.py",
    "tools/enclosed",
)
"""Files that the tests of every suite use."""


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=TREE, capture_output=True, text=True).stdout.strip()


def state(suite: Suite, commit: str = "HEAD") -> str:
    """A digest of a suite and everything that it tests, in a commit."""
    listed = git("ls-tree", "-r", commit, "--", *suite.tests, *suite.sources, *SHARED)
    return hashlib.sha256(listed.encode()).hexdigest()


def known() -> dict[str, dict[str, str | float]]:
    """The suites that passed here. An unreadable record counts as empty, so that they run again."""
    try:
        found = json.loads(PASSED.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def note(seconds: Mapping[str, float]) -> None:
    """Records that these suites passed as they are in HEAD. Nothing is recorded if the tree has uncommitted
    changes.
    """
    if not seconds or git("status", "--porcelain", "--untracked-files=no"):
        return
    new = {name: {"state": state(SUITES[name]), "seconds": round(took)} for name, took in seconds.items()}
    PASSED.parent.mkdir(parents=True, exist_ok=True)
    part = PASSED.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(known() | new, indent=1))
    part.replace(PASSED)


def chosen(left: float) -> list[str]:
    """The suites to run in `left` seconds. Prints for each why it runs or not."""
    passed, tag = known(), git("describe", "--tags", "--abbrev=0")
    names, skipped = [], []
    for name, suite in SUITES.items():
        now, before = state(suite), passed.get(name, {})
        if before.get("state") == now:
            print(f"live suite {name}: not run, it passed here as it is")
        elif tag and state(suite, tag) == now:
            print(f"live suite {name}: not run, nothing of it changed since {tag}")
        else:
            took = float(before.get("seconds", suite.seconds))
            if took <= left:
                why = (
                    "changed since it passed here"
                    if before
                    else f"changed since {tag}"
                    if tag
                    else "has not passed here yet"
                )
                print(f"live suite {name}: run, it {why} (about {took:.0f} s)")
                names.append(name)
                left -= took
            else:
                skipped.append(name)
    for name in skipped:
        print(f"live suite {name}: LEFT FOR THE NEXT RUN, there is no time for it now")
    sys.stdout.flush()
    return names


if __name__ == "__main__":
    chosen(60 * float(sys.argv[1]) if len(sys.argv) > 1 else LIMIT)
