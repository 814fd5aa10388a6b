"""The page of `topolane serve --slurm` over a real slurmctld: it shows what squeue and sinfo say, as it changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Cluster
from waiting import DEADLINE, until

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
    words = ("--slurm", "--slurmrestd", rest, "--interval", "1", "--shadow", "first-fit")
    with served(*words, env=cluster.environment) as address:
        yield address


def shown(page: str, **at: float) -> dict:
    return httpx.get(f"{page}/api/snapshot", params=at, timeout=DEADLINE).json()


def held(page: str, found: dict) -> dict[str, set[str]]:
    """The names of the nodes of each running job."""
    names = httpx.get(f"{page}/api/machine", timeout=DEADLINE).json()["nodes"]
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

    def why() -> list[str]:
        return httpx.get(f"{page}/api/why", params={"job": row[0]}, timeout=DEADLINE).json()["sentences"]

    until(lambda: any("nodes" in sentence for sentence in why()), "the page says what the job waits for")
    until(lambda: not shown(page)["problems"], "Slurm answers in time")
    before = shown(page)["time"]

    answer = httpx.post(
        f"{page}/api/ask", json={"nodes": 4, "hours": 1, "policy": "slurm-tree"}, timeout=DEADLINE
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


def test_figures_of_another_policy_stand_next_to_those_of_slurm(cluster: Cluster, page: str) -> None:
    """With --shadow the figures have a line of Slurm and one of the policy: while a job runs, both have its nodes in use."""
    job = cluster.submit("-p", "pbatch", "-N", "36", "--exclusive", "-t", "10", script="sleep 600")

    def used() -> bool:
        lines = httpx.get(f"{page}/api/series", timeout=DEADLINE).json()["lines"]
        assert [line["name"] for line in lines][1:] == ["first-fit, easy"]
        return all(line["utilisation"][-1] >= 0.4 for line in lines)

    until(used, "both lines have the nodes of the job")
    cluster.run("scancel", job)
    until(lambda: not shown(page)["running"], "the page is empty")


def test_nodes_out_of_service_are_shown(cluster: Cluster, page: str) -> None:
    """A node that is drained takes no jobs on the page; resumed, it does."""
    names = httpx.get(f"{page}/api/machine", timeout=DEADLINE).json()["nodes"]
    cluster.run("scontrol", "update", "nodename=node3", "state=drain", "reason=test")
    try:
        place = names.index("node3")
        until(lambda: [place, place + 1] == shown(page)["out"], "the page shows the drained node")
    finally:
        cluster.run("scontrol", "update", "nodename=node3", "state=resume")
    until(lambda: shown(page)["out"] == [], "the page shows the node in service")


def test_reservations_are_shown_and_kept(cluster: Cluster, page: str) -> None:
    """A reservation of Slurm is on the page with its nodes and hours. A job of the form that would still run when it begins starts
    elsewhere; in the reservation it starts on its nodes, when it begins; and a job that waits for it is forecast there."""
    cluster.run(
        *("scontrol", "create", "reservation", "ReservationName=upgrade", "Users=root", "Nodes=node[1-36]"),
        *("StartTime=now+2hours", "Duration=60"),
    )
    job = cluster.submit("-p", "pbatch", "-N", "4", "-t", "30", "--reservation=upgrade", script="true")
    try:
        until(lambda: shown(page)["reserved"] and shown(page)["waiting"], "the page shows both")
        names, found = httpx.get(f"{page}/api/machine", timeout=DEADLINE).json()["nodes"], shown(page)
        [(name, nodes, start, end)] = found["reserved"]
        kept = {names[node] for low, high in zip(nodes[::2], nodes[1::2]) for node in range(low, high)}
        assert (name, kept, end - start) == ("upgrade", {f"node{number}" for number in range(1, 37)}, 3600.0)
        long = {"nodes": 36, "hours": 3, "policy": "slurm-tree"}
        outside = httpx.post(f"{page}/api/ask", json=long, timeout=DEADLINE).json()
        assert not cluster.nodes(outside["hosts"]) & kept and len(cluster.nodes(outside["hosts"])) == 36
        asked = {"nodes": 8, "hours": 0.5, "policy": "slurm-tree", "reservation": "upgrade"}
        inside = httpx.post(f"{page}/api/ask", json=asked, timeout=DEADLINE).json()
        assert inside["start"] == start and cluster.nodes(inside["hosts"]) <= kept
        starts = httpx.get(f"{page}/api/outlook", timeout=DEADLINE).json()["starts"]
        assert [row[2] for row in starts if row[0] == job] == [start]
    finally:
        cluster.run("scancel", job)
        until(lambda: not shown(page)["waiting"], "the job is gone")
        cluster.run("scontrol", "delete", "ReservationName=upgrade")


def test_a_job_of_several_reservations_is_forecast_in_one(cluster: Cluster, page: str) -> None:
    """A job that names two reservations, of which the second begins first, is forecast to start when that one begins."""
    for reservation, nodes, hours in (("later", "node[1-8]", 3), ("sooner", "node[9-16]", 2)):
        cluster.run(
            *("scontrol", "create", "reservation", f"ReservationName={reservation}", "Users=root"),
            *(f"Nodes={nodes}", f"StartTime=now+{hours}hours", "Duration=60"),
        )
    job = cluster.submit("-p", "pbatch", "-N", "4", "-t", "30", "--reservation=later,sooner", script="true")
    try:
        until(
            lambda: len(shown(page)["reserved"]) == 2 and shown(page)["waiting"], "the page shows all three"
        )
        begins = {name: start for name, _, start, _ in shown(page)["reserved"]}

        def forecast() -> list[float]:
            starts = httpx.get(f"{page}/api/outlook", timeout=DEADLINE).json()["starts"]
            return [row[2] for row in starts if row[0] == job]

        until(forecast, "the forecast has the job")
        assert forecast() == [begins["sooner"]]
    finally:
        cluster.run("scancel", job)
        until(lambda: not shown(page)["waiting"], "the job is gone")
        for reservation in ("later", "sooner"):
            cluster.run("scontrol", "delete", f"ReservationName={reservation}")


def test_the_page_says_that_slurm_is_gone(cluster: Cluster, page: str) -> None:
    """While slurmctld is down the page shows its last state and says so; then it goes on."""
    before = shown(page)["time"]
    cluster.script("stop", "slurmctld")
    try:
        until(lambda: any("slurm" in one for one in shown(page)["problems"]), "the page says so")
    finally:
        cluster.mend()
    until(lambda: not (now := shown(page))["problems"] and now["time"] > before, "the page goes on")
