"""The emulated machine under a real Xen, for tests: Python and the engine of this repository in its dom0."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from topolane.studies import xen_machine
from topolane.studies.xen_machine import Cores, XenMachine

PYTHON = xen_machine.python()


@contextmanager
def booted(folder: Path) -> Iterator[XenMachine]:
    """A machine with two cores for domains and as many for dom0. Skips where there can be none."""
    if reason := xen_machine.missing():
        pytest.skip(reason)
    with XenMachine(folder, Cores(2)) as machine:
        yield machine
