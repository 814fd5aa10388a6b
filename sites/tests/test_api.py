"""The HTTP interface: who may ask, and what it says of itself."""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="topolane-sites is not installed with what it needs")
import httpx
from managed import MAIN, Managed, managing
from topolane import InputError
from topolane_sites.cli.client import lost
from topolane_sites.client import Client
from waiting import DEADLINE, until

TOKEN, REPORTS, READS = "operator-" + "x" * 16, "reporter-" + "y" * 16, "reader-" + "z" * 16


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def secret(path: Path, text: str) -> Path:
    path.write_text(text + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def open_manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Managed, str]]:
    """One that listens on all addresses, with TLS and three tokens; and its URL."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("open")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run(
        [*command.split(), "-keyout", "key.pem", "-out", "cert.pem"], cwd=folder, check=True, stderr=-3
    )
    secret(folder / "token", TOKEN)
    secret(folder / "reports", REPORTS)
    secret(folder / "reads", READS)
    port = free_port()
    settings = {
        "listen": f'["unix:{folder}/a.sock", "0.0.0.0:{port}"]',
        "token_file": '"token"',
        "report_token_file": '"reports"',
        "read_token_file": '"reads"',
        "certificate": '"cert.pem"',
        "key": '"key.pem"',
    }
    with managing(folder, {"g1": "e1"}, **settings) as manager:
        yield manager, f"https://localhost:{port}"


def client(manager: Managed, url: str, token: str | None) -> Client:
    folder = manager.folder
    file = str(secret(folder / "mine", token)) if token is not None else None
    return Client(url, file, str(folder / "cert.pem"))


HOST = {"site": "east", "cores": 4, "memory": 1 << 33}


def test_the_operators_token_opens_everything(open_manager: tuple[Managed, str]) -> None:
    """Over TLS, with the token of the operator: looks, orders and reports."""
    asked = client(*open_manager, TOKEN)
    assert asked.get("/status")["policy"] == "predicted-time"
    assert asked.post("/plan")["moves"] == []
    assert asked.post("/hosts/e1/report", HOST) == {"taken": True}


def test_the_token_of_reports_opens_reports_only(open_manager: tuple[Managed, str]) -> None:
    """Hosts and guests may report with it, and do nothing else."""
    asked = client(*open_manager, REPORTS)
    assert asked.post("/hosts/e1/report", HOST) == {"taken": True}
    assert asked.post("/guests/g1/report", {}) == {"taken": True}
    for order in ("/plan", "/pause", "/plans/x/apply"):
        with pytest.raises(InputError, match="token is missing or wrong"):
            asked.post(order)
    with pytest.raises(InputError, match="token is missing or wrong"):
        asked.get("/status")


def test_the_token_of_reads_gets_and_changes_nothing(open_manager: tuple[Managed, str]) -> None:
    """With it, a GET of every path is answered, and every other method of every path is refused with 403 before its
    body is read. That holds for reports and for a cluster's hold too, and nothing is paused afterwards."""
    manager, url = open_manager
    asked = client(manager, url, READS)
    answered, refused = [], []
    for path, methods in manager.client.get("/openapi.json")["paths"].items():
        for method in methods:
            answer = asked._http.request(method, path.replace("{", "").replace("}", ""), content="not JSON")
            if answer.status_code == 403:
                assert "may only read" in answer.json()["detail"]
            (refused if answer.status_code == 403 else answered).append(method)
            assert answer.status_code in (200, 403, 404), answer.text
    assert set(answered) == {"get"} and set(refused) == {"post", "put", "delete"}
    for method in ("PATCH", "OPTIONS", "TRACE"):
        assert asked._http.request(method, "/status").status_code == 403
    assert asked.get("/status")["paused"] is False


def test_nova_scheduler_reads_with_the_token_of_reads(open_manager: tuple[Managed, str]) -> None:
    """The process that nova-scheduler starts, with `measured_token_file`: it lists the programs. With the token of
    reports it is refused."""
    manager, url = open_manager

    def answer(token: str) -> dict[str, object]:
        file = secret(manager.folder / "nova", token)
        question = {"source": url, "token_file": str(file), "ca": str(manager.folder / "cert.pem")}
        done = subprocess.run(
            [sys.executable, "-m", "topolane.nova.measured_sources"],
            input=json.dumps(question | {"days": 30.0, "seconds": 60.0, "known": []}),
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    assert answer(READS) == {"ids": [], "programs": [], "skipped": []}
    assert "401: the token is missing or wrong" in str(answer(REPORTS)["problem"])


def test_the_token_of_reports_brings_no_host_in(open_manager: tuple[Managed, str]) -> None:
    """A new host, or a known one that changes its size, is taken from the operator only; what the operator brought in
    may then report with the other token. Only the sites file says what drives a host."""
    operator, reporter = (client(*open_manager, token) for token in (TOKEN, REPORTS))
    with pytest.raises(InputError, match="h9: it is not known as it says it is"):
        reporter.post("/hosts/h9/report", HOST)
    assert "h9" not in {one["name"] for one in operator.get("/hosts")}
    assert operator.post("/hosts/h9/report", HOST) == {"taken": True}
    assert reporter.post("/hosts/h9/report", HOST) == {"taken": True}
    with pytest.raises(InputError, match="h9: it is not known as it says it is"):
        reporter.post("/hosts/h9/report", HOST | {"cores": 5})
    with pytest.raises(InputError, match="the sites file gives 'dry-run'"):
        operator.post("/hosts/h9/report", HOST | {"driver": "qmp"})


@pytest.mark.parametrize("token", [None, "guess", TOKEN[:-1], TOKEN + "x"])
def test_without_the_token_nothing_is_said_or_done(
    open_manager: tuple[Managed, str], token: str | None
) -> None:
    """Every path of the interface answers 401."""
    manager, url = open_manager
    asked = client(manager, url, token)
    paths = manager.client.get("/openapi.json")["paths"]
    assert len(paths) > 15
    paths["/openapi.json"] = ["get"]
    for path, methods in paths.items():
        for method in methods:
            with pytest.raises(InputError, match="token is missing or wrong"):
                asked._ask(method.upper(), path.replace("{", "").replace("}", ""), json={})


def test_what_speaks_no_tls_or_trusts_no_certificate_gets_no_answer(
    open_manager: tuple[Managed, str],
) -> None:
    """Plain HTTP at the port, and a client that does not know the certificate: one sentence."""
    _, url = open_manager
    for asked in (Client(url.replace("https", "http")), Client(url)):
        with pytest.raises(InputError, match="no answer"):
            asked.get("/status")


def test_the_socket_is_its_owners_alone(open_manager: tuple[Managed, str]) -> None:
    """A user who may open a socket needs no token there, so no other user may."""
    for name in ("a.sock", "p.sock"):
        assert (open_manager[0].folder / name).stat().st_mode & 0o777 == 0o600


def test_the_manager_refuses_what_it_cannot_use(tmp_path: Path) -> None:
    """A second manager of the same sites, a policy that is none, a socket's folder that is not there: exit code 2 and
    one sentence."""

    def refused(text: str) -> str:
        file = tmp_path / "other.toml"
        file.write_text(text)
        run = [sys.executable, "-c", MAIN, "sites", "run", "--config", str(file)]
        done = subprocess.run(run, capture_output=True, text=True, timeout=DEADLINE)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    with managing(tmp_path, {}) as manager:
        text = manager.file.read_text()
        assert "another manager has this database" in refused(text)
        assert "another process already listens there" in refused(
            text.replace("[manager]", '[manager]\nstate = "b.db"')
        )
        assert "other.toml:2: policy 'x' is not known" in refused(
            text.replace("[manager]", '[manager]\npolicy = "x"')
        )
        until(manager.answers)
        gone = text.replace(f"{tmp_path}/a.sock", "/nowhere/a.sock").replace(
            "[manager]", '[manager]\nstate = "c.db"'
        )
        assert "/nowhere/a.sock: nothing can listen there" in refused(gone)


def test_commands_print_tables_and_json(tmp_path: Path) -> None:
    """status, plan and explain, as people and as programs read them; a manager that is not there: one sentence."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", MAIN, "sites", *words, "--manager", f"unix:{tmp_path}/a.sock"]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)

    with managing(tmp_path, {"g1": "e1"}):
        assert "east-west 10 ms 1000 Mbit/s" in run("status").stdout
        assert json.loads(run("status", "--json").stdout)["sites"][0]["guests"] == 1
        assert run("plan").stdout == "No move is worth its cost.\n"
        assert json.loads(run("plan", "--json").stdout)["moves"] == []
        assert run("planning", "pause").stdout == "paused\n"
        assert "no program is called lu" in run("explain", "lu").stderr
        assert "no plan is called x" in run("apply", "x").stderr
        for words in (("explain", "../status"), ("apply", ""), ("host", "--site=a", "--driver=qmp")):
            done = run(*words)
            assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    done = run("status")
    assert done.returncode == 2 and "no answer" in done.stderr and done.stderr.count("\n") == 1


def test_what_cannot_be_kept_or_repeated_is_refused(tmp_path: Path) -> None:
    """Reports and questions with numbers that the engine, JSON or the database has no room for, and names that are
    paths: each is refused, and the manager goes on planning."""
    guest = {"name": "g", "cores": 1, "memory": 1 << 30}
    reports = [
        {**HOST, "cores": 1 << 40},
        {**HOST, "guests": [{**guest, "cores": 1 << 40}]},
        {**HOST, "guests": [{**guest, "dirty": float("inf")}]},
        {**HOST, "use": {"cpu": float("nan")}},
        {**HOST, "use": {"who": "\ud800"}},
        {**HOST, "driver": "hammer"},
        {**HOST, "guests": [{**guest, "name": "../../tmp/g"}]},
        {**HOST, "guests": [{**guest, "name": "-g"}]},
    ]
    with managing(tmp_path, {"g1": "e1"}):
        transport = httpx.HTTPTransport(uds=f"{tmp_path}/a.sock")
        json_ = {"content-type": "application/json"}  # else the manager refuses the body unread
        with httpx.Client(transport=transport, base_url="http://localhost", headers=json_) as asked:
            for report in reports:
                answer = asked.post("/hosts/h9/report", content=json.dumps(report))
                assert answer.status_code == 422, (report, answer.text)
            for path, body in (
                ("/clusters/c", {"x": float("nan")}),
                ("/guests/g1/report", {"x": float("inf")}),
            ):
                answer = asked.request(
                    "PUT" if "clusters" in path else "POST", path, content=json.dumps(body)
                )
                assert answer.status_code == 422, answer.text
            for question in ("/events?limit=99999999999999999999", "/moves?limit=-1"):
                assert asked.get(question).status_code == 422
            cores = {"guests": 1, "cores": 1 << 40, "memory": 1}
            assert asked.post("/place", json=cores).status_code == 422
            for path in ("/status", "/hosts", "/guests", "/clusters"):
                assert asked.get(path).status_code == 200
            assert asked.post("/plan").json()["moves"] == []


def test_what_is_lost_is_a_share() -> None:
    """A second that takes a second longer loses half of its time, one that never ends all of it."""
    assert [lost(longer) for longer in (0.0, 1.0, math.inf)] == ["0.0 %", "50.0 %", "100.0 %"]
