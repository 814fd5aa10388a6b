"""What tests of Slurm share: another release of Slurm, the plugin built for it, and a deadline."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import RELEASE, Inside, Missing, other_version, slurm_source
from shared_cluster import cluster, mended, pytest_runtest_makereport, slurm
from topolane.slurm import plugin_build

__all__ = ["cluster", "mended", "pytest_runtest_makereport", "slurm"]

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def inside() -> Iterator[Inside]:
    """The Slurm of RELEASE, unpacked from packages of a distribution. Skips where it cannot be had."""
    with contextlib.ExitStack() as stack:
        try:
            entered = stack.enter_context(other_version(RELEASE))
        except Missing as missing:
            pytest.skip(str(missing).strip() or "the other Slurm cannot be had")
        yield entered


@pytest.fixture(scope="session")
def source() -> Path:
    """The headers of that Slurm. Skips where they cannot be had."""
    try:
        return slurm_source(RELEASE)
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def engine() -> Path:
    """The engine, with the function that panics. TOPOLANE_TEST_ENGINE names one; otherwise it is compiled."""
    if "TOPOLANE_TEST_ENGINE" in os.environ:
        return Path(os.environ["TOPOLANE_TEST_ENGINE"])
    if shutil.which("cargo") is None:
        pytest.skip("cargo is missing")
    crate = HERE.parents[1] / "crates" / "capi"
    command = ["cargo", "build", "--profile", "quick", "--locked", "--quiet", "-p", "topolane-capi"]
    subprocess.run([*command, "--features", "test-panic"], check=True, cwd=crate)
    metadata = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"]
    metadata_text = subprocess.run(metadata, check=True, cwd=crate, capture_output=True, text=True).stdout
    return (
        Path(metadata_text.partition('"target_directory":"')[2].partition('"')[0])
        / "quick"
        / plugin_build.ENGINE
    )


@pytest.fixture(scope="session")
def built(engine: Path, source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin, the one of the commands, and the engine."""
    directory = tmp_path_factory.mktemp("built")
    assert plugin_build.build(source, engine, "cc", directory).startswith(f"{RELEASE}.")
    return directory


PLAN_SECONDS = 60
"""Tests of plans on records made by hand take a second. A plan that waits for ever fails after this time."""


@pytest.fixture(autouse=True)
def deadline(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ends a test of plans that waits for ever: what it waits for is in the same process, so nothing else ends it."""
    if not request.path.name.endswith("_plan_files.py"):
        yield
        return

    def late(*_: object) -> None:
        raise AssertionError(f"not within {PLAN_SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PLAN_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
