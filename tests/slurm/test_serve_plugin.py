"""The page of `topolane serve --slurm` over a slurmctld with the plugin: own links, the plugin's reasons, promised starts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_cluster import Cluster, Inside
from plugin_site import ACROSS, NODES, PARTITIONS, plugin_cluster
from waiting import DEADLINE, until

httpx = pytest.importorskip("httpx", reason="the extra slurm is not installed")
pytest.importorskip("fastapi", reason="the extra serve is not installed")

sys.path.append(str(Path(__file__).parents[1] / "serve"))
from served import MAIN, served
from topolane.serve.api import PAGE


@pytest.fixture(scope="module")
def cluster(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of 24 nodes whose slurmctld runs the plugin."""
    if not (PAGE / "index.html").is_file():
        pytest.skip("the page is not built: make page")
    options = ("--partitions", PARTITIONS)
    with plugin_cluster(built, inside, tmp_path_factory.mktemp("slurm"), *options) as up:
        yield up


@pytest.fixture(scope="module")
def page(cluster: Cluster, inside: Inside) -> Iterator[str]:
    """A page over it, which looks every second."""
    with served("--slurm", "--interval", "1", env=cluster.environment, prefix=inside.prefix) as address:
        yield address


def shown(page: str) -> Any:
    return httpx.get(f"{page}/api/snapshot", timeout=DEADLINE).json()


def numbers(ranges: list[int]) -> set[int]:
    return {number for low, high in zip(ranges[::2], ranges[1::2]) for number in range(low, high)}


def row(page: str, list: str, job: int) -> Any:
    return next((row for row in shown(page)[list] if row[1] == str(job)), None)


def explained(cluster: Cluster, inside: Inside, job: int) -> Any:
    """What `topolane slurm explain` says of a job."""
    command = [*inside.prefix, sys.executable, "-c", MAIN, "slurm", "explain", str(job), "--json"]
    done = subprocess.run(command, env=cluster.environment, capture_output=True, text=True, timeout=DEADLINE)
    return json.loads(done.stdout)


def test_own_links_reasons_and_promised_starts(cluster: Cluster, inside: Inside, page: str) -> None:
    """Dedicated jobs own the links on the page that the plugin gave them, and no link has two owners. A job for which none are left
    waits with the plugin's reason, in the words of `topolane slurm explain`, and with the start that Slurm expects."""
    owners = [
        cluster.submit("-p", "powned", "-w", hosts, "-N", "2", "-t", "10", script="sleep 600")
        for hosts in ACROSS[:3]
    ]
    for job in owners:
        until(
            lambda job=job: (row(page, "running", job) or [[]] * 8)[7], f"the page shows links of job {job}"
        )
    links = [numbers(row(page, "running", job)[7]) for job in owners]
    assert len(set().union(*links)) == sum(map(len, links))
    assert [sorted(each) for each in links] == [
        sorted(explained(cluster, inside, job)["links"]) for job in owners
    ]
    late = cluster.submit("-p", "powned", "-w", ACROSS[3], "-N", "2", "-t", "10", script="sleep 600")
    until(lambda: "links" in (row(page, "waiting", late) or [""] * 8)[7], "the page has the plugin's reason")
    found = row(page, "waiting", late)

    def on_page() -> list[str]:
        answer = httpx.get(f"{page}/api/why", params={"job": found[0]}, timeout=DEADLINE)
        return [one for one in answer.json()["sentences"] if "links" in one]

    def in_words() -> list[str]:
        return [one for one in explained(cluster, inside, late)["sentences"] if "links" in one]

    # The plugin may write between two looks, and the page looks again later.
    until(lambda: on_page() == in_words() != [], "the page has the words of explain")
    assert any(str(job) in " ".join(on_page()) for job in owners)
    assert shown(page)["problems"] == []

    wide = cluster.submit("-p", "pbatch", "-N", NODES, "-t", "10", script="sleep 600")
    until(lambda: (row(page, "waiting", wide) or [None] * 9)[8], "Slurm expects its start")
    expected = cluster.job(wide)["start_time"]
    promised = row(page, "waiting", wide)[8]
    assert promised == pytest.approx(expected["number"] if isinstance(expected, dict) else expected, abs=120)

    outlook = httpx.get(f"{page}/api/outlook", timeout=DEADLINE).json()
    assert outlook["lost"] == 0
    last = max(row(page, "running", job)[6] for job in owners)
    assert all(start >= last for id, _, start, _ in outlook["starts"] if id == wide)


def test_the_form_knows_partitions(page: str) -> None:
    """The form has the partitions of Slurm and answers within one; another name is refused."""
    machine = httpx.get(f"{page}/api/machine").json()
    assert {"pbatch", "pshared", "powned", "ptree", "pstock"} <= set(machine["partitions"])
    question = {"nodes": 2, "hours": 1, "policy": "dedicated", "partition": "powned"}
    answer = httpx.post(f"{page}/api/ask", json=question, timeout=DEADLINE)
    assert answer.status_code == 200 and not answer.json()["never"]
    assert httpx.post(f"{page}/api/ask", json={**question, "partition": "no"}).status_code == 422
