"""Which tests share a process when they run side by side (`make test`): those of a file, and those of one cluster."""

from __future__ import annotations

import pytest

SHARED = ("cluster", "running")
"""Fixtures of a whole session that take long to start: a Slurm, a Nova. The tests of each share one process."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups for `--dist loadgroup`: a fixture of a module, or one of SHARED, is made once."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    known = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    for name in SHARED:
        if name in known and known[name][-1].scope == "session":
            return f"{item.path.parent.name} {name}"
    return item.nodeid.partition("::")[0]
