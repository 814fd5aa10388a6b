"""A manager in a process of its own, over two sites whose hosts are folders of the dry-run driver."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from topolane_sites.client import Client
from waiting import DEADLINE, until

MAIN = "from topolane.cli import main; main()"
WINDOWS = "/proc/sys/net/ipv4/tcp_slow_start_after_idle"
"""What the daemon of a guest sets, for all of the machine that it runs on."""
SITES = {"east": ("e1", "e2"), "west": ("w1", "w2")}


def guest_daemon(setting: Path) -> list[str]:
    """The words before `sites guest` with which the daemon writes this file, and not a setting of this machine."""
    setting.write_text("1\n")
    if os.geteuid() or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        return []  # it may not write the setting
    return ["unshare", "--mount", "sh", "-c", f'mount --bind "$0" {WINDOWS} && exec "$@"', str(setting)]


class Managed:
    """A manager that can be killed and started again."""

    def __init__(self, folder: Path, guests: dict[str, str], **settings: object) -> None:
        self.folder = folder
        self.programs = str(folder / "p.sock")
        self.client = Client(f"unix:{folder}/a.sock")
        self.file = folder / "sites.toml"
        settings = {"listen": f'"unix:{folder}/a.sock"', "programs": f'"unix:{self.programs}"', **settings}
        lines = ["[manager]", "interval = 0.2"]
        lines += [f"{key.replace('_', '-')} = {value}" for key, value in settings.items()]
        for site, hosts in SITES.items():
            lines += ["[[site]]", f'name = "{site}"']
            for host in hosts:
                (folder / host).mkdir(exist_ok=True)
                lines += ["[[site.host]]", f'name = "{host}"', "cores = 4", 'memory = "8 GiB"']
                lines += [f'address = "{folder / host}"']
        lines += ["[[link]]", 'between = ["east", "west"]', "latency = 0.01", "bandwidth = 1.25e8"]
        for guest, host in guests.items():
            (folder / host / guest).write_text("running")
            lines += ["[[guest]]", f'name = "{guest}"', "cores = 2", 'memory = "1 GiB"', f'host = "{host}"']
        self.file.write_text("\n".join(lines) + "\n")
        self.main = MAIN
        self.said = folder / "said"
        """What it says on standard error."""
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Starts it and waits until it answers."""
        command = [sys.executable, "-c", self.main, "sites", "run", "--config", str(self.file), *options]
        with open(self.said, "a") as said:
            self.process = subprocess.Popen(command, stderr=said)
        until(lambda: self.answers() or self.process.poll() is not None)
        assert self.process.poll() is None, self.said.read_text()

    def answers(self) -> bool:
        """Whether the manager answers."""
        with contextlib.suppress(ValueError):
            self.client.get("/status")
            return True
        return False

    def kill(self) -> None:
        """As a crash does."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> str:
        """Ends it as it should; answers with what it said on standard error."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(DEADLINE)
        said = self.said.read_text()
        assert self.process.returncode in (0, -signal.SIGKILL), said
        return said

    def copies(self, guest: str) -> list[str]:
        """Hosts on which a guest exists."""
        return [host for hosts in SITES.values() for host in hosts if (self.folder / host / guest).exists()]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """What has happened of a kind, the oldest first."""
        return [event for event in reversed(self.client.get("/events", limit=1000)) if event["kind"] == kind]

    def stages(self) -> dict[str, str]:
        """The newest move of every guest."""
        return {move["guest"]: move["stage"] for move in reversed(self.client.get("/moves"))}


@contextlib.contextmanager
def managing(folder: Path, guests: dict[str, str], *options: str, **settings: object) -> Iterator[Managed]:
    """A manager that runs, and is ended in any case."""
    manager = Managed(folder, guests, **settings)
    manager.start(*options)
    try:
        yield manager
    finally:
        said = manager.stop()
    assert "Traceback" not in said, said
