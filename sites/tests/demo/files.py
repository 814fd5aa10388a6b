"""The files of a demonstration: the manager's, and the clusters'."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wan import Wan

MANAGER = "10.42.0.254"
PORT = 7171
DELAY, MBIT = 5, 100
"""Milliseconds one way between two sites, and the bandwidth."""
MEMORY = 256
"""MiB of a guest."""


@dataclass(frozen=True)
class Place:
    """A host: a network namespace with a set of QEMU processes."""

    site: str
    cores: int
    speed: float | None = None
    """As the manager's configuration says; None if its daemon measures it."""
    runs: tuple[str, ...] = ()
    """What to put before its commands, besides what takes them into the namespace."""


@dataclass(frozen=True)
class Scene:
    """What a part of the demonstration is played on."""

    name: str
    """Of its cluster."""
    hosts: dict[str, Place]
    guests: dict[str, str]
    """The host that each guest starts on."""

    @property
    def addresses(self) -> dict[str, str]:
        """Of the guests."""
        return {name: f"10.42.0.{number}" for number, name in enumerate(self.guests, 1)}

    def run(self, network: Wan, host: str) -> tuple[str, ...]:
        """What to put before a command of a host."""
        return (*network.run(host), *self.hosts[host].runs)


def write(folder: Path, scene: Scene, network: Wan, kernel: Path, image: Path) -> None:
    """Writes sites.toml, and the cluster's file under the cluster's name."""
    token = folder / "report-token"
    token.write_text("a-token-of-the-demonstration\n")
    token.chmod(0o600)
    (folder / "sites.toml").write_text(_sites(folder, scene))
    (folder / f"{scene.name}.toml").write_text(_cluster(scene, network, kernel, image))


def _sites(folder: Path, scene: Scene) -> str:
    lines = [
        "[manager]",
        f'listen = "unix:{folder}/manager.sock"',
        f'programs = "0.0.0.0:{PORT}"',
        'report-token-file = "report-token"',
        "act = true",
        "interval = 1",
    ]
    for host, place in scene.hosts.items():
        lines += ["", "[[site]]", f'name = "{place.site}"', "[[site.host]]", f'name = "{host}"']
        lines += [
            f"cores = {place.cores}",
            'memory = "2 GiB"',
            'driver = "qmp"',
            f'address = "{folder / host}"',
        ]
        if place.speed is not None:
            lines += [f"speed = {place.speed}"]
    lines += [
        "",
        "[[link]]",
        'between = ["east", "west"]',
        f"latency = {DELAY / 1e3}",
        f"bandwidth = {MBIT / 8}e6",
    ]
    return "\n".join(lines) + "\n"


def _cluster(scene: Scene, network: Wan, kernel: Path, image: Path) -> str:
    lines = [f'name = "{scene.name}"', 'network = "10.42.0.0/24"']
    for host in scene.hosts:
        run = ", ".join(f'"{word}"' for word in scene.run(network, host))
        lines += ["", "[[host]]", f'name = "{host}"', f"run = [{run}]", f'tunnel = "{network.address(host)}"']
    # The manager is in the network as well, to be heard by the ranks.
    run = ", ".join(f'"{word}"' for word in network.run("wan"))
    lines += ["", "[[host]]", 'name = "manager"', f"run = [{run}]", f'tunnel = "{network.address("wan")}"']
    lines += [f'own = "{MANAGER}/24"']
    for name, host in scene.guests.items():
        lines += ["", "[[guest]]", f'name = "{name}"', f'host = "{host}"', "cores = 1"]
        lines += [f'memory = "{MEMORY} MiB"', f'address = "{scene.addresses[name]}"', 'accelerator = "tcg"']
        lines += [f'kernel = "{kernel}"', f'initramfs = "{image}"']
        lines += ['append = "console=ttyS0 quiet panic=-1 guest={name} address={address}/{prefix}"']
    return "\n".join(lines) + "\n"
