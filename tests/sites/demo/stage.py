"""Running the parts of the demonstration: commands as one would type them, the manager, the program in the guests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from files import ADDRESSES, MANAGER, PORT
from topolane.sites.client import Client
from wan import Wan

MAIN = "from topolane.cli import main; main()"
PATIENCE = 600.0


def say(text: str) -> None:
    print(text, flush=True)


def until(holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not within {patience:g} s")
        time.sleep(0.5)


class Stage:
    """The folder of a demonstration, its network, and the processes it started."""

    def __init__(self, folder: Path, network: Wan) -> None:
        self.folder, self.network = folder, network
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
        with (self.folder / log).open("w") as file:
            made = subprocess.Popen(
                [*self.network.run(place), *words],
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
        return ["dbclient", "-y", "-y", "-i", str(self.folder / "key"), f"root@{ADDRESSES[guest]}", words]

    def ask(self, guest: str, words: str) -> str | None:
        """What a command in a guest prints; None where it cannot be run."""
        done = subprocess.run(
            [*self.network.run("wan"), *self.ssh(guest, words)], capture_output=True, text=True, timeout=120
        )
        return None if done.returncode else done.stdout

    def mpiexec(self, program: str, two_level: str, arguments: str) -> subprocess.Popen[str]:
        """The program on all four guests, started from the first."""
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
        words = ["mpiexec", "-launcher", "ssh", "-launcher-exec", "/bin/ssh", "-n", "4", "-ppn", "1"]
        words += ["-hosts", ",".join(ADDRESSES)]
        words += [word for name, value in given.items() for word in ("-genv", name, value)]
        say(
            f"\ng1$ mpiexec -n 4 -hosts {','.join(ADDRESSES)} -genv LD_PRELOAD {preload} ... pairs {arguments}"
        )
        return self.start("wan", self.ssh("g1", " ".join([*words, "pairs", arguments])), f"{program}.log")

    def said(self, program: str) -> str:
        """What a program has printed."""
        return (self.folder / f"{program}.log").read_text(errors="replace")

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
