"""A Flux instance with synthetic nodes, whose jobs are Flux's mock executions: they hold nodes and run nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from topolane.flux import module_file
from waiting import DEADLINE, until

TREE = """\
name = "tree"
[[site]]
name = "core"
children = [6, 4, 3]
parents = [1, 6, 4]
nodes = "n[0-71]"
"""
"""A machine of 72 nodes with full bandwidth."""
HAS_FRAMEWORK = "import flux.scheduler, flux.resource.Rv1Pool"
DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
SUBMIT = """\
import json, sys
from flux import Flux
from flux.job import JobspecV1, submit

handle = Flux()
for nodes, seconds, urgency in json.load(sys.stdin):
    job = JobspecV1.from_command(["true"], num_nodes=nodes, num_tasks=nodes, exclusive=True, duration=60)
    job.setattr("system.exec.test.run_duration", f"{seconds}s")
    print(int(submit(handle, job, urgency=urgency)))
"""
NOTES = """\
import json, sys
from flux import Flux
from flux.job import job_kvs

handle = Flux()
print(json.dumps([job_kvs(handle, jobid)["topolane"] for jobid in json.load(sys.stdin)]))
"""


def missing() -> str | None:
    """Why no test of Flux can run here."""
    if shutil.which("flux") is None:
        return "needs Flux: flux is not on PATH"
    done = subprocess.run(["flux", "python", "-c", HAS_FRAMEWORK], capture_output=True, timeout=DEADLINE)
    return "needs flux-core with flux.scheduler (0.84 or later)" if done.returncode else None


@dataclasses.dataclass(frozen=True)
class Job:
    """What Flux says of a job."""

    id: int
    state: str
    result: str
    nodes: str
    start: float
    end: float
    note: str
    annotations: dict[str, Any]


class Instance:
    """A broker that has the resources of many ranks; or several brokers, one for each rank."""

    def __init__(
        self, folder: Path, resources: dict[str, Any] | None, brokers: int = 1, options: Sequence[str] = ()
    ) -> None:
        """resources: None for those that Flux finds. options: more for `flux start`."""
        self.folder = folder
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("FLUX_")}
        lines = []
        several = []
        if resources is not None:
            (folder / "R.json").write_text(json.dumps(resources))
            lines = ["[resource]", "noverify = true", f"path = {json.dumps(str(folder / 'R.json'))}"]
            if brokers > 1:
                several = [f"--test-hosts={resources['execution']['nodelist'][0]}", "--test-exit-mode=leader"]
        (folder / "flux.toml").write_text("".join(f"{line}\n" for line in lines))
        at_start = folder / "modprobe"
        if at_start.exists():
            self.env["FLUX_MODPROBE_PATH_APPEND"] = str(at_start)
        code = f"flux getattr local-uri > {folder}/uri.new && mv {folder}/uri.new {folder}/uri && exec sleep 100000"
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.broker = subprocess.Popen(
                [
                    "flux",
                    "start",
                    f"-s{brokers}",
                    *several,
                    *options,
                    f"--config-path={folder}/flux.toml",
                    "sh",
                    "-c",
                    code,
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self.env,
                start_new_session=True,
            )
        try:
            started = until(
                lambda: (folder / "uri").exists() and "up" or self.broker.poll() is not None and "ended",
                "the instance is there",
            )
            assert started == "up", self.log.read_text()
            self.env["FLUX_URI"] = (folder / "uri").read_text().strip()
            if at_start.exists():
                return
            self.run("module", "remove", "sched-simple")
            if brokers == 1:
                self.run("module", "reload", "resource", "noverify", "monitor-force-up")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends the instance and all that it started."""
        if self.broker.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.broker.pid, signal.SIGTERM)
            try:
                self.broker.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(self.broker.pid, signal.SIGKILL)
                self.broker.wait()

    def run(self, *words: object, code: int | None = 0, text: str | None = None, seconds: float = 300) -> str:
        """What a command of Flux prints, errors too."""
        asked = ["flux", *map(str, words)]
        done = subprocess.run(
            asked,
            env=self.env,
            text=True,
            timeout=seconds,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert code is None or done.returncode == code, f"{' '.join(asked)}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def load(self, *words: str, code: int = 0) -> str:
        """Loads our scheduler."""
        return self.run("module", "load", module_file(), *words, code=code)

    @contextlib.contextmanager
    def process(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Our scheduler as a process of its own, once it schedules."""
        running = subprocess.Popen(
            ["flux", "python", module_file(), *words],
            env=self.env,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            until(lambda: running.poll() is not None or self.has_scheduler(), "it schedules")
            assert running.poll() is None, running.communicate()[0]
            yield running
        finally:
            running.kill()
            running.communicate()

    def has_scheduler(self) -> bool:
        """Whether our scheduler answers."""
        asked = ["flux", "module", "stats", "sched-topolane"]
        return subprocess.run(asked, env=self.env, capture_output=True, timeout=DEADLINE).returncode == 0

    def submit(self, *words: object, seconds: float = 0.1) -> int:
        """Submits a job that runs for so long."""
        said = self.run(
            "submit", *words, f"--setattr=system.exec.test.run_duration={seconds}s", "true"
        ).strip()
        number = 0
        for digit in said.removeprefix("ƒ").removeprefix("f"):
            number = number * len(DIGITS) + DIGITS.index(digit)
        return number

    def submit_all(self, jobs: list[tuple[int, float, int]]) -> list[int]:
        """Submits jobs of whole nodes, each (nodes, seconds, urgency), with a limit of a minute."""
        return [int(line) for line in self.run("python", "-c", SUBMIT, text=json.dumps(jobs)).split()]

    def notes(self, jobs: list[int]) -> dict[int, Any]:
        """What our scheduler keeps in addition to R of each job."""
        return dict(zip(jobs, json.loads(self.run("python", "-c", NOTES, text=json.dumps(jobs)))))

    def jobs(self) -> dict[int, Job]:
        """All jobs."""
        found = {}
        listed = json.loads(self.run("jobs", "-a", "-c0", "--json"))["jobs"]
        for job in listed:
            note = (job.get("exception") or {}).get("note") or ""
            found[job["id"]] = Job(
                job["id"],
                job["state"],
                job.get("result") or "",
                job.get("nodelist") or "",
                job.get("t_run") or 0.0,
                job.get("t_cleanup") or job.get("t_inactive") or 0.0,
                note,
                (job.get("annotations") or {}).get("sched", {}),
            )
        return found

    def job(self, jobid: int) -> Job:
        return self.jobs()[jobid]

    def resources(self, jobid: int) -> dict[str, Any]:
        """R of a job."""
        found: dict[str, Any] = json.loads(self.run("job", "info", jobid, "R"))
        return found

    def stats(self) -> dict[str, Any]:
        """What our scheduler says of itself."""
        found: dict[str, Any] = json.loads(self.run("module", "stats", "sched-topolane"))
        return found

    def wait_state(self, jobid: int, *states: str) -> Job:
        """The job, once it is in one of these states."""
        return until(lambda: (job := self.job(jobid)).state in states and job, f"{jobid} is {states}")

    def idle(self) -> dict[int, Job]:
        """All jobs, once none is left that runs or waits."""
        self.run("queue", "idle", "--timeout=280s")
        return self.jobs()


def resources(nodes: int, cores: int = 8, gpus: int = 0, name: str = "n", first: int = 0) -> dict[str, Any]:
    """R of synthetic nodes."""
    of_each = {"core": f"0-{cores - 1}"} | ({"gpu": f"0-{gpus - 1}"} if gpus else {})
    return {
        "version": 1,
        "execution": {
            "R_lite": [{"rank": f"0-{nodes - 1}", "children": of_each}],
            "starttime": 0.0,
            "expiration": 0.0,
            "nodelist": [f"{name}[{first}-{first + nodes - 1}]"],
        },
    }


@contextlib.contextmanager
def instance(
    folder: Path, resources: dict[str, Any] | None, brokers: int = 1, options: Sequence[str] = ()
) -> Iterator[Instance]:
    flux = Instance(folder, resources, brokers, options)
    try:
        yield flux
    finally:
        flux.stop()
