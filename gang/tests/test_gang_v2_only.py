"""Gangs on a machine that has control groups version 2 alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import containers
import pytest
import v2_machine

CHECKS = Path(__file__).with_name("v2_checks.py")

if os.geteuid() != 0:
    pytest.skip("the machine's files are shared by root", allow_module_level=True)
if reason := v2_machine.missing():
    pytest.skip(reason, allow_module_level=True)


def check(folder: Path, *words: str) -> None:
    """Runs a function of v2_checks.py in the machine."""
    path = os.pathsep.join(path for path in sys.path if path)
    environment = f"PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={path}"
    code, said = v2_machine.run(folder, f"{environment} {sys.executable} {CHECKS} {' '.join(words)}", 900)
    assert code == 0, said
    assert "all is well" in said, said


def test_threads_and_units_of_systemd_are_stopped_where_only_version_2_is(tmp_path: Path) -> None:
    """Rule: without any controller of version 1, a thread is stopped while its sibling runs on, a unit of systemd is
    frozen in place, systemd may restart it meanwhile, and all run when the agent has ended or was killed."""
    check(tmp_path, "units")


@pytest.mark.parametrize("runtime", ["crun", "runc"])
def test_a_container_of_a_real_runtime_is_stopped_in_place(tmp_path: Path, runtime: str) -> None:
    """Rule: a container is found by the beginning of its ID, frozen in place and let go; its runtime may kill it
    meanwhile. A paused container is refused."""
    if reason := containers.missing(runtime):
        pytest.skip(reason)
    check(tmp_path, "container", runtime)
