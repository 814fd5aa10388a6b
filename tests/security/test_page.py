"""What others can do to the page of `topolane serve`. Each test attacks one that runs."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

sys.path.append(str(Path(__file__).parents[1] / "serve"))
from served import MAIN, SMALL, served
from topolane._engine import Machine
from topolane.cluster.accounts import client_of
from topolane.serve.api import PAGE
from waiting import DEADLINE, until

if not (PAGE / "index.html").is_file():
    pytest.skip("the page is not built: make page", allow_module_level=True)

TOKEN = "viewers-" + "v" * 16
ASKED = {"nodes": 4, "hours": 1, "policy": "first-fit"}
API = ("/api/machine", "/api/snapshot", "/api/events", "/api/series", "/api/outlook", "/api/why?job=1")


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """A page without a token."""
    with served(*SMALL, "--viewers", "3") as address:
        yield address


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A page with a token, behind a proxy that has a public name."""
    file = tmp_path_factory.mktemp("page") / "token"
    file.write_text(TOKEN + "\n")
    with served(*SMALL, "--token-file", str(file), "--public-name", "hpc.example.org") as address:
        yield address


def refused(*words: str) -> str:
    """What `topolane serve` says when it does not start with these options."""
    found = subprocess.run(
        [sys.executable, "-c", MAIN, "serve", *words], capture_output=True, text=True, timeout=DEADLINE
    )
    assert found.returncode == 2 and found.stdout == "" and found.stderr.count("\n") == 1
    return found.stderr


@contextlib.contextmanager
def watched(page: str, user: str = "", address: str | None = None) -> Iterator[int]:
    """The status of a viewer's stream. If it is 200, the stream has begun and is held. address: the viewer's."""
    with (
        httpx.Client(transport=httpx.HTTPTransport(local_address=address)) as client,
        client.stream(
            "GET", f"{page}/api/events", timeout=DEADLINE, headers={"X-Remote-User": user}
        ) as answer,
    ):
        lines = answer.iter_lines()  # kept: the stream ends with it
        if answer.status_code == 200:
            assert next(lines) == "event: hello"
        yield answer.status_code


def test_without_the_token_nothing_is_shown(locked: str) -> None:
    """No path of the API answers without the token, or with a wrong one, as a header or as a cookie."""
    for shown in ({}, {"Authorization": "Bearer " + "w" * 24}, {"Cookie": "topolane=" + "0" * 64}):
        for path in API:
            assert httpx.get(locked + path, headers=shown).status_code == 401
        assert httpx.post(f"{locked}/api/ask", json=ASKED, headers=shown).status_code == 401
    answer = httpx.get(f"{locked}/api/snapshot", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200


def test_a_browser_shows_the_token_once(locked: str) -> None:
    """The token buys a session that no browser sends by itself; a wrong token buys none, and a cookie shows nothing."""
    wrong = httpx.post(f"{locked}/login", json={"token": "w" * 24})
    assert wrong.status_code == 401 and "session" not in wrong.json()
    answer = httpx.post(f"{locked}/login", json={"token": TOKEN})
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store"
    session = answer.json()["session"]
    assert TOKEN not in answer.text and not answer.cookies
    shown = {"Authorization": f"Bearer {session}"}
    assert httpx.get(f"{locked}/api/snapshot", headers=shown).status_code == 200
    for kept in (f"topolane={session}", f"topolane={TOKEN}", f"topolane-session={session}"):
        assert httpx.get(f"{locked}/api/snapshot", headers={"Cookie": kept}).status_code == 401


def guesses(page: str, user: str = "") -> Iterator[int]:
    """The answers to wrong tokens, one after another."""
    with httpx.Client(headers={"X-Remote-User": user}, timeout=DEADLINE) as client:
        for guess in range(60):
            yield client.post(f"{page}/login", json={"token": f"{guess:024}"}).status_code


def test_wrong_tokens_keep_no_one_else_out(locked: str) -> None:
    """A client that guesses is refused after a few tries. The right token is still taken, from its address too."""
    assert 429 in guesses(locked)
    assert httpx.post(f"{locked}/login", json={"token": TOKEN}).status_code == 200


def test_wrong_tokens_are_counted_by_account(tmp_path: Path) -> None:
    """Behind a proxy, the wrong tokens of one user do not use up the tries of another user."""
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    with served(*SMALL, "--token-file", str(file), "--auth-header", "X-Remote-User") as other:
        assert 429 in guesses(other, "eve")
        assert next(guesses(other, "ada")) == 401


def test_a_client_on_this_machine_is_its_user() -> None:
    """All loopback addresses of a user are one client. Another user of the machine is another client."""
    with served(*SMALL, "--viewers", "8") as other, contextlib.ExitStack() as held:
        found = [held.enter_context(watched(other, address=f"127.0.0.{last}")) for last in (1, 2, 77)]
        assert found == [200, 200, 429]
        if os.geteuid() != 0:
            pytest.skip("only root can watch as another user")
        words = [sys.executable, "-c", AS_ANOTHER_USER, *other.removeprefix("http://").split(":")]
        watching = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE)
        assert watching.stdout == "200", watching.stderr


# The interpreter may be where only root reads: a process becomes the user when it has all its modules.
AS_ANOTHER_USER = """
import encodings.idna, http.client, os, sys
os.setuid(65534)
asking = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]))
asking.request("GET", "/api/events")
print(asking.getresponse().status, end="")
"""


@pytest.mark.parametrize(
    ("client", "server", "account"),
    [
        (("192.0.2.7", 1), ("192.0.2.1", 2), "192.0.2.7"),
        (("::ffff:192.0.2.7", 1), ("::ffff:192.0.2.1", 2), "192.0.2.7"),
        (("2001:db8::1:2:3:4", 1), ("2001:db8:1::1", 2), "2001:db8::/64"),
        (("fe80::1%eth0", 1), ("fe80::2%eth0", 2), "fe80::/64"),
        (("127.1.2.3", 1), ("127.0.0.1", 2), "local"),
        (("::1", 1), ("::1", 2), "local"),
        (None, ("/run/page.sock", None), "socket"),
    ],
)
def test_one_client_has_one_account(client: object, server: object, account: str) -> None:
    """Addresses that one client can choose freely are one account: a /64 of IPv6, and loopback whose user is not known."""
    assert client_of(client, server) == account


def test_behind_a_proxy_every_request_names_its_user() -> None:
    """With --auth-header, a request without the header, or with one that is no name, is refused; even for the page itself."""
    with served(*SMALL, "--auth-header", "X-Remote-User") as other:
        for headers in ({}, {"X-Remote-User": ""}, {"X-Remote-User": "u" * 1000}):
            for path in ("/", *API):
                assert httpx.get(other + path, headers=headers).status_code == 401
        assert httpx.get(f"{other}/api/machine", headers={"X-Remote-User": "ada"}).status_code == 200


def test_questions_are_counted_by_user() -> None:
    """A user behind the proxy who asks too often is refused; others are not."""
    with served(*SMALL, "--auth-header", "X-Remote-User") as other:
        with httpx.Client(headers={"X-Remote-User": "eve"}, timeout=DEADLINE) as eve:
            codes = [eve.post(f"{other}/api/ask", json=ASKED | {"nodes": 0}).status_code for _ in range(3)]
            assert codes == [422] * 3  # what is not understood is not counted
            codes = [eve.post(f"{other}/api/ask", json=ASKED).status_code for _ in range(40)]
        assert codes[0] == 200 and 429 in codes
        assert (
            httpx.post(
                f"{other}/api/ask", json=ASKED, headers={"X-Remote-User": "ada"}, timeout=DEADLINE
            ).status_code
            == 200
        )


def test_pages_of_others_are_refused(page: str, locked: str) -> None:
    """A request that a page of another origin makes, by its Origin or by what the browser says of its site, is refused."""
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        assert httpx.get(f"{page}/api/snapshot", headers={"Origin": origin}).status_code == 403
        assert httpx.post(f"{page}/api/ask", json=ASKED, headers={"Origin": origin}).status_code == 403
    for site in ("cross-site", "same-site"):  # the same site: another port of this host
        cross = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        assert httpx.get(f"{page}/api/snapshot", headers=cross).status_code == 403
    assert httpx.get(f"{page}/api/snapshot", headers={"Origin": page}).status_code == 200
    public = {"Origin": "https://hpc.example.org", "Authorization": f"Bearer {TOKEN}"}
    assert httpx.get(f"{locked}/api/snapshot", headers=public).status_code == 200


def test_other_names_of_this_machine_are_refused(page: str, locked: str) -> None:
    """A name that an attacker points at this machine (DNS rebinding) gets no answer; a public name gets one."""
    for name in ("evil.example", "evil.example:80", "localhost.evil.example", ""):
        assert httpx.get(f"{page}/", headers={"Host": name}).status_code in (400, 421)
        assert httpx.get(f"{page}/api/snapshot", headers={"Host": name}).status_code in (400, 421)
    port = page.rpartition(":")[2]
    for name in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        assert httpx.get(f"{page}/", headers={"Host": name}).status_code == 200
    assert httpx.get(f"{locked}/", headers={"Host": "hpc.example.org"}).status_code == 200
    assert httpx.get(f"{page}/", headers={"Host": "hpc.example.org"}).status_code == 421


def test_the_page_loads_nothing_from_elsewhere_and_stands_in_no_frame(page: str) -> None:
    """Every answer forbids scripts, styles and connections of other hosts, frames, and reading by other sites."""
    for path in ("/", "/static/app.js", "/api/snapshot", "/api/why?job=0"):
        headers = httpx.get(page + path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "*" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_bodies_are_bounded(page: str) -> None:
    """A body of more than 4 KiB is refused, also if it comes in chunks without a length."""
    long = json.dumps(ASKED | {"policy": "x" * 8192})
    assert httpx.post(f"{page}/api/ask", content=long).status_code == 413
    assert (
        httpx.post(
            f"{page}/api/ask", content=(long[at : at + 500].encode() for at in range(0, 8000, 500))
        ).status_code
        == 413
    )


def test_what_makes_no_sense_is_refused(page: str) -> None:
    """Numbers out of range, not-a-number, other types and JSON that is broken or deeply nested get 422."""
    wrong = (
        ASKED | {"nodes": 0}, ASKED | {"nodes": 10**9}, ASKED | {"nodes": "many"}, ASKED | {"hours": -1},
        ASKED | {"hours": 1e300}, ASKED | {"policy": 3}, {"nodes": 3}, [], "text", ASKED | {"gpus": 0}, ASKED | {"gpus": 1},
        ASKED | {"gpus": 10**9}, ASKED | {"gpus": "all"}, ASKED | {"partition": "none"}, ASKED | {"partition": "p" * 200},
        ASKED | {"reservation": "none"}, ASKED | {"reservation": "r" * 200}, ASKED | {"reservation": 3},
    )  # fmt: skip
    for body in wrong:
        assert httpx.post(f"{page}/api/ask", json=body).status_code == 422
    for text in ('{"nodes": NaN, "hours": 1, "policy": "x"}', "{", "[" * 3000, "\xff"):
        sent = httpx.post(
            f"{page}/api/ask", content=text.encode("latin-1"), headers={"Content-Type": "application/json"}
        )
        assert sent.status_code in (400, 422)
    assert httpx.get(f"{page}/api/why", params={"job": -1}).status_code == 422
    assert httpx.get(f"{page}/api/why", params={"job": 2**64}).status_code == 422


def test_a_viewer_names_no_code(page: str, tmp_path: Path) -> None:
    """A policy in Python (`module:Class`) is the operator's choice: a viewer that names one is refused, and nothing is
    imported."""
    for policy in ("os:system", "antigravity:Policy", "nothing"):
        answer = httpx.post(f"{page}/api/ask", json=ASKED | {"policy": policy})
        assert answer.status_code == 422 and "not known" in answer.json()["detail"]


def test_the_page_only_reads(page: str) -> None:
    """No path takes another method than GET and HEAD, but for the form and the login; no file outside the page is read."""
    for path in ("/", *API[:-1], "/static/app.js"):
        for method in ("PUT", "DELETE", "PATCH", "POST"):
            assert httpx.request(method, page + path).status_code == 405
    for path in (
        "/static/../api.py",
        "/static/%2e%2e/api.py",
        "/static//etc/passwd",
        "/docs",
        "/openapi.json",
    ):
        assert httpx.get(page + path).status_code == 404


def test_viewers_are_bounded_and_make_room_when_they_leave() -> None:
    """With --viewers 3 a fourth user is refused; when one leaves, there is a place."""
    with served(*SMALL, "--viewers", "3", "--auth-header", "X-Remote-User") as other:
        with contextlib.ExitStack() as held:
            assert [held.enter_context(watched(other, user)) for user in ("ada", "bob", "eve", "joe")] == [
                *(200, 200, 200, 503)
            ]

        def is_let_in() -> bool:
            with watched(other, "joe") as status:
                return status == 200

        until(is_let_in, "a place for joe")


def test_one_account_cannot_take_all_places() -> None:
    """A client gets a quarter of the places, and a user that a proxy names at most eight; others still find a place."""
    with served(*SMALL, "--viewers", "12") as other, contextlib.ExitStack() as held:
        assert [held.enter_context(watched(other)) for _ in range(4)] == [200, 200, 200, 429]
    named = served(*SMALL, "--viewers", "100", "--auth-header", "X-Remote-User")
    with named as other, contextlib.ExitStack() as held:
        assert [held.enter_context(watched(other, "eve")) for _ in range(9)] == [200] * 8 + [429]
        assert [held.enter_context(watched(other, "socket")) for _ in range(9)] == [200] * 8 + [429]
        assert held.enter_context(watched(other, "ada")) == 200


def test_half_sent_requests_keep_no_one_out(page: str) -> None:
    """Whoever opens 200 connections and sends half a request occupies fixed places, of which new viewers take the oldest."""
    host, _, port = page.removeprefix("http://").rpartition(":")
    with contextlib.ExitStack() as held:
        for _ in range(200):
            one = held.enter_context(socket.create_connection((host, int(port)), 10))
            with contextlib.suppress(OSError):
                one.sendall(b"GET / HT")
        assert httpx.get(f"{page}/api/machine", timeout=DEADLINE).status_code == 200


def test_a_log_that_is_none_is_refused(tmp_path: Path) -> None:
    """What is no log of a shadow, or names code that the operator did not name, is refused with a sentence, and nothing is shown."""
    log = tmp_path / "log"
    assert "No such file" in refused("--shadow-log", str(log))
    machine = Machine.preset("cab").to("toml")
    for text, said in (
        ("", "not the log of a shadow"),
        ('{"event":"ends"}\n', "not an event of a shadow"),
        ('{"event":"shadow","time":1,"machine":7,"policy":"isolated"}\n', "not an event of a shadow"),
        (
            json.dumps({"event": "shadow", "time": 1, "machine": machine, "policy": "os:system"}) + "\n",
            "which is code",
        ),
    ):
        log.write_text(text)
        assert said in refused("--shadow-log", str(log))
    assert "give one of them" in refused("--shadow-log", str(log), "--slurm")
    assert "a shadow's log has its policy" in refused("--shadow-log", str(log), "--shadow", "first-fit")


def test_a_policy_that_cannot_be_compared_with_is_refused() -> None:
    """A policy of --shadow that there is not, or that needs a log, is refused before a live system is read."""
    assert "unknown policy 'nope'" in refused("--kubernetes", "--shadow", "first-fit,nope")
    assert "has no recorded starts" in refused("--slurm", "--shadow", "recorded")


def test_others_reach_it_only_with_a_token(tmp_path: Path) -> None:
    """Listening beyond this machine without --token-file is refused, and so is a token that can be guessed."""
    assert "give --token-file" in refused("--listen", "0.0.0.0:0")
    assert "give --token-file" in refused("--listen", "0.0.0.0:0", "--auth-header", "X-Remote-User")
    short = tmp_path / "token"
    short.write_text("short\n")
    assert "16 printable letters" in refused("--token-file", str(short))


def test_a_unix_socket_is_its_owners(tmp_path: Path) -> None:
    """With --listen unix:PATH only the owner can open the socket, and it is gone after the end."""
    path = tmp_path / "page.sock"
    command = [sys.executable, "-c", MAIN, "serve", "--listen", f"unix:{path}", *SMALL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline().startswith("unix:")
            assert path.stat().st_mode & 0o777 == 0o600
            with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
                assert client.get("http://localhost/api/machine").status_code == 200
        finally:
            process.terminate()
            process.wait(DEADLINE)
    assert not path.exists()
