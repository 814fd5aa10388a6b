"""Running a part of the demonstration: commands as one would type them, the manager, the programs in the guests."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import files
from files import MANAGER, PORT, Scene
from guest_image import kernel
from mpi_image import mpi_image
from topolane._engine import InputError
from topolane.mpi.build import library
from topolane_sites.client import Client
from topolane_sites.qemu import QemuFolder
from waiting import DEADLINE, until
from wan import Wan, wan

MAIN = "from topolane.cli import main; main()"


def say(text: str) -> None:
    print(text, flush=True)


@contextlib.contextmanager
def played(scene: Scene, folder: Path) -> Iterator[Stage]:
    """A manager, the daemons of the hosts, and guests that answer; nothing is left of them in the end but files."""
    folder.mkdir(parents=True)
    boot = kernel()
    assert boot
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(wan(tuple(scene.hosts)))
        network.far(files.DELAY, files.MBIT, folder)
        stack.callback(_end_guests, folder, scene)
        stage = Stage(folder, scene, network)
        stack.callback(stage.end)
        carried = {"libtopolane_mpi.so": library("mpicc.mpich", folder / "cache")}
        image = mpi_image(folder, scene.addresses | {"manager": MANAGER}, carried)
        files.write(folder, scene, network, boot, image)
        say(
            f"Guests: {boot.name}, MPICH {_mpich()}, emulated; {image.stat().st_size >> 20} MiB of initramfs."
        )
        stage.daemon("wan", "sites", "run", "--config", "sites.toml")
        until(lambda: stage.check() or (folder / "manager.sock").exists(), "the manager listens")
        cluster = (f"{scene.name}.toml", "--config", "sites.toml")
        stage.topolane("sites", "up", *cluster)
        stack.callback(stage.topolane, "sites", "down", *cluster)
        for host, place in scene.hosts.items():
            words = [
                "--name",
                host,
                "--site",
                place.site,
                "--driver",
                "qmp",
                "--address",
                host,
                "--every",
                "2",
            ]
            stage.daemon(host, "sites", "host", *words)
        until(
            lambda: all(stage.ask(guest, "true") is not None for guest in scene.guests), "the guests answer"
        )
        yield stage


def _end_guests(folder: Path, scene: Scene) -> None:
    """What is left where the manager could not be asked any more."""
    for host in scene.hosts:
        if (folder / host).is_dir():
            left = QemuFolder(folder / host)
            for guest in left.guests():
                left.end(guest)


def _mpich() -> str:
    printed = subprocess.run(["mpiexec.mpich", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"Version:\s+(\S+)", printed)
    return found[1] if found else "of unknown version"


class Stage:
    """The folder of a demonstration, its network, and the processes it started."""

    def __init__(self, folder: Path, scene: Scene, network: Wan) -> None:
        self.folder, self.scene, self.network = folder, scene, network
        self.processes: list[subprocess.Popen[str]] = []
        self.daemons: list[subprocess.Popen[str]] = []
        self.client = Client(f"unix:{folder}/manager.sock")
        self.environment = os.environ | {"TOPOLANE_SITES": f"unix:{folder}/manager.sock"}

    def topolane(self, *words: str, quiet: bool = False) -> str:
        """A command of Topolane, shown with what it prints."""
        if not quiet:
            say(f"\n$ topolane {' '.join(words)}")
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        if not quiet:
            say((done.stdout + done.stderr).rstrip())
        if done.returncode:
            raise SystemExit(f"topolane {' '.join(words)}: exit code {done.returncode}: {done.stderr}")
        return done.stdout

    def start(self, place: str, words: Sequence[str], log: str) -> subprocess.Popen[str]:
        """A process in a namespace; what it says goes to a file."""
        run = self.scene.run(self.network, place) if place in self.scene.hosts else self.network.run(place)
        with (self.folder / log).open("w") as file:
            made = subprocess.Popen(
                [*run, *words],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.processes.append(made)
        return made

    def check(self) -> None:
        """Ends it all where a daemon has ended."""
        for process in self.daemons:
            if process.poll() is not None:
                raise SystemExit(f"{process.args!r} has ended: exit code {process.returncode}")

    def daemon(self, place: str, *words: str) -> subprocess.Popen[str]:
        """A daemon of Topolane."""
        say(f"\n$ topolane {' '.join(words)} &")
        made = self.start(place, [sys.executable, "-c", MAIN, *words], f"{words[1]}-{place}.log")
        self.daemons.append(made)
        return made

    def ssh(self, guest: str, words: str) -> list[str]:
        """What runs a command in a guest, from the manager's namespace."""
        return [
            "dbclient",
            "-y",
            "-y",
            "-i",
            str(self.folder / "key"),
            f"root@{self.scene.addresses[guest]}",
            words,
        ]

    def ask(self, guest: str, words: str) -> str | None:
        """What a command in a guest prints; None where it cannot be run."""
        done = subprocess.run(
            [*self.network.run("wan"), *self.ssh(guest, words)],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        return None if done.returncode else done.stdout

    def mpiexec(
        self, program: str, words: str, guests: Sequence[str], two_level: str = "auto"
    ) -> subprocess.Popen[str]:
        """A program with one rank on each of the guests, started from the first."""
        preload = "/usr/lib/libtopolane_mpi.so:/usr/lib/nap.so"
        given = {
            "UCX_TLS": "tcp,self",
            "LD_PRELOAD": preload,
            "TOPOLANE_MPI_MANAGER": f"{MANAGER}:{PORT}",
            "TOPOLANE_MPI_TOKEN": (self.folder / "report-token").read_text().strip(),
            "TOPOLANE_MPI_PROGRAM": program,
            "TOPOLANE_MPI_SECONDS": "1",
            "TOPOLANE_MPI_TWO_LEVEL": two_level,
        }
        on = ["-n", str(len(guests)), "-hosts", ",".join(guests)]
        launcher = ["mpiexec", "-launcher", "ssh", "-launcher-exec", "/bin/ssh", "-ppn", "1", *on]
        launcher += [word for name, value in given.items() for word in ("-genv", name, value)]
        say(f"\n{guests[0]}$ mpiexec {' '.join(on)} -genv LD_PRELOAD {preload} ... {words}")
        return self.start("wan", self.ssh(guests[0], " ".join([*launcher, words])), f"{program}.log")

    def said(self, program: str) -> str:
        """What a program has printed."""
        return (self.folder / f"{program}.log").read_text(errors="replace")

    def look(self, path: str) -> dict[str, Any]:
        """What the manager answers; nothing while it knows nothing of it."""
        try:
            answer: dict[str, Any] = self.client.get(path)
        except InputError:
            return {}
        return answer

    def sites(self) -> dict[str, str]:
        """The site of every guest."""
        return {guest["name"]: guest["site"] for guest in self.client.get("/guests")}

    def where(self) -> str:
        """The same as words."""
        return ", ".join(f"{guest} {site}" for guest, site in sorted(self.sites().items()))

    def moving(self) -> bool:
        """Whether a guest moves. Ends it all where a daemon has ended."""
        self.check()
        return any(guest["moving"] for guest in self.client.get("/guests"))

    def moves(self) -> None:
        """Says what has moved."""
        for move in reversed(self.client.get("/moves")):
            detail = move["detail"]
            say(
                f"{move['guest']} went from {move['source']} to {move['target']}: {move['stage']}, "
                f"{detail['seconds']:.1f} s, {detail['bytes'] / 2**20:.0f} MiB copied, "
                f"it stood still for {1e3 * detail['downtime']:.0f} ms"
            )

    def stop(self, program: str, process: subprocess.Popen[str], guests: Sequence[str], outside: str) -> None:
        """Ends a program, and compares what it computed with a run here that is neither watched nor moved.

        outside: its command, with {} for the number of iterations.
        """
        until(
            lambda: self.ask(guests[0], f"touch /tmp/stop-{program}") is not None, "the guest takes an order"
        )
        until(lambda: process.poll() is not None, f"{program} ends")
        last = re.search(r"(\d+) iterations, checksum (\w+)", self.said(program))
        if process.returncode or not last:
            raise SystemExit(f"{program} failed: {self.said(program)}")
        say(f"{program}: {last[0]}")
        words = ["mpiexec.mpich", "-n", str(len(guests)), *outside.format(last[1]).split()]
        given = os.environ | {"LD_PRELOAD": str(self.folder / "nap.so")}
        here = subprocess.run(
            words, cwd=self.folder, env=given, capture_output=True, text=True, timeout=DEADLINE
        )
        say(f"the same outside: {here.stdout.splitlines()[-1]}")
        if last[0] not in here.stdout:
            raise SystemExit(f"{program} computed something else than outside: {here.stdout}{here.stderr}")

    def end(self) -> None:
        """Ends what was started, the last first."""
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
