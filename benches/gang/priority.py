"""Gives a benchmark the largest share of the CPUs, so that other programs of the machine hardly run."""

from __future__ import annotations

import contextlib
import os
import types
from collections.abc import Iterable
from pathlib import Path

MOST = {"cpu.shares": "262144", "cpu.weight": "10000"}
"""The largest weights that the kernel accepts, in versions 1 and 2 of control groups."""


class Ahead(contextlib.AbstractContextManager["Ahead"]):
    """Puts this process and its children ahead of all other processes while the context lasts.

    Raises OSError if the cpu controller of version 1 of control groups is not available.
    """

    def __init__(self, wanted: bool) -> None:
        self._group = None
        if wanted:
            self._group = Path("/sys/fs/cgroup/cpu") / f"topolane-bench-{os.getpid()}"
            self._group.mkdir()
            self.raise_groups([self._group])
            (self._group / "cgroup.procs").write_text(str(os.getpid()))

    def raise_groups(self, groups: Iterable[Path]) -> None:
        """Gives the largest share to control groups that another program made."""
        if self._group is None:
            return
        for file in (group / name for group in groups for name in MOST):
            if file.exists():
                file.write_text(MOST[file.name])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: types.TracebackType | None
    ) -> None:
        if self._group is not None:
            for member in (self._group / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    (self._group.parent / "cgroup.procs").write_text(member)
            self._group.rmdir()
