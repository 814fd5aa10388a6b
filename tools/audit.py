"""Checks everything that Topolane depends on for known weaknesses: crates, Python packages, Go modules, npm
packages, images.

    python tools/audit.py

Each kind prints one line with the number of parts that were checked. Parts that a database did not answer for
are "NOT checked". The exit code is 1 if a weakness is known, or if a licence or a source is not allowed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

TREE = Path(__file__).resolve().parents[1]
REQUIREMENTS = ("base.txt", "test.txt", "docs.txt", "release.txt")
GO = ("native/kubernetes", "tests/kubernetes/components", "benches/kueue")
GOVULNCHECK = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"
FOUND = 3
"""The exit code of govulncheck if it found a weakness."""
DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
IMAGES = ("deploy/**/Containerfile", "packaging/**/Containerfile", "deploy/**/*.yaml", "examples/**/*.yaml")
OURS = re.compile(r"topolane(-scheduler)?(:|$)")
"""Images that a user builds from this tree."""


def run(*words: object, cwd: Path = TREE) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, and captures its output."""
    return subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True)


def line(kind: str, checked: int, unchecked: int, found: Sequence[str], why: str = "") -> tuple[str, bool]:
    """The line to print for one kind, and whether a weakness is known."""
    said = []
    if checked:
        said.append(f"{checked:,} checked, {len(found) or 'no'} known weaknesses")
    if unchecked or not checked:
        said.append(f"{unchecked:,} NOT checked" + (f" ({why})" if why else ""))
    return "\n".join([f"{kind}: {'; '.join(said)}", *(f"  {one}" for one in found)]), bool(found)


def of_pip(answer: Mapping[str, Any]) -> tuple[str, bool]:
    """The line for an answer of pip-audit, and whether a weakness is known."""
    packages = answer["dependencies"]
    skipped = [one for one in packages if "skip_reason" in one]
    found = [
        f"{one['name']} {one['version']}: {each['id']}" for one in packages for each in one.get("vulns", ())
    ]
    checked = len(packages) - len(skipped)
    return line("Python packages", checked, len(skipped), found, "their database cannot be reached here")


def of_go(module: str, modules: int, code: int, text: str) -> tuple[str, bool]:
    """The line for an answer of govulncheck, and whether a weakness is known."""
    kind = f"Go modules of {module}"
    if code == FOUND:
        return line(kind, modules, 0, sorted(set(re.findall(r"GO-[0-9]{4}-[0-9]+", text))))
    return line(kind, *((modules, 0) if code == 0 else (0, modules)), (), _last(text))


def of_npm(packages: int, text: str) -> tuple[str, bool]:
    """The line for an answer of npm audit, and whether a weakness is known."""
    try:
        answer = json.loads(text)
        known = answer["vulnerabilities"]
    except (ValueError, KeyError, TypeError):
        return line("npm packages", 0, packages, (), "their database cannot be reached here")
    return line("npm packages", packages, 0, [f"{name}: {one['severity']}" for name, one in known.items()])


def images(tree: Path) -> Iterator[tuple[str, str]]:
    """The images that files of a tree name, each with its file, except those that a user builds from the
    tree.
    """
    for pattern in IMAGES:
        for file in sorted(tree.glob(pattern)):
            text = file.read_text()
            stages = set(re.findall(r"^FROM .* AS (\S+)", text, re.MULTILINE))
            for name, value in re.findall(r"^ARG (\w+)=(\S+)", text, re.MULTILINE):
                text = text.replace(f"${{{name}}}", value)
            for image in re.findall(r"^(?:FROM|\s*(?:- )?image:) +(\S+)", text, re.MULTILINE):
                if image not in stages and not OURS.match(image.rpartition("/")[2]):
                    yield str(file.relative_to(tree)), image


def of_images(named: Sequence[tuple[str, str]]) -> tuple[str, bool]:
    """The line for images. Each must name a digest, because a tag can be moved."""
    loose = [f"{file}: {image}" for file, image in named if not DIGEST.search(image)]
    said = f"images: {len(named) - len(loose)} pinned by digest, {len(loose)} NOT pinned"
    how = ["  (packaging/README.md says how to build with digests)"] if loose else []
    return "\n".join([said, *(f"  {one}" for one in loose), *how]), False


def _last(text: str) -> str:
    said = [one for one in text.strip().splitlines() if not one.startswith("exit status")]
    return said[-1].strip() if said else "no answer"


def crates() -> Iterator[tuple[str, bool]]:
    """Checks licences, sources and weaknesses of the crates."""
    allowed = run("cargo", "deny", "--locked", "check", "licenses", "bans", "sources")
    words = "allowed" if allowed.returncode == 0 else "NOT allowed\n" + allowed.stderr
    yield f"licences and sources of crates: {words}", allowed.returncode != 0
    count = (TREE / "Cargo.lock").read_text().count("[[package]]")
    if run("cargo", "deny", "fetch", "db").returncode:
        yield line("crates", 0, count, (), "the database of RustSec cannot be fetched here")
        return
    asked = run("cargo", "deny", "--locked", "check", "--disable-fetch", "advisories")
    found = re.findall(r"RUSTSEC-[0-9]{4}-[0-9]+", asked.stderr) if asked.returncode else []
    yield line("crates", count, 0, sorted(set(found)) or ([asked.stderr] if asked.returncode else []))


def python() -> tuple[str, bool]:
    """Checks the Python packages for weaknesses."""
    files = [word for name in REQUIREMENTS for word in ("-r", TREE / "requirements" / name)]
    options = ("--require-hashes", "--disable-pip", "--progress-spinner", "off", "--format", "json")
    asked = run(Path(sys.executable).parent / "pip-audit", *options, *files)
    try:
        return of_pip(json.loads(asked.stdout))
    except ValueError:
        count = sum((TREE / "requirements" / name).read_text().count("==") for name in REQUIREMENTS)
        return line("Python packages", 0, count, (), _last(asked.stderr))


def go(module: str) -> tuple[str, bool]:
    """Checks the dependencies of a Go module for weaknesses."""
    folder = TREE / module
    count = len(re.findall(r"^\s+\S+ v[0-9]\S*", (folder / "go.mod").read_text(), re.MULTILINE))
    if shutil.which("go") is None:
        return line(f"Go modules of {module}", 0, count, (), "go is missing")
    asked = run("go", "run", GOVULNCHECK, "-scan", "module", cwd=folder)
    # `go run` replaces the program's exit code by its own.
    code = FOUND if f"exit status {FOUND}" in asked.stderr else asked.returncode
    return of_go(module, count, code, asked.stdout + asked.stderr)


def npm() -> tuple[str, bool]:
    """Checks the npm packages of the page for weaknesses."""
    packages = len(json.loads((TREE / "web/package-lock.json").read_text())["packages"]) - 1
    if shutil.which("npm") is None:
        return line("npm packages", 0, packages, (), "npm is missing")
    return of_npm(packages, run("npm", "audit", "--package-lock-only", "--json", cwd=TREE / "web").stdout)


def main() -> int:
    """Prints a line for each kind."""
    bad = False
    for said, is_bad in (
        *crates(),
        python(),
        *map(go, GO),
        npm(),
        of_images(list(dict.fromkeys(images(TREE)))),
    ):
        print(said, flush=True)
        bad |= is_bad
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
