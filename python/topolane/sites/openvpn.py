"""OpenVPN from hosts behind NAT to a reachable host, for the Ethernet frames of a cluster's bridge.

Each end has its own certificate, which the other end knows by its fingerprint. No certificate authority is
needed.
"""

from __future__ import annotations

import contextlib
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from topolane.sites.remote import CommandFailed, command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = "/run/topolane"
FIRST_PORT = 20000
COMMON = """dev-type tap
proto udp
keepalive 5 30
persist-tun
cipher AES-256-GCM
data-ciphers AES-256-GCM
script-security 0
verb 1
"""


def start(
    cluster: str, bridge: str, hub: Sequence[str], address: str, hidden: Mapping[str, Sequence[str]]
) -> None:
    """Starts a server on the hub and a client on each hidden host, and adds their interfaces to the bridge.

    Running ones stay. Raises CommandFailed.
    """
    places: dict[str, Sequence[str]] = {"": hub} | {name: run for name, run in hidden.items()}
    if all(_runs(cluster, run) for run in places.values()):
        return
    for run in places.values():
        stop(cluster, run)
    port = FIRST_PORT + zlib.crc32(cluster.encode()) % 10000
    with tempfile.TemporaryDirectory() as folder:
        made = {name: _certificate(Path(folder)) for name in places}
    prints = [_block("peer-fingerprint", "\n".join(made[name][2] for name in hidden))]
    server = [f"mode server\ntls-server\nclient-to-client\nduplicate-cn\ndh none\nport {port}", *prints]
    _run(cluster, bridge, hub, server, made[""])
    for name, run in hidden.items():
        client = [f"tls-client\npull\nnobind\nremote {address} {port}\nconnect-retry 1 5"]
        _run(cluster, bridge, run, [*client, _block("peer-fingerprint", made[""][2])], made[name])


def stop(cluster: str, run: Sequence[str]) -> None:
    """Ends what `start` started on a host. Raises CommandFailed, and keeps its files, if it does not end."""
    if _runs(cluster, run):
        try:
            command(run, ["kill", command(run, ["cat", _file(cluster, run, "pid")]).strip()])
        except CommandFailed:
            if _runs(cluster, run):
                raise
    with contextlib.suppress(CommandFailed):
        command(run, ["ip", "link", "delete", tap(cluster)])
    command(run, ["rm", "-f", _file(cluster, run, "pid"), _file(cluster, run, "conf")])


def tap(cluster: str) -> str:
    """The name of its interface."""
    return f"tlo{zlib.crc32(cluster.encode()):08x}"


def _run(
    cluster: str, bridge: str, run: Sequence[str], lines: Sequence[str], certificate: tuple[str, str, str]
) -> None:
    cert, key, _ = certificate
    config = "\n".join([COMMON + f"dev {tap(cluster)}", *lines, _block("cert", cert), _block("key", key)])
    file = _file(cluster, run, "conf")
    command(run, ["mkdir", "-p", FOLDER])
    command(run, ["install", "-m", "600", "/dev/null", file])
    command(run, ["tee", file], given=config + "\n")
    # Made beforehand, so that it is in the bridge when the first frame comes.
    command(run, ["openvpn", "--mktun", "--dev", tap(cluster), "--dev-type", "tap"])
    command(run, ["ip", "link", "set", tap(cluster), "mtu", "1450", "master", bridge, "up"])
    pid = _file(cluster, run, "pid")
    command(run, ["openvpn", "--config", file, "--writepid", pid, "--daemon", "topolane-openvpn"])


def _runs(cluster: str, run: Sequence[str]) -> bool:
    try:
        pid = command(run, ["cat", _file(cluster, run, "pid")]).strip()
        return _file(cluster, run, "conf") in command(run, ["cat", f"/proc/{pid}/cmdline"])
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
