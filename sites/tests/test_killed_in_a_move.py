"""The manager and the daemons of hosts and guest are killed in every phase of a move of a real guest."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("qemu.qmp", reason="moving by QMP needs the packages of topolane-sites")
pytest.importorskip("fastapi", reason="topolane-sites is not installed with what it needs")
from guest_image import missing
from managed import MAIN, Managed, guest_daemon
from tick_guests import Sites, slow
from topolane import InputError
from topolane_sites.plans import PlannedMove, SitesPlan
from topolane_sites.state import ManagerDatabase
from waiting import DEADLINE, until

if reason := missing("cc", "strip"):
    pytest.skip(f"a guest needs QEMU and a kernel: {reason}", allow_module_level=True)

PHASES = {"before": "stays", "copying": "stays", "complete": "moves", "released": "moves", "over": "moves"}
"""Each phase of a move, and what settling does with the guest if the manager dies in it: before memory is copied, while
it is copied, complete and not released, released while the source still exists, over and not yet journalled."""
STRIKING = """
import os, signal
from pathlib import Path
from topolane_sites.movers import qmp
order = Path(os.environ["STRIKE"])
def reached(phase):
    wanted, *victims = order.read_text().split() if order.exists() else [""]
    if wanted == phase:
        order.unlink()
        for victim in victims:
            os.kill(int(victim), signal.SIGKILL)
def after(function, phase):
    async def wrapped(*given):
        answer = await function(*given)
        reached(phase)
        return answer
    return wrapped
copied = qmp._copied
async def copied_and_reached(source, progress):
    return await copied(source, lambda share: (reached("copying"), progress(share)))
qmp._connect = after(qmp._connect, "before")
qmp._copied = copied_and_reached
qmp._until = after(qmp._until, "complete")
qmp._hand_over = after(qmp._hand_over, "released")
qmp._copy = after(qmp._copy, "over")
"""


class Scene:
    """A guest that counts, a manager of two hosts, and the daemons of both hosts and the guest."""

    def __init__(self, folder: Path) -> None:
        self.sites = Sites(folder)
        self.manager = Managed(folder, {})
        self.manager.main = STRIKING + MAIN
        self.manager.file.write_text(self.sites.file(self.manager.programs))
        self.order = folder / "strike"
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def begin(self) -> None:
        self.sites.start()
        self.plan()
        self.manager.start()
        self.start_daemons()

    def plan(self) -> None:
        """Plans to move the guest there and back, which the manager finds in its database."""
        state = ManagerDatabase(f"sqlite:///{self.sites.folder}/sites.db")
        for source, target in (("a", "b"), ("b", "a")):
            move = PlannedMove("g1", source, target, (), "by hand")
            state.put("plan", target, SitesPlan(target, time.time(), "stay", (), (move,), 0.0, {}).json())
        state.close()

    def start_daemons(self) -> None:
        """Starts those that do not run, and waits until the manager has heard each."""
        began = time.time()
        for name, words in self.commands().items():
            if name not in self.daemons or self.daemons[name].poll() is not None:
                before = guest_daemon(self.sites.folder / "windows") if name == "g1" else []
                words = [*before, sys.executable, "-c", MAIN, "sites", *words, "--every", "0.5"]
                words += ["--manager", f"unix:{self.sites.folder}/a.sock"]
                with (self.sites.folder / f"{name}.err").open("ab") as said:
                    self.daemons[name] = subprocess.Popen(words, stderr=said)
        try:
            until(lambda: self.heard() > began, "the manager hears the daemons")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.silent(began)}") from None

    def silent(self, since: float) -> list[tuple[str, int | None, str]]:
        """The daemons that the manager has not heard since then: their exit codes, and the end of what they said."""
        reports = {row["name"]: row["report"] for row in (*self.ask("/hosts"), *self.ask("/guests"))}
        return [
            (name, daemon.poll(), (self.sites.folder / f"{name}.err").read_text()[-4000:])
            for name, daemon in self.daemons.items()
            if not reports[name] or reports[name]["time"] <= since
        ]

    def commands(self) -> dict[str, list[str]]:
        arguments = {"g1": ["guest", "--name", "g1"]}
        for host in self.sites.hosts:
            words = ["host", "--name", host.name, "--site", host.site, "--cores", "2", "--memory", "1 GiB"]
            arguments[host.name] = [*words, "--driver", "qmp", "--address", host.address]
        return arguments

    def heard(self) -> float:
        """When the manager last heard the daemon that has been silent for longest."""
        rows = [*self.ask("/hosts"), *(guest for guest in self.ask("/guests") if guest["name"] == "g1")]
        return min(row["report"]["time"] if row["report"] else 0.0 for row in rows)

    def strike(self, phase: str, victims: Collection[subprocess.Popen[bytes]]) -> None:
        """Moves the guest, kills these processes in that phase, and waits until they have ended.

        A process that is killed still runs for a while: one with a mount namespace of its own ends 20 ms later here.
        """
        self.order.write_text(" ".join([phase, *(str(victim.pid) for victim in victims)]))
        (source,) = self.sites.processes()
        target = "b" if source == "a" else "a"
        assert self.manager.client.post(f"/plans/{target}/apply")["moves"] == 1
        until(lambda: not self.order.exists(), f"{phase} is reached")
        assert [victim.wait(DEADLINE) for victim in victims] == [-signal.SIGKILL] * len(victims)

    def over(self) -> tuple[str, str]:
        """Waits until the move is over and every daemon has reported since. One copy runs, nothing that it counts is
        missing or appears twice, and the manager knows its host. Returns the move's stage and the host."""
        until(lambda: self.stage() not in ("planned", "copying"), "the move is over")
        self.start_daemons()
        (host,) = self.sites.processes()
        (known,) = (one["host"] for one in self.ask("/guests") if one["name"] == "g1")
        assert known == host
        self.sites.goes_on()
        assert self.sites.processes() == [host]
        return self.stage(), host

    def stage(self) -> str:
        return str(self.ask("/moves")[0]["stage"])

    def ask(self, path: str) -> list[dict[str, Any]]:
        """The manager's answer. It closes a connection that is not used for a while: then it is asked again."""
        with contextlib.suppress(InputError):
            return self.manager.client.get(path)
        return self.manager.client.get(path)

    def end(self) -> None:
        for daemon in self.daemons.values():
            daemon.kill()
            daemon.wait()
        self.manager.kill()
        self.sites.end()


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(tmp_path)
    monkeypatch.setenv("STRIKE", str(made.order))
    try:
        made.begin()
        yield made
    finally:
        made.end()


def test_a_guest_is_one_and_counts_on_whoever_is_killed_in_its_move(scene: Scene) -> None:
    """In each phase the daemons are killed (-9) while the manager moves the guest: the move is done. Then the manager is:
    once it is started again the move is finished or undone."""
    for phase, settled in PHASES.items():
        (source,) = scene.sites.processes()
        scene.strike(phase, scene.daemons.values())
        stage, host = scene.over()
        assert (stage, host != source) == ("done", True), phase
        if phase == "copying":
            slow(scene.sites, at=host)
        source = host
        scene.strike(phase, [scene.manager.process])
        scene.manager.start()
        stage, host = scene.over()
        assert (stage, host != source) == (
            ("done", True) if settled == "moves" else ("rolled-back", False)
        ), phase
        if phase == "copying":
            slow(scene.sites, 1 << 30, at=host)
