"""How the tests run side by side (`make test`), and which of them need nothing but Topolane (`make check`)."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pytest

ALONE = (
    "tests/gang/test_gang_agent.py",
    "tests/gang/test_gang_commands.py",
    "tests/gang/test_gang_faults.py",
    "tests/gang/test_gang_groups.py",
    "tests/gang/test_gang_meetings.py",
    "tests/gang/test_gang_metrics.py",
    "tests/gang/test_gang_shares.py",
    "tests/gang/test_gang_try.py",
    "tests/gang/test_gang_v2_only.py",
    "tests/gang/test_gang_workloads.py",
    "tests/gang/test_guests.py",
    "tests/gang/test_paper_gang.py",
    "tests/gang/test_slurm_steps.py",
    "tests/gang/test_xen_gangs.py",
    "tests/gang/test_xen_machine.py",
    "tests/gang/test_xen_study.py",
)
"""They measure who runs on this machine's cores and for how long, so nothing else may run at the same time."""

COMPONENTS = (
    "tests/calibrate/test_real_mpi.py",
    "tests/calibrate/test_recovery.py",
    "tests/capi",
    "tests/cli/test_dask.py",
    "tests/docs/test_guide_commands.py",
    "tests/fabric/test_ibsim.py",
    "tests/fabric/test_lfts.py",
    "tests/fabric/test_routes.py",
    "tests/flux",
    "tests/kubernetes",
    "tests/mpi",
    "tests/nova",
    "tests/rank_k",
    "tests/release",
    "tests/report/test_browser.py",
    "tests/security",
    "tests/serve",
    "tests/sites",
    "tests/slurm",
    "tests/validation",
)
"""They start other programs (Slurm, Nova, an MPI, guests, a browser), or take long, but for UNITS."""

UNITS = (
    *(
        f"tests/nova/test_nova_{topic}.py"
        for topic in ("aggregates", "apply", "defragmentation", "in_flight", "room_order", "underway")
    ),
    "tests/flux/test_flux_requests.py",
    *(f"tests/security/test_{topic}.py" for topic in ("audit", "nesting", "python_readers")),
    *(
        f"tests/sites/test_{topic}.py"
        for topic in ("bisect", "clusters", "dry_run", "forgetting", "frames", "moves")
    ),
    *(f"tests/sites/test_{topic}.py" for topic in ("plans", "sites_file")),
    *(
        f"tests/slurm/test_{topic}.py"
        for topic in (
            "gres",
            "job_numbers",
            "looks",
            "outages_command",
            "plugin_state",
            "slurm_routes",
            "versions",
        )
    ),
)

ON_SHARED_CLUSTER = ("moving_slurm",)
"""Tests of Slurm that share one cluster. All the others start the clusters that they need, or need none."""

WITHOUT_CLOUD = ("aggregates", "in_flight", "measured", "room_order", "sample", "underway")
"""Tests of Nova that need no Nova."""

FIRST = (
    "tests/slurm/test_plugin_faults.py",
    "tests/slurm/test_plugin.py",
    "slurm cluster",
    "nova",
    "tests/docs/test_guide_commands.py::test_the_commands_of_a_page_do_what_it_says[docs/tutorials/first-comparison.md]",
    "tests/slurm/test_plugin_outages.py",
    "tests/slurm/test_owned_routes.py",
    "tests/slurm/test_status.py",
    "tests/slurm/test_without_engine.py",
    "tests/slurm/test_shadow.py",
    "tests/docs/test_guide_commands.py",
    "tests/security/test_migration.py",
    "tests/sites",
    "tests/mpi",
    "tests/nova/test_paper_nova.py",
)
"""The longest groups of tests begin first, so that none of them is left at the end."""

hypothesis.settings.register_profile("fixed", derandomize=True, database=None)
hypothesis.settings.register_profile("explore", max_examples=300, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def _of_prometheus(program: str) -> str:
    """A program of Prometheus. `make test` puts it beside the interpreter."""
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


def pytest_configure(config: pytest.Config) -> None:
    """Gives Open MPI a directory of this process. Programs that start at the same time race for its usual one, and one of
    them can fail."""
    directory = tempfile.mkdtemp(prefix="ompi-")
    os.environ |= {"OMPI_MCA_orte_tmpdir_base": directory}
    config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))


def group_of(nodeid: str) -> str:
    """The tests of a group run in one process, so that a fixture which they share is made once."""
    file = nodeid.partition("::")[0]
    _, package, name = f"{file}//".split("/")[:3]
    topic = name.removeprefix("test_").removesuffix(".py")
    if package == "slurm" and topic in ON_SHARED_CLUSTER:
        return "slurm cluster"
    if package == "nova" and topic.removeprefix("nova_") not in (*WITHOUT_CLOUD, "paper_nova"):
        return "nova"
    if package == "docs":
        return nodeid
    if package == "mpi" and (found := re.search(r"\[(mpich|openmpi)\b", nodeid)):
        return f"{file} {found[1]}"
    return file


def place_of(item: pytest.Item) -> int:
    group = group_of(item.nodeid)
    return next((place for place, name in enumerate(FIRST) if group.startswith(name)), len(FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives a process one group after the other."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return Groups(config, log)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks what runs alone and what starts other programs."""
    file = item.nodeid.partition("::")[0]
    if file in ALONE:
        item.add_marker(pytest.mark.alone)
    if file.startswith(COMPONENTS) and file not in UNITS:
        item.add_marker(pytest.mark.components)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest groups first."""
    items.sort(key=place_of)
