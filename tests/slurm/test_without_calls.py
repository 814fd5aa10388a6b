"""What Slurm does without asking the plugin is in its records too, soon and without a call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Inside
from plugin_site import PARTITIONS, Site, plugin_cluster
from topolane.slurm import plugin_state
from topolane.slurm.plugin_state import PluginJobs
from waiting import until

STOCK, ISOLATED, OWNED = ("stock", "shared"), ("isolated", "isolated"), ("dedicated", "isolated")


@pytest.fixture(scope="module")
def cluster_site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("without")
    with plugin_cluster(built, inside, directory, "--partitions", PARTITIONS) as cluster:
        yield Site(cluster, built)


@pytest.fixture
def site(cluster_site: Site) -> Site:
    """The cluster without jobs, in the plugin's records too."""
    cluster_site.wait_idle()
    until(lambda: not written(cluster_site).running, "no records")
    return cluster_site


def written(site: Site) -> PluginJobs:
    """topolane_jobs as it is: Slurm is not asked to call the plugin."""
    return plugin_state.parse_jobs((site.state / plugin_state.JOBS).read_text(), plugin_state.JOBS)


def recorded(site: Site, expected: dict[int, tuple[str, str]]) -> None:
    """Waits until the records of running jobs are these: each job's policy and its use of links."""

    def are_there() -> bool:
        running = written(site).running
        return {job: (said.policy, said.link_use) for job, said in running.items()} == expected

    until(are_there, f"the records {expected}")


def test_jobs_that_stock_slurm_places(site: Site) -> None:
    """On nodes that their user named, on one node, and on any nodes."""
    words = (("-w", "node[1-2]"), ("-N", 1), ("-N", 3))
    expected = {}
    for each in words:
        expected[site.start("-p", "pstock", *each)] = STOCK
        recorded(site, expected)
    site.cluster.run("scancel", next(iter(expected)))
    del expected[next(iter(expected))]
    recorded(site, expected)


@pytest.mark.parametrize("limit", ["", "%1"])
def test_tasks_of_an_array(site: Site, limit: str) -> None:
    """Slurm gives a task its own number when it starts, and does not ask for a next task after the last one or at the limit."""
    array = site.cluster.submit("-p", "pbatch", "-N2", f"--array=1-3{limit}", script="sleep 600")
    count = 1 if limit else 3
    until(lambda: len(site.running() or ()) == count, f"tasks of {array}")
    recorded(site, {job.job: ISOLATED for job in site.running() or ()})


def test_a_tried_job(site: Site) -> None:
    """A job of --test-only holds no nodes, and has no record."""
    job = site.start("-p", "pbatch", "-N2")
    before = written(site).time
    site.call()
    until(lambda: written(site).time > before, "the records are written again")
    recorded(site, {job: ISOLATED})


def test_a_slurmctld_that_starts(site: Site) -> None:
    """It has no queue, so it asks for no nodes. The jobs that run have their policies, and own links as before."""
    jobs = {
        site.start("-p", "pbatch", "-N7"): ISOLATED,
        site.start("-p", "powned", "-w", "node[13,19]"): OWNED,
    }
    jobs[site.start("-p", "pstock", "-N1")] = STOCK
    links = site.owners()
    assert links
    for again in (site.restart, site.reconfigure):
        site.saved(next(iter(jobs)))
        again()
        recorded(site, jobs)
        assert site.owners() == links


def test_a_slurmctld_that_ends_soon(site: Site) -> None:
    """It ends without a fault while the plugin looks at jobs, and its successor has all records."""
    jobs = {site.start("-p", "pbatch", "-N2"): ISOLATED}
    for _ in range(4):
        site.saved(next(iter(jobs)))
        site.restart()
    recorded(site, jobs)
    assert not [line for line in site.log().splitlines() if "Semaphores still set" in line or "fatal" in line]


def test_jobs_whose_nodes_change(site: Site) -> None:
    """A job that is suspended or loses a node keeps its record; one that is requeued holds nothing and has none."""
    lasting = site.start("-p", "powned", "-w", "node[1,2,7,8]", "--no-kill")
    back = site.start("-p", "pbatch", "-N3")
    recorded(site, {lasting: OWNED, back: ISOLATED})
    links = site.owners()
    site.cluster.run("scontrol", "suspend", back)
    site.cluster.run("scontrol", "update", "nodename=node8", "state=down", "reason=test")
    until(lambda: site.nodes(lasting) == {"node1", "node2", "node7"}, "the job is without the node")
    site.cluster.run("scontrol", "resume", back)
    recorded(site, {lasting: OWNED, back: ISOLATED})
    assert site.owners() == links
    site.cluster.run("scontrol", "requeuehold", back)
    recorded(site, {lasting: OWNED})
