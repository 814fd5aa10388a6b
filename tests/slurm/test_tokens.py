"""slurmrestd over HTTP, where it wants a token: a real one on 127.0.0.1 that trusts nobody without."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driving import driving
from live_cluster import Cluster, running, script, until
from test_start import refusal


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    options = ("--auth", "jwt", "--hold", "lua")
    done = script("check", *options)
    if done.returncode:
        pytest.skip(done.stderr.strip().removeprefix("cluster.sh: "))
    with running(6, tmp_path_factory.mktemp("guarded"), *options) as up:
        yield up


def address(cluster: Cluster) -> str:
    return f"http://{cluster.facts['REST_ADDRESS']}"


def write_token(cluster: Cluster, path: Path, lifespan: int) -> None:
    path.write_text(cluster.run("scontrol", "token", "username=root", f"lifespan={lifespan}"))


def test_a_token_that_is_renewed(guarded: Cluster, tmp_path: Path) -> None:
    """Jobs start over HTTP; when the token has expired the log says so; with another one in the file the
    daemon goes on without being started anew."""
    token, log = tmp_path / "token", tmp_path / "log.jsonl"
    write_token(guarded, token, 600)
    settings: dict[str, Any] = {"slurmrestd": address(guarded), "token-file": str(token)}
    with driving(guarded, tmp_path, **settings):
        first = guarded.submit("--nodes=2", "--time=5", script="sleep 1")
        until(lambda: guarded.job(first)["job_state"] == "COMPLETED", "the first job ends")
        write_token(guarded, token, 1)
        until(lambda: f"token-file {token}: the token expired at" in log.read_text(), "the log says so")
        second = guarded.submit("--nodes=3", "--time=5", script="sleep 1")
        assert guarded.job(second)["job_state"] == "PENDING"
        write_token(guarded, token, 600)
        until(lambda: guarded.job(second)["job_state"] == "COMPLETED", "the second job ends")
    started = [json.loads(line) for line in log.read_text().splitlines() if '"event": "start"' in line]
    assert [event["job"] for event in started] == [str(first), str(second)]


def test_a_wrong_token_at_the_start(guarded: Cluster, tmp_path: Path) -> None:
    """None, none there, none in the file, one that has expired, one of another cluster; and a token is not
    sent over a network that can be listened to: one sentence, exit code 2."""
    good, text, old, other = (tmp_path / name for name in ("good", "text", "old", "other"))
    write_token(guarded, good, 600)
    write_token(guarded, old, 1)
    text.write_text("no token\n")
    head, claims, signature = good.read_text().strip().split(".")
    other.write_text(f"{head}.{claims}.{signature[::-1]}\n")
    time.sleep(1.1)
    for place, token, said in (
        (address(guarded), None, "wants a token-file"),
        (address(guarded), tmp_path / "none", "No such file or directory"),
        (address(guarded), text, "holds no token such as `scontrol token` prints"),
        (address(guarded), old, "the token expired at"),
        (address(guarded), other, f"is the token in {other} one of this cluster?"),
        ("http://192.0.2.1:6820", good, "is another machine"),
        ("https://192.0.2.1:6820", None, "is another machine"),
    ):
        settings = {"slurmrestd": place} | ({"token-file": str(token)} if token else {})
        assert said in refusal(guarded, tmp_path, settings, token=False), (place, token)
