"""OpenVPN from hosts behind NAT to a reachable host, for the Ethernet frames of a cluster's bridge.

Each end has its own certificate, which the other end knows by its fingerprint. No certificate authority is
needed. On each host a shell, the watch, starts OpenVPN again if it ends, and notes that in a file. If the watch has ended
too, the daemon of the host starts it again (`tunnels`).

    /run/topolane/CLUSTER-HOST.conf   OpenVPN's configuration; its first lines say what it joins and on which host
    /run/topolane/CLUSTER-HOST.pid    OpenVPN's process
    /run/topolane/CLUSTER-HOST.watch  the watch, a shell script; CLUSTER-HOST.watch.pid is its process
    /run/topolane/CLUSTER-HOST.log    a line for each time that OpenVPN was started again
"""

from __future__ import annotations

import contextlib
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from topolane.units import plural

from topolane_sites.remote import CommandFailed, command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = "/run/topolane"
FIRST_PORT = 20000
PATIENCE = 30.0
"""Seconds in which the watch must begin."""
ON = "# on "
FILES = ("pid", "watch.pid", "watch", "conf", "log")
COMMON = """dev-type tap
proto udp
keepalive 1 6
persist-tun
cipher AES-256-GCM
data-ciphers AES-256-GCM
script-security 0
verb 1
"""
"""A client that hears nothing from the server for 6 s connects again."""
WATCH = """#!/bin/sh
# Starts OpenVPN again if it has ended.
exec </dev/null >/dev/null 2>>{log}
echo $$ >{watch}.pid
while sleep 1; do
    [ -e {conf} ] || exit
    grep -aqF {conf} "/proc/$(cat {pid})/cmdline" 2>/dev/null && continue
    date '+%Y-%m-%d %H:%M:%S' >>{log}
    openvpn --config {conf} --writepid {pid} --daemon topolane-openvpn
done
"""


@dataclass(frozen=True)
class OpenVpnServer:
    """The host that the others connect to."""

    name: str
    run: Sequence[str]
    """See `remote.command`."""
    address: str


def start(cluster: str, bridge: str, server: OpenVpnServer, hidden: Mapping[str, Sequence[str]]) -> list[str]:
    """Starts a server and a client on each hidden host, and adds their interfaces to the bridge.

    What runs stays if all of it runs and joins the same hosts; otherwise all of it is started again. Returns
    sentences on what had ended. Raises CommandFailed.
    """
    runs: dict[str, Sequence[str]] = {server.name: server.run} | dict(hidden)
    port = FIRST_PORT + zlib.crc32(cluster.encode()) % 10000
    joins = f"# {server.name} at {server.address} port {port} for {' '.join(sorted(hidden))}"
    known = {name: _first_line(cluster, run) == joins for name, run in runs.items()}
    ended = {name for name, run in runs.items() if not _runs(cluster, run)}
    said = [line for name, run in runs.items() for line in _restarts(cluster, name, run)]
    if all(known.values()) and not ended:
        return said
    if any(known.values()):
        said += [f"the tunnel of {name} had ended; it is started again" for name in sorted(ended)]
    _check(runs)
    for run in runs.values():
        stop(cluster, run)
    with tempfile.TemporaryDirectory() as folder:
        made = {name: _certificate(Path(folder)) for name in runs}
    prints = _block("peer-fingerprint", "\n".join(made[name][2] for name in hidden))
    words = f"mode server\ntls-server\nclient-to-client\nduplicate-cn\ndh none\nport {port}"
    _run(cluster, bridge, server.run, [joins, f"{ON}{server.name}", words, prints], made[server.name])
    for name, run in hidden.items():
        words = f"tls-client\npull\nnobind\nremote {server.address} {port}\nconnect-retry 1 5"
        _run(
            cluster,
            bridge,
            run,
            [joins, f"{ON}{name}", words, _block("peer-fingerprint", made[server.name][2])],
            made[name],
        )
    return said


def stop(cluster: str, run: Sequence[str]) -> None:
    """Ends what `start` started on a host. Raises CommandFailed, and keeps its files, if it does not end."""
    for pid, words in (("watch.pid", "watch"), ("pid", "conf")):
        if _alive(cluster, run, pid, words):
            try:
                command(run, ["kill", command(run, ["cat", _file(cluster, run, pid)]).strip()])
            except CommandFailed:
                if _alive(cluster, run, pid, words):
                    raise
    with contextlib.suppress(CommandFailed):
        command(run, ["ip", "link", "delete", tap(cluster)])
    command(run, ["rm", "-f", *(_file(cluster, run, kind) for kind in FILES)])


def tap(cluster: str) -> str:
    """The name of its interface."""
    return f"tlo{zlib.crc32(cluster.encode()):08x}"


def _check(runs: Mapping[str, Sequence[str]]) -> None:
    """Raises CommandFailed if a host lacks OpenVPN, before anything is stopped."""
    for name, run in runs.items():
        try:
            command(run, ["which", "openvpn"])
        except CommandFailed as error:
            raise CommandFailed(f"{name} has no program openvpn") from error


def _run(
    cluster: str, bridge: str, run: Sequence[str], lines: Sequence[str], certificate: tuple[str, str, str]
) -> None:
    cert, key, _ = certificate
    joins, on, *rest = lines
    config = [joins, on, COMMON + f"dev {tap(cluster)}", *rest, _block("cert", cert), _block("key", key)]
    file = {kind: _file(cluster, run, kind) for kind in FILES}
    command(run, ["mkdir", "-p", FOLDER])
    for kind, content in (("conf", "\n".join(config) + "\n"), ("watch", WATCH.format_map(file))):
        command(run, ["install", "-m", "600", "/dev/null", file[kind]])
        command(run, ["tee", file[kind]], given=content)
    # Made beforehand, so that it is in the bridge when the first frame comes.
    command(run, ["openvpn", "--mktun", "--dev", tap(cluster), "--dev-type", "tap"])
    command(run, ["ip", "link", "set", tap(cluster), "mtu", "1450", "master", bridge, "up"])
    command(
        run, ["openvpn", "--config", file["conf"], "--writepid", file["pid"], "--daemon", "topolane-openvpn"]
    )
    command(run, ["setsid", "-f", "sh", file["watch"]])
    deadline = time.monotonic() + PATIENCE
    while not _alive(cluster, run, "watch.pid", "watch"):
        if time.monotonic() > deadline:
            raise CommandFailed(f"sh {file['watch']}: it did not start within {PATIENCE:g} s")
        time.sleep(0.05)


def _restarts(cluster: str, name: str, run: Sequence[str]) -> list[str]:
    """A sentence if the watch had to start OpenVPN again since the last call."""
    log = _file(cluster, run, "log")
    try:
        times = command(run, ["cat", log]).splitlines()
    except CommandFailed:
        return []
    if not times:
        return []
    command(run, ["truncate", "-s", "0", log])
    return [
        f"the tunnel of {name} had ended and was started again {plural(len(times), 'time')}, last at {times[-1]}"
    ]


def _first_line(cluster: str, run: Sequence[str]) -> str:
    try:
        return command(run, ["head", "-n", "1", _file(cluster, run, "conf")]).rstrip("\n")
    except CommandFailed:
        return ""


def _runs(cluster: str, run: Sequence[str]) -> bool:
    return _alive(cluster, run, "pid", "conf") and _alive(cluster, run, "watch.pid", "watch")


def _alive(cluster: str, run: Sequence[str], pid: str, words: str) -> bool:
    """Whether the process of a file runs, and is not another one that got its number."""
    try:
        number = command(run, ["cat", _file(cluster, run, pid)]).strip()
        return _file(cluster, run, words) in command(run, ["cat", f"/proc/{number}/cmdline"])
    except CommandFailed:
        return False


def _certificate(folder: Path) -> tuple[str, str, str]:
    """A certificate, its key and its fingerprint."""
    cert, key = folder / "cert", folder / "key"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    words += ["-nodes", "-days", "3650", "-subj", "/CN=topolane", "-keyout", str(key), "-out", str(cert)]
    command((), words)
    printed = command((), ["openssl", "x509", "-in", str(cert), "-noout", "-fingerprint", "-sha256"])
    return cert.read_text(), key.read_text(), printed.strip().partition("=")[2]


def _block(name: str, content: str) -> str:
    return f"<{name}>\n{content.strip()}\n</{name}>"


def _file(cluster: str, run: Sequence[str], ending: str) -> str:
    """A file of OpenVPN. Several hosts on one machine, such as network namespaces, have separate files."""
    host = zlib.crc32(" ".join(run).encode())
    return f"{FOLDER}/{cluster}-{host:08x}.{ending}"
