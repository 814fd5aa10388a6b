"""The tests of native/kubernetes, which need no control plane."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "target" / "quick"
SOURCES = ROOT / "native" / "kubernetes"


@pytest.mark.skipif(shutil.which("go") is None, reason="go is missing")
@pytest.mark.skipif(not (ENGINE / "libtopolane.a").exists(), reason="make components builds the engine")
def test_the_plugin_by_its_own_tests() -> None:
    """`go test`, with the engine that the scheduler is linked with."""
    flags = {"CGO_LDFLAGS": f"-L{ENGINE}"}
    done = subprocess.run(
        ["go", "test", "./..."], cwd=SOURCES, env=os.environ | flags, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("gofmt") is None, reason="gofmt is missing")
def test_go_files_are_formatted() -> None:
    done = subprocess.run(["gofmt", "-l", "."], cwd=SOURCES, capture_output=True, text=True, check=True)
    assert done.stdout == ""
