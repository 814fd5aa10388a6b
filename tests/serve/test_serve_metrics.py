"""The metrics of the live page: what they say is what the page shows, and Prometheus reads them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("fastapi", reason="the extra serve is not installed")
from prometheus_client.parser import text_string_to_metric_families
from prometheus_server import check_complete, check_quiet, check_scraped, scraping
from served import SMALL, served


def test_the_metrics_count_what_the_page_shows(page: str) -> None:
    """Jobs, nodes and owned links are those of the snapshot; a viewer counts while it watches."""
    shown = httpx.get(f"{page}/api/snapshot").json()
    with httpx.stream("GET", f"{page}/api/events") as events:
        lines = events.iter_lines()  # the stream ends with it
        next(lines)
        text = httpx.get(f"{page}/metrics").text
    found = {
        (sample.name.removeprefix("topolane_serve_"), "".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    busy = {
        node
        for row in shown["running"]
        for start, end in zip(row[4][::2], row[4][1::2])
        for node in range(start, end)
    }
    links = sum(end - start for row in shown["running"] for start, end in zip(row[7][::2], row[7][1::2]))
    nodes = len(httpx.get(f"{page}/api/machine").json()["nodes"])
    assert (found["up", ""], found["problems", ""], found["viewers", ""]) == (1, 0, 1)
    for state in ("running", "waiting"):
        jobs = [value for (name, labels), value in found.items() if name == "jobs" and labels.endswith(state)]
        assert sum(jobs) == len(shown[state]) > 0
    assert found["nodes", "busy"] == len(busy) and found["nodes", "idle"] == nodes - len(busy)
    assert found["links_owned", ""] == links > 0
    check_complete("serve", text)


def test_prometheus_scrapes_the_page(prometheus: str, tmp_path: Path, page: str) -> None:
    """Prometheus reads all metrics of the page, and evaluates all rules and panels. No alert is about to fire."""
    with scraping(prometheus, tmp_path, "serve", urlsplit(page).netloc) as server:
        check_scraped(server, "serve", httpx.get(f"{page}/metrics").text)
        check_quiet(server)


def test_the_metrics_need_the_token(page: str, tmp_path: Path) -> None:
    """Where viewers need a token, readers of the metrics do too; Prometheus shows it as a bearer token."""
    token = tmp_path / "token"
    token.write_text("viewer-" + "v" * 16)
    with served(*SMALL, "--token-file", str(token)) as address:
        assert httpx.get(f"{address}/metrics").status_code == 401
        shown = {"Authorization": f"Bearer {token.read_text()}"}
        assert "topolane_serve_up 1.0" in httpx.get(f"{address}/metrics", headers=shown).text
