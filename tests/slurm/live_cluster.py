"""A real Slurm on loopback: `cluster.sh`, its commands and its REST socket."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from topolane.slurm import accounting
from waiting import DEADLINE, until

SCRIPT = Path(__file__).parent / "cluster.sh"
COMPONENTS = Path(__file__).parents[2] / "tools" / "components.py"
RELEASE = os.environ.get("TOPOLANE_TEST_SLURM", "24.11")
"""The release of Slurm that tests of the plugin run: `make test-live HOST=slurm RELEASE=26.05`."""


@dataclasses.dataclass(frozen=True)
class Inside:
    """Where Slurm's commands are: by default those of this machine."""

    prefix: tuple[str, ...] = ()
    """What commands begin with."""
    environment: dict[str, str] = dataclasses.field(default_factory=dict)


HERE = Inside()


def script(*arguments: object, inside: Inside = HERE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*inside.prefix, SCRIPT, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=os.environ | inside.environment,
    )


class Missing(Exception):
    """Another Slurm cannot be had on this machine."""


def suite_of(release: str) -> str:
    """The suite whose Slurm is of a release. Raises Missing if no distribution has packages of it."""
    rows = (SCRIPT.parent / "releases.txt").read_text().splitlines()
    suites = dict(row.split()[:2] for row in rows if not row.startswith("#"))
    if release not in suites:
        raise Missing(f"no distribution has packages of Slurm {release}")
    return suites[release]


def slurm_source(release: str) -> Path:
    """The configured source of a release of Slurm. Raises Missing if it cannot be had.

    TOPOLANE_TEST_SLURM_SOURCES: a folder with sources by release, such as 26.05, which come first. A mirror may have
    packages without their source, and 25.05 has no packages.
    """
    given = Path(os.environ.get("TOPOLANE_TEST_SLURM_SOURCES", "/nonexistent")) / release
    if given.is_dir():
        return given
    command = [SCRIPT.parent / "slurm_source.sh", suite_of(release)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 3:
        raise Missing(done.stderr.strip().splitlines()[-1])
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return Path(done.stdout.strip())


@contextlib.contextmanager
def other_version(release: str) -> Iterator[Inside]:
    """Another release of Slurm (other_version.sh), for as long as the context lasts. Raises Missing if it cannot be
    had. Any other failure to enter it is an error: tests that it skipped would pass unseen.
    """
    suite = suite_of(release)
    done = subprocess.run([COMPONENTS, "--path", f"slurm-{suite}"], capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr)
    tree = done.stdout.strip()
    mounted = subprocess.Popen(
        [SCRIPT.parent / "other_version.sh", suite, "sleep", "infinity"], stderr=subprocess.PIPE, text=True
    )
    try:
        until(lambda: mounted.poll() is not None or _name_of(mounted.pid) == "sleep", "the mounts")
        if mounted.poll() is not None:
            assert mounted.stderr is not None
            error = mounted.stderr.read()
            raise Missing(error) if mounted.returncode == 3 else RuntimeError(error)
        path = f"{tree}/commands:{os.environ['PATH']}"
        yield Inside(("nsenter", "--mount", f"--target={mounted.pid}"), {"PATH": path, "SLURM_TREE": tree})
    finally:
        mounted.kill()
        mounted.wait()


def _name_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=DEADLINE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(DEADLINE)
        self.sock.connect(self._path)


def _plain(found: dict[str, Any]) -> Any:
    """A number, and a job's state with what is said of it, are objects and lists from v0.0.40 on."""
    if found.keys() == {"set", "infinite", "number"}:
        return found["number"] if found["set"] else None
    if isinstance(found.get("job_state"), list):
        found["job_state"] = found["job_state"][-1]
    return found


class Cluster:
    def __init__(self, directory: Path, inside: Inside = HERE) -> None:
        self.directory = directory
        self.inside = inside
        lines = (directory / "env").read_text().splitlines()
        self.facts = dict(line.split("=", 1) for line in lines)
        """SLURM_CONF, SOCKET, REST_VERSION, REST_VERSIONS, NODES, PREFIX; REST_ADDRESS and TOKEN_FILE where
        slurmrestd wants a token."""
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
        self.environment |= self.facts | inside.environment

    def run(self, *command: object) -> str:
        """What a Slurm command prints."""
        done = subprocess.run(
            [*self.inside.prefix, *(str(word) for word in command)],
            env=self.environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def passes(self, job: int) -> None:
        """Waits until backfill has looked at all waiting jobs once more, from beginning to end, or until none of a job waits."""

        def count() -> int:
            return int(re.findall(r"Total cycles:\s+(\d+)", self.run("sdiag"))[1])

        before = count()
        until(
            lambda: count() > before + 1 or not self.run("squeue", "-h", "-t", "PD", "-j", job).strip(),
            "two passes of backfill",
        )

    def script(self, verb: str, *names: str) -> None:
        """Ends or starts daemons of it: `stop`, `kill` or `start`."""
        done = script(verb, self.directory, *names, inside=self.inside)
        assert done.returncode == 0, done.stderr

    def submit(self, *arguments: object, script: str = "sleep 60") -> int:
        """A batch job's id."""
        printed = self.run("sbatch", "--parsable", "--output=/dev/null", *arguments, "--wrap", script)
        return int(printed)

    def rest(self, path: str, body: object = None) -> dict[str, Any]:
        """What slurmrestd answers to a GET, or to a POST of a body, under the newest version it offers; numbers
        and states as v0.0.38 writes them."""
        try:
            said = self.ask(path, body)
        except ConnectionResetError:
            if body is not None:
                raise
            said = self.ask(path)  # slurmrestd drops a connection now and then
        answer: dict[str, Any] = json.loads(said, object_hook=_plain)
        return answer

    def ask(self, path: str, body: object = None) -> bytes:
        """The same as it is sent."""
        connection = _UnixConnection(self.facts["SOCKET"])
        headers = {} if body is None else {"Content-Type": "application/json"}
        if "TOKEN_FILE" in self.facts:
            token = Path(self.facts["TOKEN_FILE"]).read_text().strip()
            headers |= {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": token}
        with contextlib.closing(connection):
            connection.request(
                "GET" if body is None else "POST",
                f"/slurm/{self.facts['REST_VERSION']}/{path}",
                None if body is None else json.dumps(body),
                headers,
            )
            return connection.getresponse().read()

    def job(self, job: int) -> dict[str, Any]:
        found: dict[str, Any] = self.rest(f"job/{job}")["jobs"][0]
        return found

    def nodes(self, hosts: str) -> set[str]:
        """The names in a host list."""
        return set(self.run("scontrol", "show", "hostnames", hosts).split()) if hosts else set()

    def lives(self, name: str) -> bool:
        """Whether one of its daemons is there."""
        if name == "slurmctld":
            # Its pid file may be gone after a reconfiguration, see processes.sh.
            return script("lives", self.directory, name, inside=self.inside).returncode == 0
        try:
            process = int((self.directory / "run" / f"{name}.pid").read_text())
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except (OSError, ValueError):
            return False

    def mend(self) -> None:
        """Starts what has ended, cancels all jobs and takes every node into service, as far as that goes."""
        names = [f"{self.facts['PREFIX']}{number}" for number in range(1, int(self.facts["NODES"]) + 1)]
        for name in ("slurmctld", "slurmrestd", *names):
            if not self.lives(name):
                self.script("start", name)
        for command in (
            ("scancel", "--user=root"),
            ("scontrol", "update", f"nodename={','.join(names)}", "state=resume"),
            ("scontrol", "update", f"nodename={','.join(names)}", "state=idle"),
        ):
            subprocess.run(command, env=self.environment, capture_output=True, timeout=DEADLINE)

    def ports(self) -> tuple[int, int]:
        """The first port, slurmctld's, and the last, that of the last node."""
        conf = (self.directory / "slurm.conf").read_text()
        first = re.search(r"SlurmctldPort=(\d+)", conf)
        assert first
        return int(first[1]), int(first[1]) + int(self.facts["NODES"])


def printed_by(cluster: Cluster, directory: Path) -> Path:
    """Runs the commands that `--commands` prints, as an administrator does."""
    done = subprocess.run(
        [*cluster.inside.prefix, "bash", "-ec", f"cd '{directory}'\n{accounting.commands()}"],
        env=cluster.environment | {"PATH": cluster.environment.get("PATH", os.defpath)},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return directory / "topolane-import"


@contextlib.contextmanager
def running(nodes: int, directory: Path, *options: object, inside: Inside = HERE) -> Iterator[Cluster]:
    done = script("up", nodes, directory, *options, inside=inside)
    assert done.returncode == 0, done.stderr
    try:
        yield Cluster(directory, inside)
    finally:
        script("down", directory, inside=inside)
