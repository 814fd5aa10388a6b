"""slurmrestd over HTTP, where it wants a token: a real one on 127.0.0.1 that refuses requests without a token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("httpx", reason="needs the extra slurm: httpx")

from live_cluster import Cluster, running, script
from topolane import InputError
from topolane.slurm.client import SlurmError, connect
from waiting import until


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    options = ("--auth", "jwt")
    done = script("check", *options)
    if done.returncode:
        pytest.skip(done.stderr.strip().removeprefix("cluster.sh: "))
    with running(6, tmp_path_factory.mktemp("guarded"), *options) as up:
        yield up


def address(cluster: Cluster) -> str:
    return f"http://{cluster.facts['REST_ADDRESS']}"


def write_token(cluster: Cluster, path: Path, lifespan: int) -> None:
    path.write_text(cluster.run("scontrol", "token", "username=root", f"lifespan={lifespan}"))


def refusal(cluster: Cluster, token: Path) -> str:
    """Why Slurm is not read with a token; nothing if it is."""
    try:
        connect(address(cluster), str(token)).snapshot()
    except SlurmError as error:
        return str(error)
    return ""


def test_a_token_that_is_renewed(guarded: Cluster, tmp_path: Path) -> None:
    """Slurm is read over HTTP; when the token has expired that is said; with another one in the file it is read again."""
    token = tmp_path / "token"
    write_token(guarded, token, 600)
    slurm = connect(address(guarded), str(token))
    job = guarded.submit("--nodes=2", "--time=5", script="sleep 60")
    until(lambda: slurm.snapshot().jobs[job].state == "RUNNING", "the job runs")
    write_token(guarded, token, 1)
    until(lambda: refusal(guarded, token), "it expires")
    with pytest.raises(SlurmError, match=f"token-file {token}: the token expired at"):
        slurm.snapshot()
    write_token(guarded, token, 600)
    assert job in slurm.snapshot().jobs
    guarded.run("scancel", job)
    slurm.close()


def test_a_wrong_token_at_the_start(guarded: Cluster, tmp_path: Path) -> None:
    """None, none there, none in the file, one that has expired, one of another cluster; and a token is not
    sent over a network that can be listened to: one sentence."""
    good, text, old, other = (tmp_path / name for name in ("good", "text", "old", "other"))
    write_token(guarded, good, 600)
    write_token(guarded, old, 1)
    text.write_text("no token\n")
    head, claims, signature = good.read_text().strip().split(".")
    other.write_text(f"{head}.{claims}.{signature[::-1]}\n")
    until(lambda: "expired" in refusal(guarded, old), "one expires")
    for place, token, said in (
        (address(guarded), None, "wants a token-file"),
        (address(guarded), tmp_path / "none", "No such file or directory"),
        (address(guarded), text, "holds no token such as `scontrol token` prints"),
        (address(guarded), old, "the token expired at"),
        (address(guarded), other, f"is the token in {other} one of this cluster?"),
        ("http://192.0.2.1:6820", good, "is another machine"),
        ("https://192.0.2.1:6820", None, "is another machine"),
    ):
        with pytest.raises((SlurmError, InputError)) as error:
            connect(place, None if token is None else str(token)).snapshot()
        assert said in str(error.value), (place, token)
