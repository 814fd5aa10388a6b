"""Gangs on a machine that has control groups version 2 alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import v2_machine

CHECKS = Path(__file__).with_name("v2_checks.py")

if os.geteuid() != 0:
    pytest.skip("the machine's files are shared by root", allow_module_level=True)
if reason := v2_machine.missing():
    pytest.skip(reason, allow_module_level=True)


def test_threads_and_units_are_stopped_where_only_version_2_is(tmp_path: Path) -> None:
    """Rule: without any controller of version 1, a thread is stopped while its sibling runs on, a unit is frozen in
    place, and both run when the agent has ended or was killed."""
    path = os.pathsep.join(path for path in sys.path if path)
    environment = f"PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={path}"
    code, said = v2_machine.run(tmp_path, f"{environment} {sys.executable} {CHECKS}", 900)
    assert code == 0, said
    assert "all is well" in said, said
