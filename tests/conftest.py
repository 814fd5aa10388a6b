"""Which tests share a process when they run side by side (`make test`): those of a file, and those of one cluster."""

from __future__ import annotations

import pytest

SHARED = ("cluster", "running")
"""Fixtures of a whole session that take long to start: a Slurm, a Nova. The tests of each share one process."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Gives a test its group for `--dist loadgroup`: a fixture of a module, or one of SHARED, is made once."""
    known = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    group = item.nodeid.partition("::")[0]
    for name in SHARED:
        if name in known and known[name][-1].scope == "session":
            group = f"{item.path.parent.name} {name}"
    item.add_marker(pytest.mark.xdist_group(group))
