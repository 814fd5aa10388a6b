"""What `make audit` says: a part that no database answered for is never called free of weaknesses."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

TREE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def audit() -> dict[str, Any]:
    """The names of tools/audit.py."""
    return runpy.run_path(str(TREE / "tools/audit.py"))


def test_packages_that_could_not_be_audited_are_not_called_safe(audit: dict[str, Any]) -> None:
    """Of 271 packages of which 267 were skipped, 4 were checked; of 271 that were all skipped, nothing is known."""
    asked = [{"name": f"p{number}", "version": "1", "vulns": []} for number in range(4)]
    skipped = [{"name": f"q{number}", "skip_reason": "no answer"} for number in range(267)]
    said, is_bad = audit["of_pip"]({"dependencies": asked + skipped})
    assert said.startswith("Python packages: 4 checked, no known weaknesses; 267 NOT checked") and not is_bad
    said, is_bad = audit["of_pip"]({"dependencies": skipped})
    assert said.startswith("Python packages: 267 NOT checked") and not is_bad
    asked[2]["vulns"] = [{"id": "PYSEC-2026-1"}]
    said, is_bad = audit["of_pip"]({"dependencies": asked + skipped})
    assert "1 known weaknesses" in said and "p2 1: PYSEC-2026-1" in said and is_bad


def test_a_database_that_does_not_answer_checks_nothing(audit: dict[str, Any]) -> None:
    """An error of govulncheck or of npm means that nothing was checked; what they find fails the audit."""
    said, is_bad = audit["of_go"](
        "here", 3, 1, "govulncheck: fetching vulnerabilities: no such host\nexit status 1"
    )
    assert said == "Go modules of here: 3 NOT checked (govulncheck: fetching vulnerabilities: no such host)"
    assert not is_bad
    assert audit["of_go"]("here", 3, 0, "No vulnerabilities found.")[0].endswith(
        "3 checked, no known weaknesses"
    )
    said, is_bad = audit["of_go"]("here", 3, audit["FOUND"], "Vulnerability #1: GO-2026-1234\n")
    assert is_bad and "GO-2026-1234" in said
    for text in ("", "{}", '{"error": {"code": "ENOAUDIT"}}', "[]", "npm error"):
        said, is_bad = audit["of_npm"](5, text)
        assert said.startswith("npm packages: 5 NOT checked") and not is_bad
    found = json.dumps({"vulnerabilities": {"one": {"severity": "high"}}})
    assert audit["of_npm"](5, found) == ("npm packages: 5 checked, 1 known weaknesses\n  one: high", True)


def test_images_without_a_digest_are_named(audit: dict[str, Any], tmp_path: Path) -> None:
    """An image by tag is named with its file; one by digest, a stage of the same file, and our own image are not."""
    digest = "docker.io/library/debian@sha256:" + "0" * 64
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy/Containerfile").write_text(
        f"ARG BASE={digest}\nARG GO=golang:1\nFROM ${{GO}} AS one\nFROM one AS two\nFROM ${{BASE}}\n"
    )
    (tmp_path / "deploy/some.yaml").write_text(
        "- image: registry/topolane-scheduler:1\n  image: pytorch/pytorch\n"
    )
    named = list(audit["images"](tmp_path))
    assert named == [
        ("deploy/Containerfile", "golang:1"),
        ("deploy/Containerfile", digest),
        ("deploy/some.yaml", "pytorch/pytorch"),
    ]
    said, _ = audit["of_images"](named)
    assert "1 pinned by digest, 2 NOT pinned" in said and digest not in said


def test_every_base_image_can_be_given_by_digest(audit: dict[str, Any]) -> None:
    """Each image that a file of ours builds on has its registry in its name, and is an argument of the build."""
    for file in ("deploy/kubernetes/Containerfile", "packaging/Containerfile"):
        bases = [image for name, image in audit["images"](TREE) if name == file]
        assert bases and all(image.startswith("docker.io/") for image in bases)
        assert not [
            line for line in (TREE / file).read_text().splitlines() if line.startswith("FROM docker.io")
        ]
