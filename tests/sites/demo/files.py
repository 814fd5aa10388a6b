"""The files of the demonstration: the manager's, and the cluster's."""

from __future__ import annotations

from pathlib import Path

from wan import Wan

SITES = {"a": "east", "b": "west"}
"""The site of every host; a host is a network namespace with a set of QEMU processes."""
GUESTS = {"g1": "a", "g2": "a", "g3": "b", "g4": "b"}
ADDRESSES = {name: f"10.42.0.{number}" for number, name in enumerate(GUESTS, 1)}
MANAGER = "10.42.0.254"
PORT = 7171
MEMORY = 256
"""MiB."""
CORES = 3
"""Of a host: room for one guest more than it starts with, so that guests can change places."""


def write(folder: Path, network: Wan, kernel: Path, image: Path) -> None:
    """Writes sites.toml and pairs.toml."""
    token = folder / "report-token"
    token.write_text("a-token-of-the-demonstration\n")
    token.chmod(0o600)
    (folder / "sites.toml").write_text(_sites(folder))
    (folder / "pairs.toml").write_text(_cluster(network, kernel, image))


def _sites(folder: Path) -> str:
    lines = [
        "[manager]",
        f'listen = "unix:{folder}/manager.sock"',
        f'programs = "0.0.0.0:{PORT}"',
        'report-token-file = "report-token"',
        "act = true",
        "interval = 1",
    ]
    for host, site in SITES.items():
        lines += ["", "[[site]]", f'name = "{site}"', "[[site.host]]", f'name = "{host}"', f"cores = {CORES}"]
        lines += ['memory = "2 GiB"', 'driver = "qmp"', f'address = "{folder / host}"']
    lines += ["", "[[link]]", 'between = ["east", "west"]', "latency = 0.005", "bandwidth = 12.5e6"]
    return "\n".join(lines) + "\n"


def _cluster(network: Wan, kernel: Path, image: Path) -> str:
    lines = ['name = "pairs"', 'network = "10.42.0.0/24"']
    for host in SITES:
        run = ", ".join(f'"{word}"' for word in network.run(host))
        lines += ["", "[[host]]", f'name = "{host}"', f"run = [{run}]", f'tunnel = "{network.address(host)}"']
    # The manager is in the network as well, to be heard by the ranks.
    run = ", ".join(f'"{word}"' for word in network.run("wan"))
    lines += ["", "[[host]]", 'name = "manager"', f"run = [{run}]", 'tunnel = "192.0.2.254"']
    lines += [f'own = "{MANAGER}/24"']
    for name, host in GUESTS.items():
        lines += ["", "[[guest]]", f'name = "{name}"', f'host = "{host}"', "cores = 1"]
        lines += [f'memory = "{MEMORY} MiB"', f'address = "{ADDRESSES[name]}"', 'accelerator = "tcg"']
        lines += [f'kernel = "{kernel}"', f'initramfs = "{image}"']
        lines += ['append = "console=ttyS0 quiet panic=-1 guest={name} address={address}/{prefix}"']
    return "\n".join(lines) + "\n"
