"""Attacks an earlier commit and this tree with the same tests, and prints which attacks succeed.

    python tests/security/before_and_after.py COMMIT|FOLDER [--json]

A commit is checked out and built in a folder of its own, which takes some minutes; a folder holds a built checkout.
An attack that an older tree cannot run, because a name it needs did not exist there, is "not run": it proves nothing.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[1]
OTHER_NAMES = re.compile(
    r"No module named 'topolane|cannot import name|has no attribute|unexpected keyword argument|required positional argument"
)
"""What Python prints if a tree has other names than the tests use."""


@contextlib.contextmanager
def checkout(before: str, place: Path) -> Iterator[Path]:
    """The built tree of a commit, or the folder that is named."""
    if Path(before).is_dir():
        yield Path(before).resolve()
        return
    subprocess.run(["git", "worktree", "add", "--detach", place, before], cwd=TREE, check=True)
    try:
        subprocess.run(["make", "build", ".venv/.test-installed"], cwd=place, check=True, stdout=sys.stderr)
        yield place
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", place], cwd=TREE)


def outcomes(tree: Path, report: Path) -> dict[str, str]:
    """The outcome of every test here, run by the Python environment of a tree."""
    command = [tree / ".venv/bin/python", "-m", "pytest", "-q", "-c", TREE / "pyproject.toml", HERE]
    subprocess.run([*command, f"--junit-xml={report}"], cwd=tree, stdout=sys.stderr)
    found = {}
    for case in xml.parse(report).getroot().iter("testcase"):
        found[f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"] = outcome(case)
    return found


def outcome(case: xml.Element) -> str:
    """What became of an attack: it succeeds, fails, or is not run."""
    kinds = {child.tag for child in case}
    if "skipped" in kinds:
        return "skipped"
    if not kinds & {"failure", "error"}:
        return "fails"
    said = " ".join(f"{child.get('message', '')} {child.text or ''}" for child in case)
    return "not run" if OTHER_NAMES.search(said) else "succeeds"


def rules() -> dict[str, str]:
    """The first sentence of every test's docstring, by file and function."""
    found = {}
    for file in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                text = " ".join((ast.get_docstring(node) or node.name).split())
                found[f"{file.stem}::{node.name}"] = text.split(": ")[0].split(". ")[0].rstrip(".")
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("before", metavar="COMMIT|FOLDER")
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="before-") as folder:
        with checkout(chosen.before, Path(folder) / "tree") as tree:
            then = outcomes(tree, Path(folder) / "before.xml")
        now = outcomes(TREE, Path(folder) / "now.xml")
    said = rules()
    rows = [
        {
            "test": name,
            "rule": said.get(name.partition("[")[0], name),
            "before": then.get(name, "not run"),
            "now": now[name],
        }
        for name in now
    ]
    if chosen.json:
        print(json.dumps(rows, indent=2))
        return
    print("the attack     before    now      rule that it breaks")
    for row in rows:
        case = "[" + row["test"].partition("[")[2] if "[" in row["test"] else ""
        print(f"               {row['before']:<9} {row['now']:<8} {row['rule']} {case}".rstrip())


if __name__ == "__main__":
    main()
