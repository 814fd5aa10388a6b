"""The emulated machine under a real Xen, for tests: Python and the engine of this repository in its dom0."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from topolane.studies import xen_machine
from topolane.studies.xen_machine import Cores, XenMachine

PATH = os.pathsep.join(str(Path(path or ".").absolute()) for path in sys.path)
PYTHON = f"PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={PATH} {sys.executable}"
"""In dom0: this interpreter, with all that it can import here."""


@contextmanager
def booted(folder: Path, cores: int = 2) -> Iterator[XenMachine]:
    """A machine with so many cores for domains and as many for dom0. Skips where there can be none."""
    if reason := xen_machine.missing():
        pytest.skip(reason)
    with XenMachine(folder, Cores(cores)) as machine:
        yield machine
