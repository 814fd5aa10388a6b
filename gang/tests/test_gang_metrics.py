"""`topolane gang metrics` over a running agent, read by Prometheus."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="the extra gang is not installed")
from gang_processes import ALONE, CORES
from prometheus_client.parser import text_string_to_metric_families
from prometheus_server import check_complete, check_quiet, check_scraped, firing, scraping
from waiting import DEADLINE, until

MAIN = [sys.executable, "-c", "from topolane.cli import main; main()", "gang"]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Path]:
    """The socket of an agent that runs two jobs."""
    path = tmp_path / "control"
    words = ["run", "--cores", ",".join(map(str, CORES)), "--socket", str(path), "--slice", "0.05"]
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen([*MAIN, *words], stdout=said, stderr=said)
    try:
        until(lambda: path.exists() or process.poll() is not None, "the agent listens")
        for name in ("one", "two"):
            command = ["add", "--socket", str(path), "--name", name, "--threads", "1", "--", *ALONE]
            subprocess.run([*MAIN, *command], check=True, stdout=subprocess.DEVNULL, timeout=DEADLINE)
        yield path
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) is not None


def printed(path: Path) -> str:
    done = subprocess.run(
        [*MAIN, "metrics", "--socket", str(path), "--once"], capture_output=True, text=True, timeout=DEADLINE
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def values(path: Path) -> dict[tuple[str, ...], float]:
    """The samples by name, without prefix, and by the values of their labels."""
    return {
        (sample.name.removeprefix("topolane_gang_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(printed(path))
        for sample in family.samples
    }


def test_the_metrics_count_the_jobs_and_their_time(agent: Path) -> None:
    """Two jobs that compute get time on a core, by their numbers; a metric without samples has its type at least."""
    found = values(agent)
    assert (found["up",], found["cores",]) == (1, len(CORES))
    assert sum(found["jobs", state] for state in ("running", "filling", "stopped")) == 2
    assert found["jobs", "lost"] == 0
    until(
        lambda: all(value > 0 for key, value in values(agent).items() if key[0] == "job_cpu_seconds_total"),
        "both jobs had a core",
    )
    check_complete("gang", printed(agent))


def test_an_agent_that_does_not_answer_is_not_up(tmp_path: Path) -> None:
    """Without an agent the command still answers, and says no more than that."""
    assert values(tmp_path / "none") == {("up",): 0}


def test_prometheus_scrapes_an_agent(prometheus: str, tmp_path: Path, agent: Path) -> None:
    """Prometheus reads all metrics, also after the agent has ended, and evaluates all rules and panels."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [*MAIN, "metrics", "--socket", str(agent), "--listen", f"127.0.0.1:{port}"], stderr=subprocess.PIPE
    )
    try:
        assert (
            server.stderr
            and server.stderr.readline() == f"topolane: metrics of the agent at 127.0.0.1:{port}\n".encode()
        )
        with scraping(prometheus, tmp_path, "gang", f"127.0.0.1:{port}") as found:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE) as answer:
                text = answer.read().decode()
            check_scraped(found, "gang", text)
            check_quiet(found, but=frozenset({"TopolaneGangMisses"}))  # that is of this machine
            subprocess.run([*MAIN, "stop", "--socket", str(agent)], check=True, timeout=DEADLINE)
            until(lambda: found.values("topolane_gang_up") == [0], "up is 0")
            until(lambda: "TopolaneGangDown" in firing(found), "an alert is about to fire")
    finally:
        server.terminate()
        server.wait(DEADLINE)
