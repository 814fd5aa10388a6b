"""The page of `topolane serve --slurm` over a real slurmctld: it shows what squeue and sinfo say, as it changes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Cluster, until

httpx = pytest.importorskip("httpx", reason="the extra slurm is not installed")
pytest.importorskip("fastapi", reason="the extra serve is not installed")

sys.path.append(str(Path(__file__).parents[1] / "serve"))
from served import served
from topolane.serve.api import PAGE


@pytest.fixture(scope="module")
def page(cluster: Cluster) -> Iterator[str]:
    """A page over the cluster, which looks every second."""
    if not (PAGE / "index.html").is_file():
        pytest.skip("the page is not built: make page")
    rest = f"unix:{cluster.facts['SOCKET']}"
    with served("--slurm", "--slurmrestd", rest, "--interval", "1", env=cluster.environment) as address:
        yield address


def shown(page: str, **at: float) -> dict:
    return httpx.get(f"{page}/api/snapshot", params=at, timeout=60).json()


def held(page: str, found: dict) -> dict[str, set[str]]:
    """The names of the nodes of each running job."""
    names = httpx.get(f"{page}/api/machine").json()["nodes"]
    return {
        row[1]: {
            names[node] for low, high in zip(row[4][::2], row[4][1::2]) for node in range(low, high)
        }
        for row in found["running"]
    }  # fmt: skip


def test_the_page_follows_slurm(cluster: Cluster, page: str) -> None:
    """A job that runs stands on its nodes of squeue; one that waits is in the queue with Slurm's reason in words; when the first
    ends, the second starts on the page too; and the slider shows the earlier state."""
    first = cluster.submit("-p", "pbatch", "-N", "72", "--exclusive", "-t", "10", script="sleep 600")
    until(lambda: str(first) in held(page, shown(page)), "the page shows the job that runs")
    second = cluster.submit("-p", "pbatch", "-N", "10", "--exclusive", "-t", "5", script="sleep 600")
    until(
        lambda: str(second) in [row[1] for row in shown(page)["waiting"]], "the page shows the job that waits"
    )
    found = shown(page)
    nodes = cluster.nodes(cluster.run("squeue", "-h", "-j", first, "-o", "%N").strip())
    assert held(page, found)[str(first)] == nodes
    until(
        lambda: "Resources" in cluster.run("squeue", "-h", "-j", second, "-o", "%r"),
        "Slurm looks for nodes for it",
    )
    row = next(row for row in found["waiting"] if row[1] == str(second))
    sentences = httpx.get(f"{page}/api/why", params={"job": row[0]}, timeout=60).json()["sentences"]
    assert sentences and any("nodes" in sentence for sentence in sentences)
    assert found["problems"] == []
    before = shown(page)["time"]

    answer = httpx.post(
        f"{page}/api/ask", json={"nodes": 4, "hours": 1, "policy": "slurm-tree"}, timeout=60
    ).json()
    assert answer["start"] is None or answer["start"] > before
    assert str(first) in answer["room"]["sentence"]

    cluster.run("scancel", first)
    until(lambda: str(second) in held(page, shown(page)), "the page shows that the second job has started")
    after = shown(page)
    assert str(first) not in held(page, after)
    assert held(page, after)[str(second)] == cluster.nodes(
        cluster.run("squeue", "-h", "-j", second, "-o", "%N").strip()
    )
    past = shown(page, at=before)
    assert str(first) in held(page, past) and str(second) in [row[1] for row in past["waiting"]]
    cluster.run("scancel", second)
    until(lambda: not shown(page)["running"], "the page is empty")


def test_nodes_out_of_service_are_shown(cluster: Cluster, page: str) -> None:
    """A node that is drained takes no jobs on the page; resumed, it does."""
    names = httpx.get(f"{page}/api/machine").json()["nodes"]
    cluster.run("scontrol", "update", "nodename=node3", "state=drain", "reason=test")
    try:
        place = names.index("node3")
        until(lambda: [place, place + 1] == shown(page)["out"], "the page shows the drained node")
    finally:
        cluster.run("scontrol", "update", "nodename=node3", "state=resume")
    until(lambda: shown(page)["out"] == [], "the page shows the node in service")


def test_the_page_says_that_slurm_is_gone(cluster: Cluster, page: str) -> None:
    """While slurmctld is down the page shows its last state and says so; then it goes on."""
    cluster.script("stop", "slurmctld")
    try:
        until(lambda: any("slurm" in one for one in shown(page)["problems"]), "the page says so")
    finally:
        cluster.mend()
    until(lambda: not shown(page)["problems"] and time.time() - shown(page)["time"] < 60, "the page goes on")
