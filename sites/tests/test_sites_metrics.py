"""The metrics of a manager, read by Prometheus."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="topolane-sites is not installed with what it needs")
from managed import SITES, managing
from prometheus_client.parser import text_string_to_metric_families
from prometheus_server import check_complete, check_quiet, check_scraped, scraping
from waiting import until


def test_prometheus_scrapes_a_manager(prometheus: str, tmp_path: Path) -> None:
    """Hosts and cores are counted by site: a host with a guest is busy. Prometheus reads all metrics, and evaluates all rules and
    panels."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    (tmp_path / "token").write_text("operator-" + "x" * 16)
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "reads").write_text("reader-" + "y" * 16)
    (tmp_path / "reads").chmod(0o600)
    settings = {
        "listen": f'["unix:{tmp_path}/a.sock", "127.0.0.1:{port}"]',
        "token_file": '"token"',
        "read_token_file": '"reads"',
    }
    with managing(tmp_path, {"g1": "e1", "g2": "e1"}, **settings) as manager:
        text = manager.client.text("/metrics")
        found = {
            (sample.name.removeprefix("topolane_sites_"), *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        assert (found["programs",], found["paused",], found["frames_total",]) == (0, 0, 0)
        assert {site: found["nodes", site, "busy"] for site in SITES} == {"east": 1, "west": 0}
        assert {site: found["nodes", site, "idle"] for site in SITES} == {"east": 1, "west": 2}
        assert (found["cores", "east", "busy"], found["cores", "east", "idle"]) == (4, 4)
        credentials = {"authorization": {"credentials_file": str(tmp_path / "reads")}}
        with scraping(prometheus, tmp_path, "sites", f"127.0.0.1:{port}", **credentials) as server:
            check_scraped(server, "sites", manager.client.text("/metrics"))
            check_quiet(server)
        until(lambda: "topolane_sites_plan_seconds" in manager.client.text("/metrics"))
        check_complete("sites", manager.client.text("/metrics"))
