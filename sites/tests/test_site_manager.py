"""What other users of a machine, and the network, can do to a site manager. Each test attacks one that runs."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="topolane-sites is not installed with what it needs")
import httpx
import psutil
from managed import MAIN, Managed
from topolane import InputError
from waiting import DEADLINE, until

OPERATOR, REPORTER = "operator-" + "x" * 16, "reporter-" + "y" * 16
MIB = 1 << 20


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def secret(path: Path, text: str) -> str:
    path.write_text(text + "\n")
    path.chmod(0o600)
    return str(path)


def topolane(*words: object, **settings: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MAIN, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, **settings)


@contextlib.contextmanager
def guarded(folder: Path, **settings: object) -> Iterator[tuple[Managed, int]]:
    """A manager with a Unix socket and a loopback port, which have both tokens; and the port."""
    port = free_port()
    secret(folder / "token", OPERATOR)
    secret(folder / "reports", REPORTER)
    listen = f'["unix:{folder}/a.sock", "127.0.0.1:{port}"]'
    settings = {"token_file": '"token"', "report_token_file": '"reports"'} | settings
    manager = Managed(folder, {"g1": "e1"}, listen=listen, **settings)
    manager.start()
    try:
        yield manager, port
    finally:
        manager.stop()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def certificate(folder: Path) -> dict[str, str]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=folder, check=True, stderr=subprocess.DEVNULL)
    return {"certificate": '"cert.pem"', "key": '"key.pem"'}


def test_a_tcp_port_is_opened_with_a_token_only(tmp_path: Path) -> None:
    """A local user without a token reaches no TCP port of a manager: without one it refuses to listen, on loopback
    too, for its HTTP interface and for programs."""
    for listener in ("listen", "programs"):
        manager = Managed(tmp_path, {}, **{listener: f'"127.0.0.1:{free_port()}"'})
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "sites", "run", "--config", str(manager.file)],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            _, said = process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            pytest.fail(f"it serves {listener} without a token")
        assert process.returncode == 2 and "needs a" in said and said.count("\n") == 1, said


def test_what_is_executed_on_a_host_comes_from_no_network(tmp_path: Path) -> None:
    """Whoever puts a cluster into a manager has nothing executed by 'sites down': neither by the cluster's name nor by
    the operator's own file, whatever the manager then says of it."""
    proof = tmp_path / "executed"
    with guarded(tmp_path) as (manager, _):
        evil = ["sh", "-c", f"touch {proof}; echo"]
        host = {
            "name": "e1",
            "site": "east",
            "cores": 4,
            "memory": 1 << 33,
            "driver": "dry-run",
            "address": "",
        }
        member = {"name": "e1", "run": evil, "tunnel": "192.0.2.1", "behind_nat": False, "own": None}
        cluster = {"name": "c1", "network": "10.42.0.0/24", "hosts": [host], "members": [member]}
        manager.client.put("/clusters/c1", cluster | {"guests": [], "boots": [], "sites": []})
        asked = ["--manager", f"unix:{tmp_path}/a.sock"]
        topolane("sites", "down", "c1", *asked)
        topolane("sites", "down", "c1", "--config", manager.file, *asked)
        assert not proof.exists()
        mine = tmp_path / "c1.toml"
        mine.write_text(
            'name = "c1"\nnetwork = "10.42.0.0/24"\n[[host]]\nname = "q1"\ntunnel = "192.0.2.1"\nrun = ["true"]\n'
            '[[guest]]\nname = "v1"\ncores = 1\nmemory = "1 MiB"\naddress = "10.42.0.1"\nimage = "gone"\n'
        )
        (tmp_path / "q1").mkdir(mode=0o700)
        text = manager.file.read_text()
        with_host = f'name = "east"\n[[site.host]]\nname = "q1"\ncores = 1\nmemory = "1 GiB"\ndriver = "qmp"\naddress = "{tmp_path}/q1"\n'
        config = tmp_path / "own.toml"
        config.write_text(text.replace('name = "east"\n', with_host, 1))
        text = mine.read_text()
        mine.write_text(text.replace('"true"', '"false"'))
        done = topolane("sites", "down", mine, "--config", config, *asked)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "c1 is not down: q1: " in done.stderr
        mine.write_text(text)
        done = topolane("sites", "down", mine, "--config", config, *asked)
        assert done.returncode == 0, done.stderr
        assert manager.client.get("/clusters") == {}
        assert not proof.exists()


def test_a_report_names_nothing_that_is_executed(tmp_path: Path) -> None:
    """A host that reports itself, even with the operator's token, does not say what drives it nor where: the manager
    runs nothing from a folder that the sites file does not name."""
    folder, proof = tmp_path / "planted", tmp_path / "executed"
    folder.mkdir()
    (folder / "host.json").write_text(json.dumps({"run": ["sh", "-c", f"touch {proof}"]}))
    guest = {"name": "g9", "arguments": [], "bridge": None, "mac": "", "mtu": 1500}
    (folder / "g9.json").write_text(json.dumps(guest))
    with guarded(tmp_path) as (manager, port):
        report = {"site": "east", "cores": 4, "memory": 1 << 33, "driver": "qmp", "address": str(folder)}
        url = f"http://127.0.0.1:{port}"
        httpx.post(f"{url}/hosts/h9/report", json=report, headers=bearer(OPERATOR))
        known = {host["name"]: host for host in manager.client.get("/hosts")}
        reported = known.get("h9", {})
        assert reported.get("driver", "dry-run") == "dry-run" and reported.get("address", "") != str(
            folder
        ), reported
    assert not proof.exists()


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    """A user who may write to the folder of a host's guests plants no command there: such a folder is refused."""
    from topolane_sites.model import Host
    from topolane_sites.qemu import QemuFolder
    from topolane_sites.remote import CommandFailed

    folder = tmp_path / "guests"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(CommandFailed, match="others may write"):
        QemuFolder.of(Host("h", "east", 1, 1, "qmp", str(folder)))
    folder.chmod(0o700)
    assert QemuFolder.of(Host("h", "east", 1, 1, "qmp", str(folder))).path == folder


def test_a_body_is_not_read_before_its_token(tmp_path: Path) -> None:
    """Whoever has no token cannot fill the manager's memory: 300 MB sent to /place, over TLS, with the length said and
    in chunks, leave it as large as it was; with the token 413 is the answer."""
    folder = tmp_path
    with guarded(folder, **certificate(folder)) as (manager, port):
        process = psutil.Process(manager.process.pid)
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        before = process.memory_info().rss
        most = before
        for head in (b"Content-Length: 300000000\r\n", b"Transfer-Encoding: chunked\r\n"):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 30) as plain:
                with trust.wrap_socket(plain, server_hostname="localhost") as sending:
                    sending.sendall(
                        b"POST /place HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    )
                    sending.sendall(head + b"\r\n")
                    piece = b" " * 100_000
                    for _ in range(3000):
                        sending.sendall(b"186a0\r\n" + piece + b"\r\n" if b"chunked" in head else piece)
                        most = max(most, process.memory_info().rss)
        assert most - before < 60 * MIB, f"{(most - before) / MIB:.0f} MiB more"
        with httpx.Client(verify=trust, headers=bearer(OPERATOR)) as asked:
            with contextlib.suppress(httpx.TransportError):  # it may hang up while the body is being sent
                answer = asked.post(f"https://127.0.0.1:{port}/place", content=b" " * (2 * MIB))
                assert answer.status_code == 413
            until(lambda: asked.get(f"https://127.0.0.1:{port}/status").status_code == 200)


@pytest.mark.parametrize("listener", ["http", "tls", "programs"])
def test_half_sent_requests_leave_room_for_others(tmp_path: Path, listener: str) -> None:
    """A client that opens 300 connections and sends nothing, at a limit of 256 descriptors, keeps no other out: the operator is
    answered, the manager rests and its log stays short."""
    settings = certificate(tmp_path) if listener == "tls" else {}
    programs = free_port()
    if listener == "programs":
        settings["programs"] = f'"127.0.0.1:{programs}"'
    preset = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); "
    port = free_port()
    secret(tmp_path / "token", OPERATOR)
    secret(tmp_path / "reports", REPORTER)
    listen = f'["unix:{tmp_path}/a.sock", "127.0.0.1:{port}"]'
    manager = Managed(
        tmp_path, {}, listen=listen, token_file='"token"', report_token_file='"reports"', **settings
    )
    command = [sys.executable, "-c", preset + MAIN, "sites", "run", "--config", str(manager.file)]
    with open(manager.said, "a") as said:
        manager.process = subprocess.Popen(command, stderr=said)
    until(manager.answers)
    process = psutil.Process(manager.process.pid)
    held = []
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                one = socket.create_connection(("127.0.0.1", programs if listener == "programs" else port), 5)
                held.append(one)
                if listener == "http":
                    one.sendall(b"POST /place HTTP/1.1\r\nHost: loc")
        looks = [0.0]

        def rests() -> bool:
            looks.append(sum(process.cpu_times()[:2]))
            return looks[-1] == looks[-2]

        for _ in range(4):
            until(manager.answers, "the operator is answered")
            until(rests, "the manager rests")
        assert manager.said.stat().st_size < 100_000
    finally:
        for one in held:
            one.close()
        manager.process.send_signal(signal.SIGTERM)
        manager.process.wait(DEADLINE)


def test_a_report_of_many_guests_stalls_no_request(tmp_path: Path) -> None:
    """Whoever has the token of reports cannot stall the manager by naming 20,000 guests at once: more than a thousand
    of one host are refused, and a thousand are written while others are answered."""
    with guarded(tmp_path) as (manager, port):
        url = f"http://127.0.0.1:{port}"

        def report(count: int, name: str) -> int:
            guests = [{"name": f"{name}{number}", "cores": 1, "memory": 1} for number in range(count)]
            body = {"site": "east", "cores": 4, "memory": 1 << 33, "guests": guests}
            try:
                return httpx.post(
                    f"{url}/hosts/e1/report", json=body, headers=bearer(REPORTER), timeout=DEADLINE
                ).status_code
            except httpx.TransportError:
                return 413

        assert report(20_000, "a") in (413, 422)
        assert report(1_001, "b") == 422
        assert report(1_000, "c") == 200
        assert len(manager.client.get("/guests")) == 1_001
        manager.kill()
        manager.start()
        assert len(manager.client.get("/guests")) == 1_001, "what was answered is kept"


def test_a_page_of_another_origin_orders_nothing(tmp_path: Path) -> None:
    """A page in a browser of this machine cannot pause a manager by a form: neither by another name of the loopback
    address nor from another origin, with a token or without."""
    with guarded(tmp_path) as (manager, port):
        url = f"http://127.0.0.1:{port}"
        for headers in ({}, bearer(OPERATOR)):
            for more in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
                answer = httpx.post(f"{url}/pause", headers={**headers, **more})
                assert answer.status_code in (400, 401, 403), (headers, more, answer.text)
        assert manager.client.get("/status")["paused"] is False
        own = {"Origin": f"http://127.0.0.1:{port}"}
        assert httpx.post(f"{url}/pause", headers={**bearer(OPERATOR), **own}).status_code == 200


def test_a_page_of_another_origin_orders_nothing_where_there_is_no_token(tmp_path: Path) -> None:
    """A manager without a token has no port that a page could reach."""
    port = free_port()
    manager = Managed(tmp_path, {}, listen=f'["unix:{tmp_path}/a.sock", "127.0.0.1:{port}"]')
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "sites", "run", "--config", str(manager.file)], stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: process.poll() is not None or manager.answers())
        with contextlib.suppress(OSError):
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
            asked.request("POST", "/pause", headers={"Origin": "http://evil.example"})
            assert asked.getresponse().status >= 400
    finally:
        process.kill()
        process.wait()


def test_a_token_is_sent_encrypted_or_not_at_all(tmp_path: Path) -> None:
    """Whoever listens between two machines learns no token: a command with one refuses http:// to another machine."""
    token = secret(tmp_path / "token", OPERATOR)
    with socket.create_server(("0.0.0.0", 0)) as listener:
        listener.settimeout(0.2)
        own = _own_address()
        manager = f"http://{own}:{listener.getsockname()[1]}"
        words = ["sites", "status", "--manager", manager, "--token-file", token]
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        try:
            while process.poll() is None:
                with contextlib.suppress(TimeoutError):
                    connection, _ = listener.accept()
                    with connection:
                        assert OPERATOR.encode() not in connection.recv(10_000), "the token was sent in clear"
        finally:
            process.kill()
            _, said = process.communicate()
    assert process.returncode == 2 and "https://" in said and said.count("\n") == 1, said


def _own_address() -> str:
    """An address of this machine that is not a loopback address."""
    for addresses in psutil.net_if_addrs().values():
        for one in addresses:
            if one.family == socket.AF_INET and not one.address.startswith("127."):
                return one.address
    pytest.skip("this machine has the loopback address only")


def test_the_database_and_the_description_are_the_operators(tmp_path: Path) -> None:
    """Another user reads neither the manager's database, whose file only its owner may open, nor what its interface
    is like, which needs the token too."""
    with guarded(tmp_path) as (manager, port):
        for file in tmp_path.glob("sites.db*"):
            assert file.stat().st_mode & 0o077 == 0, file
        url = f"http://127.0.0.1:{port}"
        for path in ("/openapi.json", "/docs", "/redoc", "/status", "/nothing"):
            assert httpx.get(url + path).status_code == 401, path
        assert httpx.get(f"{url}/openapi.json", headers=bearer(OPERATOR)).status_code == 200
        assert manager.client.get("/openapi.json")["openapi"]


def test_a_sites_file_without_hosts_waits_for_reports(tmp_path: Path) -> None:
    """A file may leave all hosts to their reports: the manager runs until they come, and then knows them."""
    (tmp_path / "guests").mkdir(mode=0o700)
    manager = Managed(tmp_path, {})
    manager.file.write_text(
        f'[manager]\nlisten = "unix:{tmp_path}/a.sock"\nprograms = "unix:{tmp_path}/p.sock"\ninterval = 0.1\n'
        f'[[site]]\nname = "east"\ndriver = "qmp"\naddress = "{tmp_path}/guests/{{host}}"\n[[site]]\nname = "west"\n'
    )
    manager.start()
    try:
        assert manager.client.post("/plan")["moves"] == []
        assert topolane("sites", "status", "--manager", f"unix:{tmp_path}/a.sock").returncode == 0
        assert manager.client.post("/hosts/h1/report", {"site": "east", "cores": 2, "memory": 1 << 30})[
            "taken"
        ]
        (known,) = manager.client.get("/hosts")
        assert (known["name"], known["driver"], known["address"]) == ("h1", "qmp", f"{tmp_path}/guests/h1")
        with pytest.raises(InputError, match="letters, digits"):
            manager.client.post("/hosts/a b/report", {"site": "east", "cores": 2, "memory": 1})
        assert manager.client.post("/place", {"guests": 2, "cores": 1, "memory": 1})["hosts"] == ["h1", "h1"]
    finally:
        said = manager.stop()
    assert "Traceback" not in said, said
