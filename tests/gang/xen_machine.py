"""The emulated machine under a real Xen, for tests: Python and the engine of this repository in its dom0."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from topolane.studies import xen_machine
from topolane.studies.xen_machine import Cores, Panicked, XenMachine

PYTHON = xen_machine.python()


class Booted:
    """A machine with two cores for domains and as many for dom0. After a panic of Xen another one is booted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.boots = folder, 0
        self.machine: XenMachine | None = None

    def run(self, command: str, seconds: float = 600.0) -> str:
        """What a line of shell printed in dom0. Emulated, Xen panics now and then, at the end of a domain or when a pool is
        made; then the line runs once more, on a machine that has just booted."""
        for _ in range(2):
            machine = self.machine or self.boot()
            try:
                return machine.run(command, seconds)
            except Panicked as error:
                self.end()
                panic = error
        raise panic

    def boot(self) -> XenMachine:
        folder = self.folder / f"boot{self.boots}"
        folder.mkdir()
        self.boots += 1
        self.machine = XenMachine(folder, Cores(2))
        return self.machine

    def end(self) -> None:
        if self.machine is not None:
            self.machine.end()
            self.machine = None


@contextmanager
def booted(folder: Path) -> Iterator[Booted]:
    """Skips where there can be no such machine."""
    if reason := xen_machine.missing():
        pytest.skip(reason)
    machine = Booted(folder)
    try:
        machine.boot()
        yield machine
    finally:
        machine.end()
