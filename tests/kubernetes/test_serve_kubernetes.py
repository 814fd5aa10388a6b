"""The page of `topolane serve --kubernetes` over a real control plane: it shows what `topolane k8s` says, as it changes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from control_plane import SMALL, ControlPlane, container, missing, name
from waiting import DEADLINE, until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))
httpx = pytest.importorskip("httpx", reason="needs the extra kubernetes: httpx")
pytest.importorskip("yaml", reason="needs the extra kubernetes: PyYAML")
pytest.importorskip("fastapi", reason="the extra serve is not installed")

sys.path.append(str(Path(__file__).parents[1] / "serve"))
import in_browser
from in_browser import browser, load, row_of, text
from served import MAIN, served
from topolane.cli.k8s_common import connected
from topolane.kubernetes.inspection import Where
from topolane.serve.api import PAGE
from topolane.serve.kubernetes import KubernetesSource

__all__ = ["browser"]


@pytest.fixture
def page(in_chassis: ControlPlane) -> Iterator[str]:
    """A page over the cluster, which looks every second, with the figures of two more policies."""
    if not (PAGE / "index.html").is_file():
        pytest.skip("the page is not built: make page")
    where = ("--kubeconfig", str(in_chassis.kubeconfig), "--labels", ",".join(SMALL))
    with served("--kubernetes", *where, "--interval", "1", "--shadow", "isolated,first-fit") as address:
        yield address


def shown(page: str, **at: float) -> Any:
    return httpx.get(f"{page}/api/snapshot", params=at, timeout=DEADLINE).json()


def held(page: str, found: Any) -> dict[str, set[str]]:
    """The names of the nodes of each running job."""
    names = httpx.get(f"{page}/api/machine").json()["nodes"]
    return {
        row[1]: {names[node] for low, high in zip(row[4][::2], row[4][1::2]) for node in range(low, high)}
        for row in found["running"]
    }


def test_the_page_follows_the_groups_of_a_cluster(in_chassis: ControlPlane, page: str, browser: Any) -> None:
    """Groups that run stand on their nodes. One click on a group that waits says what `topolane k8s explain` says: links, and whose
    groups are in the way. When these are deleted it starts on the page too, and the past still shows it waiting."""
    first, second, third = name(), name(), name()
    in_chassis.submit(first, 9)
    nodes = in_chassis.placed(first, 9)
    in_chassis.submit(second, 17)
    in_chassis.placed(second, 17)
    in_chassis.submit(third, 20)
    in_chassis.waits_saying(third, "would share links")
    until(
        lambda: any("would share links" in row[7] for row in shown(page)["waiting"]),
        "the page shows all three",
    )
    found = shown(page)
    assert held(page, found)[f"default/{first}"] == set(nodes)
    assert {row[1] for row in found["running"]} == {f"default/{first}", f"default/{second}"}
    assert [(row[1], row[4]) for row in found["waiting"]] == [(f"default/{third}", 20)]
    assert found["problems"] == []

    load(browser, page)
    row_of(browser, f"default/{third}").click()
    said = in_browser.until(lambda: "would share links" in text(browser, "why") and text(browser, "why"))
    assert f"default/{first}" in said or f"default/{second}" in said
    answer = httpx.post(
        f"{page}/api/ask", json={"nodes": 60, "hours": 1, "policy": "isolated"}, timeout=DEADLINE
    ).json()
    assert answer["start"] is None and answer["why"] and not answer["never"]

    in_chassis.remove(first)
    in_chassis.remove(second)
    placed = in_chassis.placed(third, 20)
    until(
        lambda: held(page, shown(page)).get(f"default/{third}") == set(placed),
        "the page shows it on its nodes",
    )
    past = shown(page, at=found["time"])
    assert [row[1] for row in past["waiting"]] == [f"default/{third}"]
    assert f"default/{first}" in held(page, past)
    in_browser.until(lambda: "Runs since" in browser.find_element("class name", "details").text)
    assert browser.get_log("browser") == []


def test_the_reason_is_of_the_snapshot_that_viewers_have(in_chassis: ControlPlane) -> None:
    """While the source makes its next snapshot, viewers ask about the last one: a group of it is still explained in full."""
    first, second = name(), name()
    in_chassis.submit(first, 33)
    in_chassis.placed(first, 33)
    in_chassis.submit(second, 33)
    in_chassis.waits_saying(second, "does not fit now")
    with connected(str(in_chassis.kubeconfig), None) as cluster:
        source = KubernetesSource(cluster, Where(labels=tuple(SMALL)), None, 1.0)
        before = source.now()
        [group] = before.waiting
        said = source.explain(before, group)
        after = source.now()
        assert said and said[0].startswith(f"Group default/{second} waits since")
        assert source.explain(before, group) == said
        assert source.explain(after, group) == said


def test_figures_of_other_policies_stand_next_to_those_of_kubernetes(
    in_chassis: ControlPlane, page: str
) -> None:
    """With --shadow, the figures have a line of the cluster and one of each policy, for the same groups. isolated keeps the third
    group waiting as the cluster does; first-fit, which gives no links, runs it. When the first two are deleted, all have it on its nodes."""
    names = [name(), name(), name()]
    for group, size in zip(names[:2], (9, 17)):
        in_chassis.submit(group, size)
        in_chassis.placed(group, size)
    in_chassis.submit(names[2], 20)
    in_chassis.waits_saying(names[2], "would share links")

    def last() -> list[tuple[str, float, float]]:
        lines = httpx.get(f"{page}/api/series", timeout=DEADLINE).json()["lines"]
        return [(line["name"], line["utilisation"][-1], line["waiting"][-1]) for line in lines]

    system = httpx.get(f"{page}/api/machine").json()["title"]
    few, all_three = pytest.approx(26 / 64, abs=1e-3), pytest.approx(46 / 64, abs=1e-3)
    said = [(system, few, 1), ("isolated, easy", few, 1), ("first-fit, easy", all_three, 0)]
    until(lambda: last() == said, "the third waits in the cluster and under isolated")
    for group in names[:2]:
        in_chassis.remove(group)
    in_chassis.placed(names[2], 20)
    alone = pytest.approx(20 / 64, abs=1e-3)
    until(lambda: [row[1:] for row in last()] == [(alone, 0)] * 3, "all have the third alone")
    assert shown(page)["problems"] == []


def test_pods_that_share_a_node_and_jobs_with_a_limit(in_chassis: ControlPlane, page: str) -> None:
    """Pods that take a part of a node leave the rest of it free. A Job with a deadline ends by it. A pod that asks for another node
    than there is waits, and the question for GPUs of a node is answered."""
    few, never = name(), name()
    in_chassis.submit(few, 1, gpus=2)
    in_chassis.placed(few, 1)
    in_chassis.submit(never, 1, nodeSelector={"topo/block": "none"})
    job = {
        "metadata": {"name": "limited"},
        "spec": {
            "activeDeadlineSeconds": 7200,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container(8)]}},
        },
    }
    in_chassis.post("/apis/batch/v1/namespaces/default/jobs", job)
    until(lambda: "default/limited" in held(page, shown(page)), "the page shows the Job")
    found = shown(page)
    limited = next(row for row in found["running"] if row[1] == "default/limited")
    assert limited[6] == limited[5] + 7200
    until(lambda: f"default/{never}" in [row[1] for row in shown(page)["waiting"]], "the pod that waits")
    room = httpx.get(f"{page}/api/outlook", timeout=DEADLINE).json()["room"]
    assert (room["unit"], room["total"], room["free"]) == ("gpus", 64 * 8, 64 * 8 - 2 - 8)
    assert httpx.get(f"{page}/api/outlook", timeout=DEADLINE).json()["starts"] == []
    question = {"nodes": 64, "hours": 1, "policy": "first-fit", "gpus": 4}
    answer = httpx.post(f"{page}/api/ask", json=question, timeout=DEADLINE).json()
    assert answer["start"] == pytest.approx(limited[6]) and answer["hosts"]
    question = {"nodes": 63, "hours": 1, "policy": "first-fit", "gpus": 4}
    answer = httpx.post(f"{page}/api/ask", json=question, timeout=DEADLINE).json()
    assert answer["start"] is not None and answer["room"] is None
    assert httpx.post(f"{page}/api/ask", json={**question, "gpus": 9}).status_code == 422
    assert httpx.post(f"{page}/api/ask", json={**question, "partition": "p"}).status_code == 422


def test_a_cordoned_node_takes_no_jobs(in_chassis: ControlPlane, page: str) -> None:
    """A cordoned node is crossed out until it is opened again."""
    in_chassis.patch("/api/v1/nodes/n07", {"spec": {"unschedulable": True}})
    place = httpx.get(f"{page}/api/machine").json()["nodes"].index("n07")
    until(lambda: shown(page)["out"] == [place, place + 1], "the page crosses it out")
    in_chassis.patch("/api/v1/nodes/n07", {"spec": {"unschedulable": None}})
    until(lambda: shown(page)["out"] == [], "the page shows it in service")


def test_the_log_of_a_shadow_is_a_page(in_chassis: ControlPlane, browser: Any, tmp_path: Path) -> None:
    """While `topolane k8s shadow` writes its log, the page shows each job where the default scheduler placed it, and says what the
    policy would have done. A job that ends goes, and the past still shows it. Hops of both are drawn."""
    if not (PAGE / "index.html").is_file():
        pytest.skip("the page is not built: make page")
    log, group = tmp_path / "shadow.jsonl", name()
    where = ("--kubeconfig", str(in_chassis.kubeconfig), "--labels", ",".join(SMALL))
    command = [sys.executable, "-c", MAIN, "k8s", "shadow", "--policy", "isolated", "--log", str(log), *where]
    with subprocess.Popen([*command, "--interval", "0.5"], stdout=subprocess.DEVNULL) as shadow:
        try:
            until(lambda: log.exists() and '"shadow"' in log.read_text(), "the shadow looks")
            in_chassis.submit(group, 9, scheduler="default-scheduler")
            nodes = in_chassis.placed(group, 9)
            until(lambda: f"default/{group}" in log.read_text(), "the shadow has seen it")
            with served("--shadow-log", str(log), "--interval", "1") as page:
                found = shown(page)
                assert held(page, found) == {f"default/{group}": set(nodes)}
                assert found["running"][0][9].startswith("isolated would have taken n")
                lines = httpx.get(f"{page}/api/series").json()["lines"]
                assert [line["name"] for line in lines] == ["Kubernetes", "isolated"]
                said = json.loads(next(line for line in log.read_text().splitlines() if '"start"' in line))
                hops = [[value for value in line["hops"] if value is not None] for line in lines]
                assert hops == [
                    [pytest.approx(said["aph"], abs=1e-3)],
                    [pytest.approx(said["policy"]["aph"], abs=1e-3)],
                ]
                load(browser, page, queue=False)
                browser.find_element("xpath", "//button[starts-with(., 'Running')]").click()
                row_of(browser, f"default/{group}").click()
                in_browser.until(
                    lambda: "isolated would have taken" in browser.find_element("class name", "details").text
                )
                assert browser.get_log("browser") == []
                in_chassis.remove(group)
                until(lambda: not shown(page)["running"], "the page shows that it has ended")
                assert held(page, shown(page, at=found["time"])) == {f"default/{group}": set(nodes)}
        finally:
            shadow.terminate()
            shadow.wait(DEADLINE)
