"""The emulated machine under a real Xen, for tests: Python and the engine of this repository in its dom0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from topolane_gang.study import xen_machine
from topolane_gang.study.xen_machine import Cores, Panicked, XenMachine

PYTHON = xen_machine.python()
T = TypeVar("T")
TRIES = 4


class Booted:
    """A machine with two cores for domains and as many for dom0. After a panic of Xen another one is booted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.boots = folder, 0
        self.machine: XenMachine | None = None

    def run(self, command: str, seconds: float = 600.0) -> str:
        """What a line of shell printed in dom0."""
        return self.again(lambda machine: machine.run(command, seconds))

    def again(self, part: Callable[[XenMachine], T]) -> T:
        """The result of a part of a test. Emulated, Xen panics or hangs now and then, at the end of a domain or when a pool is made;
        then the part runs again, on a machine that has just booted."""
        for _ in range(TRIES):
            try:
                return part(self.machine or self.boot())
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

    def processes(self) -> list[int]:
        """Those of the machine that runs now."""
        return [program.pid for program in self.machine.programs] if self.machine else []

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
        machine.again(lambda _: None)
        yield machine
    finally:
        machine.end()
