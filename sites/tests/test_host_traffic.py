"""What hosts of programs sent to each other: answered by a manager, read by nova-scheduler's helper process."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="topolane-sites is not installed with what it needs")
from managed import Managed, managing
from sender import Rank
from waiting import until, until_async

TOKEN = "operator-" + "x" * 16


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Managed, str]]:
    """One with TLS and a token, and its URL. It knows the address of the guest g1."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("traffic")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run(
        [*command.split(), "-keyout", "key.pem", "-out", "cert.pem"], cwd=folder, check=True, stderr=-3
    )
    for name in ("token", "wrong"):
        (folder / name).write_text(TOKEN if name == "token" else name)
        (folder / name).chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = {
        "listen": f'["unix:{folder}/a.sock", "127.0.0.1:{port}"]',
        "token_file": '"token"',
        "certificate": '"cert.pem"',
        "key": '"key.pem"',
    }
    with managing(folder, {}, **settings) as running:
        guest = {"name": "g1", "cores": 1, "memory": 1 << 30, "host": "e1", "address": "10.42.0.1"}
        running.client.put("/clusters/c", {"name": "c", "network": "10.42.0.0/24", "guests": [guest]})
        yield running, f"https://localhost:{port}"


def report(path: str, program: str, ends: bool) -> None:
    """A program with ranks 0 and 1 on g1 and rank 2 on g2: rank 0 sends 100 bytes to 1 and 30 to 2."""

    async def run() -> None:
        ranks = [Rank(path, at, 3, program=program, host=host) for at, host in enumerate(["g1", "g1", "g2"])]
        for rank in ranks:
            rank.start()
        ranks[0].report((1, 0, 1, 100, 1), (2, 0, 1, 30, 1))
        for rank in ranks if ends else ():
            rank.bye()
        await until_async(lambda: all(rank.welcomes and not rank.unacknowledged for rank in ranks))
        for rank in ranks:
            await rank.stop()

    asyncio.run(run())


def read(manager: tuple[Managed, str], **changed: Any) -> dict[str, Any]:
    """What the process that reads prints."""
    running, url = manager
    question = {
        "source": url,
        "token_file": str(running.folder / "token"),
        "ca": str(running.folder / "cert.pem"),
    }
    question |= {"days": 30.0, "seconds": 60.0, "known": []} | changed
    done = subprocess.run(
        [sys.executable, "-m", "topolane.nova.measured_sources"],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_manager_is_read_over_tls(manager: tuple[Managed, str]) -> None:
    """Bytes within a host do not count, the address of a guest that the manager knows is given. A program that has
    ended is read once, one that runs every time; both are still there when the manager was started again."""
    running, _ = manager
    report(running.programs, "over", ends=True)
    report(running.programs, "runs", ends=False)
    until(lambda: [one["ended"] is None for one in running.client.get("/traffic")] == [True, False])
    for _ in range(2):
        found = read(manager)
        assert found["ids"] == ["runs", "over"] and not found["skipped"]
        for one in found["programs"]:
            assert (one["hosts"], one["addresses"], one["sent"]) == (
                ["g1", "g2"],
                ["10.42.0.1", ""],
                [[0, 1, 30.0]],
            )
        assert [one["id"] for one in read(manager, known=["over"])["programs"]] == ["runs"]
        running.kill()
        running.start()


def test_what_is_wrong_is_named(manager: tuple[Managed, str]) -> None:
    """A wrong token, no token, no certificate that fits, a file that is missing."""
    running, _ = manager
    folder = running.folder
    assert "401: the token is missing or wrong" in read(manager, token_file=str(folder / "wrong"))["problem"]
    assert "401: the token is missing or wrong" in read(manager, token_file=None)["problem"]
    assert "certificate verify failed" in read(manager, ca=None)["problem"].lower()
    assert "measured_token_file = /no/file: No such file" in read(manager, token_file="/no/file")["problem"]
    assert "measured_ca = /no/file: No such file" in read(manager, ca="/no/file")["problem"]
