"""Which tests `make test` runs, and which belong to the deep suites of `make test-live`.

A folder of a suite holds tests that start other programs or take long. Three kinds are in `make test` all the same: the units,
which start no other program, and the main path and the worst failure of each host. All the others are marked `live`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    tests: Sequence[str]
    """Files and folders."""
    sources: Sequence[str]
    """What these tests test: the suite runs again when one of these or of the tests has changed."""
    main: Sequence[str]
    """Beginnings of the tests that `make test` runs: the main path on the real component, and its worst failure."""
    seconds: float
    """About how long the suite takes on two cores."""
    workers: int = 4
    """Processes: more than there are cores where most tests wait for the host."""


def _files(folder: str, *topics: str) -> list[str]:
    return [f"tests/{folder}/test_{topic}.py" for topic in topics]


SUITES = {
    "slurm": Suite(
        ["tests/slurm"],
        ["native/slurm", "crates/capi", "python/topolane/slurm", "python/topolane/cluster"],
        [
            *_files("slurm", "candidates", "drain_plan_files", "plugin_parts", "room_plan_files"),
            "tests/slurm/test_plugin.py::test_a_promise_obeys_the_rule",
            "tests/slurm/test_plugin.py::test_a_job_waits_for_links_and_starts_when_they_are_free",
            "tests/slurm/test_plugin.py::test_links_that_jobs_own_survive_slurmctld",
            "tests/slurm/test_plugin.py::test_a_fault_of_the_engine_leaves_the_job_to_stock_slurm",
        ],
        850,
    ),
    "kubernetes": Suite(
        ["tests/kubernetes"],
        [
            "native/kubernetes",
            "crates/capi",
            "deploy",
            "python/topolane/kubernetes",
            "python/topolane/cluster",
        ],
        [
            *_files(
                "kubernetes",
                "go",
                "k8s_hostile",
                "k8s_proofs",
                "k8s_readers",
                "k8s_room_files",
                "same_victims",
            ),
            "tests/kubernetes/test_kube_scheduler.py::test_a_group_is_placed_whole_and_in_rank_order",
            "tests/kubernetes/test_kube_scheduler.py::test_isolated_groups_share_no_link",
            "tests/kubernetes/test_kube_scheduler.py::test_links_outlive_kill_9",
        ],
        330,
        workers=2,
    ),
    "nova": Suite(
        ["tests/nova"],
        ["python/topolane/nova", "python/topolane/cluster"],
        [
            *(
                f"tests/nova/test_nova_{topic}.py"
                for topic in ("fuzz", "kolla", "measured", "sample", "schedulers")
            ),
            "tests/nova/test_nova_isolated.py::test_no_two_groups_cross_a_leaf_or_a_pod",
            "tests/nova/test_nova_isolated.py::test_isolated_groups_asked_for_at_once_cross_nothing_in_common",
            "tests/nova/test_nova_isolated.py::test_after_an_error_no_isolated_group_is_placed_and_others_are_novas",
        ],
        360,
    ),
    "flux": Suite(
        ["tests/flux"],
        ["python/topolane/flux", "python/topolane/cluster"],
        [
            "tests/flux/test_flux_scheduler.py::test_no_node_and_no_link_is_shared_under_a_random_mix",
            "tests/flux/test_flux_scheduler.py::test_a_failing_engine_stops_nothing",
        ],
        120,
    ),
    "sites": Suite(
        ["sites/tests"],
        ["crates/sites", "native/mpi", "sites/topolane_sites"],
        [
            *(
                f"sites/tests/test_{topic}.py"
                for topic in ("api", "planning", "predicted_time", "processors", "receiver", "state")
            ),
            "sites/tests/test_moving_qmp.py::test_a_moved_guest_counts_on_at_its_target_alone",
            "sites/tests/test_moving_qmp.py::test_a_target_that_dies_while_memory_is_copied",
            "sites/tests/test_moving_qmp.py::test_a_mover_killed_at_any_step_leaves_one_copy",
        ],
        300,
    ),
    "gang": Suite(
        ["gang/tests"],
        ["crates/gang", "gang/topolane_gang"],
        [
            "gang/tests/test_gang_hypervisor.py",
            "gang/tests/test_locks.py",
            "gang/tests/test_xen_lists.py",
            "gang/tests/test_gang_agent.py",
            "gang/tests/test_gang_faults.py::test_all_jobs_run_when_the_agent_is_killed",
        ],
        900,
    ),
    "studies": Suite(
        [
            *(
                f"studies/tests/test_paper_{topic}.py"
                for topic in ("nova", "processors", "rows", "sites", "trace")
            ),
            "studies/tests/test_two_level_simulated.py",
        ],
        [
            "studies/topolane_studies",
            "native/mpi",
            "docs/reference/paper-rows.md",
            *(f"docs/explanation/{topic}-paper.md" for topic in ("hop-bytes", "sc18", "sites")),
        ],
        [],
        900,
    ),
    "mpi": Suite(
        ["tests/mpi", "tests/calibrate", "tests/rank_k", "tests/validation"],
        ["native/mpi", "native/calibrate", "python/topolane/mpi", "python/topolane/calibrate"],
        [
            *_files("mpi", "matrix_closed_form", "matrix_uses"),
            *_files("calibrate", "fit", "refusals"),
            "tests/mpi/test_two_level.py::test_every_byte_is_as_mpi_leaves_it",
        ],
        140,
    ),
    "pages": Suite(
        [
            "tests/serve",
            "tests/docs/test_guide_commands.py",
            "tests/docs/test_notebook.py",
            "tests/report/test_browser.py",
        ],
        [
            "docs",
            "README.md",
            "web",
            "python/topolane/serve",
            "python/topolane/report",
            "python/topolane/panels.py",
            "python/topolane/cli",
        ],
        [
            *_files("serve", *(f"serve_{topic}" for topic in ("api", "comparison", "history", "metrics"))),
            "tests/serve/test_serve_browser.py::test_the_page_shows_the_machine",
            "tests/serve/test_serve_browser.py::test_why_a_job_waits",
            *_files(
                "serve",
                *(f"serve_{topic}" for topic in ("forecast", "reservations", "shadow_log", "wirings")),
            ),
        ],
        130,
    ),
    "engine": Suite(
        [
            "tests/security",
            "tests/release",
            "tests/capi",
            "tests/api/test_decisions.py",
            "tests/benches/test_inference_bench.py",
            "tests/cli/test_dask.py",
            *_files("fabric", "ibsim", "lfts", "routes"),
        ],
        ["benches", "crates", "python/topolane", "packaging"],
        [
            "tests/capi",
            *_files("security", "files", "page", "readers"),
        ],
        120,
    ),
}

HOSTS = tuple(name for name, suite in SUITES.items() if "python/topolane/cluster" in suite.sources)
"""The live systems: the suites of packages that `cluster` serves."""

UNITS = (
    *(
        f"tests/nova/test_nova_{topic}.py"
        for topic in ("aggregates", "apply", "defragmentation", "in_flight", "room_order", "underway", "view")
    ),
    "tests/flux/test_flux_requests.py",
    *(f"tests/security/test_{topic}.py" for topic in ("audit", "nesting", "python_readers")),
    *(
        f"sites/tests/test_{topic}.py"
        for topic in ("bisect", "clusters", "dry_run", "forgetting", "frames", "moves")
    ),
    *(
        f"sites/tests/test_{topic}.py"
        for topic in ("plans", "sites_drafts", "sites_file", "sites_nesting", "sites_readers")
    ),
    *(f"gang/tests/test_gang_{topic}.py" for topic in ("nesting", "readers")),
    *(
        f"tests/slurm/test_{topic}.py"
        for topic in (
            "gres",
            "hypothetical",
            "job_numbers",
            "looks",
            "one_view",
            "outages_command",
            "plugin_state",
            "shadows",
            "slurm_routes",
            "slurm_views",
            "versions",
        )
    ),
)
"""Tests in these folders that start no other program."""

ALONE = (
    "gang/tests/test_gang_agent.py",
    "gang/tests/test_gang_commands.py",
    "gang/tests/test_gang_faults.py",
    "gang/tests/test_gang_groups.py",
    "gang/tests/test_gang_meetings.py",
    "gang/tests/test_gang_metrics.py",
    "gang/tests/test_gang_shares.py",
    "gang/tests/test_gang_try.py",
    "gang/tests/test_gang_v2_only.py",
    "gang/tests/test_gang_workloads.py",
    "gang/tests/test_guests.py",
    "gang/tests/test_paper_gang.py",
    "gang/tests/test_slurm_steps.py",
    "gang/tests/test_xen_gangs.py",
    "gang/tests/test_xen_machine.py",
    "gang/tests/test_xen_study.py",
)
"""They measure who runs on this machine's cores and for how long, so nothing else may run at the same time."""

WITHOUT_CLOUD = ("aggregates", "in_flight", "measured", "room_order", "sample", "underway", "view")
"""Tests of Nova that need no Nova."""

ON_CLOUD = ("sites/tests/test_moving_nova.py", "sites/tests/test_nova_measured_cloud.py")
"""Tests of wings that use the cloud of Nova's tests."""

FIRST = (
    "tests/slurm/test_plugin_faults.py",
    "tests/slurm/test_plugin.py",
    "sites/tests/test_moving_slurm.py",
    "nova",
    "tests/docs/test_guide_commands.py::test_the_commands_of_a_page_do_what_it_says[docs/tutorials/first-comparison.md]",
    "tests/slurm/test_plugin_outages.py",
    "tests/slurm/test_owned_routes.py",
    "tests/slurm/test_status.py",
    "tests/slurm/test_without_engine.py",
    "tests/slurm/test_shadow.py",
    "tests/docs/test_guide_commands.py",
    "sites/tests/test_migration.py",
    "sites/tests",
    "tests/mpi",
    "studies/tests/test_paper_nova.py",
)
"""The longest groups of tests begin first, so that none of them is left at the end."""


def suite_of(nodeid: str) -> str | None:
    """The suite that a test belongs to; None for one that starts no other program and ends soon."""
    file = nodeid.partition("::")[0]
    if file in UNITS:
        return None
    return next((name for name, suite in SUITES.items() if file.startswith(tuple(suite.tests))), None)


def is_live(nodeid: str) -> bool:
    """Whether `make test` leaves a test to `make test-live`."""
    name = suite_of(nodeid)
    return name is not None and not nodeid.startswith(tuple(SUITES[name].main))


def group_of(nodeid: str) -> str:
    """The tests of a group run in one process, so that a fixture which they share is made once."""
    file = nodeid.partition("::")[0]
    if file in ON_CLOUD:
        return "nova"
    _, package, name = f"{file}//".split("/")[:3]
    topic = name.removeprefix("test_").removesuffix(".py")
    if package == "nova" and topic.removeprefix("nova_") not in WITHOUT_CLOUD:
        return "nova"
    if package == "docs":
        return nodeid
    if package == "mpi" and (found := re.search(r"\[(mpich|openmpi)\b", nodeid)):
        return f"{file} {found[1]}"
    return file


def place_of(nodeid: str) -> int:
    """The place of a test's group in FIRST."""
    group = group_of(nodeid)
    return next((place for place, name in enumerate(FIRST) if group.startswith(name)), len(FIRST))
