"""How the tests run side by side (`make test`), and which of them need nothing but Topolane (`make check`)."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import suites

hypothesis.settings.register_profile("fixed", derandomize=True, database=None)
hypothesis.settings.register_profile("explore", max_examples=300, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def _of_prometheus(program: str) -> str:
    """A program of Prometheus. `make test` puts it next to the interpreter."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    found = shutil.which(program, path=places)
    if found is None:
        pytest.skip(f"{program} is missing: it is in the Debian package prometheus")
    return found


@pytest.fixture(scope="session")
def promtool() -> str:
    """Prometheus's own check of metrics and rules."""
    return _of_prometheus("promtool")


@pytest.fixture(scope="session")
def prometheus() -> str:
    """Prometheus itself."""
    return _of_prometheus("prometheus")


class _Failures:
    """Prints the name of a test and the end of its error when it fails. The whole text comes when all tests have ended, which is
    late in a deep suite and never in a run that is ended from outside."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        printer = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and printer is not None:
            last = report.longreprtext.strip().splitlines()[-1:]
            printer.write_line("")
            printer.write_line(" ".join([f"FAILED {report.nodeid} ({report.when}):", *last]))


def pytest_configure(config: pytest.Config) -> None:
    """Gives Open MPI a directory of this process. Programs that start at the same time race for its usual one, and one of
    them can fail."""
    directory = tempfile.mkdtemp(prefix="ompi-")
    os.environ |= {"OMPI_MCA_orte_tmpdir_base": directory}
    config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
    if hasattr(config, "workerinput"):
        # Its folder lies in one that only the process that started it has (tools/enclosed).
        Path(config.option.basetemp).parent.mkdir(parents=True, exist_ok=True)
        return
    config.pluginmanager.register(_Failures(config))
    if config.pluginmanager.hasplugin("xdist"):
        from xdist.workermanage import NodeManager

        # A process that is killed because it ends slowly takes the record of its CPU time with it.
        NodeManager.EXIT_TIMEOUT = 120


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives a process one group after the other."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return suites.group_of(nodeid)

    return Groups(config, log)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks what runs alone, what starts other programs, and what `make test` leaves to `make test-live`."""
    if item.nodeid.partition("::")[0] in suites.ALONE:
        item.add_marker(pytest.mark.alone)
    if suites.suite_of(item.nodeid) is not None:
        item.add_marker(pytest.mark.components)
    if suites.is_live(item.nodeid):
        item.add_marker(pytest.mark.live)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest groups first."""
    items.sort(key=lambda item: suites.place_of(item.nodeid))
