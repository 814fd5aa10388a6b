"""Runs the twin's experiment on a real Slurm: submits jobs at their times, and collects all records."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from live_cluster import Cluster, running
from topolane.slurm import accounting
from twin_plan import ACCOUNTS, Event, Job, Plan
from waiting import until

PREFIX = "twin"
FACTS = "twin.json"
PLAN = "plan.json"
TOPOLOGY = "topology.conf"


def record(plan: Plan, out: Path, *, logs: bool = False) -> None:
    """Runs the plan on a separate Slurm and writes into `out` what the commands of `topolane workload import
    --commands` print.

    logs: also copy slurmctld's log.

    Raises RuntimeError if Slurm does not start or refuses what the plan needs.
    """
    with tempfile.TemporaryDirectory(prefix="tw-", dir="/tmp") as scratch:
        os.chmod(scratch, 0o711)  # jobs of other users run inside this folder
        where = Path(scratch) / "slurm"
        options = ("--prefix", PREFIX, "--select", "cons_tres", "--accounting", "slurmdbd", "--open", "yes")
        options += plan.site.options
        try:
            with running(plan.nodes, where, *options) as cluster:
                _configure(cluster, plan)
                say(f"{plan.nodes} slurmds are idle")
                begin = _submit(cluster, plan)
                _drain(cluster, plan, begin)
                _collect(cluster, plan, begin, out)
                if logs:
                    shutil.copy(cluster.directory / "log" / "slurmctld.log", out)
        except AssertionError as error:
            raise RuntimeError(str(error)) from error


def _configure(cluster: Cluster, plan: Plan) -> None:
    """Adds accounts, users and QOS to slurmdbd, then restarts slurmctld with fair share and limits."""
    for name, limits in plan.site.qos.items():
        verb = "modify" if name == "normal" else "add"
        words = ("set", *limits.split()) if verb == "modify" else limits.split()
        cluster.run("sacctmgr", "-i", verb, "qos", name, *words)
    names = ",".join(plan.site.qos)
    for account, (share, users) in ACCOUNTS.items():
        words = (f"fairshare={share}", f"qos={names}", "defaultqos=normal")
        cluster.run("sacctmgr", "-i", "add", "account", account, *words)
        for user in users:
            cluster.run("sacctmgr", "-i", "add", "user", user, f"account={account}", "fairshare=10")
    cluster.script("stop", "slurmctld")
    conf = cluster.directory / "slurm.conf"
    text = conf.read_text()
    for key in (*plan.site.settings, "PartitionName", "PriorityWeight[A-Za-z]*"):
        text = re.sub(rf"(?m)^{key}=.*\n", "", text)
    text += "".join(f"{key}={value}\n" for key, value in plan.site.settings.items())
    conf.write_text(text + plan.site.lines(PREFIX))
    shutil.rmtree(cluster.directory / "state")
    (cluster.directory / "state").mkdir()
    cluster.script("start", "slurmctld")
    until(lambda: len(_idle(cluster)) == plan.nodes, "idle nodes")


def _idle(cluster: Cluster) -> list[str]:
    return sorted(set(cluster.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split()))


def _submit(cluster: Cluster, plan: Plan) -> float:
    """Submits every job and makes every change of nodes at its time. Returns the start of this, in seconds
    since 1970.
    """
    begin = time.time()
    for reservation in plan.reservations:
        cluster.run(
            *("scontrol", "create", "reservation", f"reservationname={reservation.name}"),
            *(f"starttime=now+{reservation.start}", f"duration={reservation.minutes}"),
            *(f"nodes={hosts(reservation.nodes)}", *reservation.who.split()),
        )
    ids: dict[int, str] = {}
    late = 0.0
    todo: list[tuple[float, int, Job | Event]] = [(job.submit, 0, job) for job in plan.jobs]
    todo += [(event.at, 1, event) for event in plan.events]
    todo += [(job.cancelled, 2, job) for job in plan.jobs if math.isfinite(job.cancelled)]
    for at, kind, what in sorted(todo, key=lambda each: each[:2]):
        time.sleep(max(begin + at - time.time(), 0))
        late = max(late, time.time() - begin - at)
        if isinstance(what, Event):
            _change(cluster, what)
            continue
        if kind == 2:
            if what.number in ids:
                words = ("scancel", "--state=PENDING", ids[what.number])
                subprocess.run(words, env=cluster.environment, timeout=120)
            continue
        if given := _submitted(cluster, _sbatch(what, ids)):
            ids[what.number] = given
        if what.number % 50 == 0:
            say(f"{time.time() - begin:.0f} s: job {what.number}, at most {late:.1f} s late")
    say(f"{len(ids):,} of {len(plan.jobs):,} jobs are submitted, at most {late:.1f} s late")
    return begin


def _change(cluster: Cluster, event: Event) -> None:
    """Takes nodes out of service or back."""
    words = ["scontrol", "update", f"nodename={hosts(event.nodes)}", f"state={event.state}"]
    try:
        cluster.run(*words, *([] if event.state == "resume" else ["reason=twin"]))
    except AssertionError as error:
        say(f"{hosts(event.nodes)} cannot be set to {event.state}: {str(error).strip()}")


def _submitted(cluster: Cluster, words: list[str]) -> str | None:
    """Submits a job. Returns Slurm's number; None if it is refused."""
    done = subprocess.run(
        words, env=cluster.environment, cwd="/tmp", capture_output=True, text=True, timeout=120
    )
    if done.returncode:
        say(f"a job is refused: {done.stderr.strip()}")
        return None
    return done.stdout.strip().split(";")[0]


def _sbatch(job: Job, ids: dict[int, str]) -> list[str]:
    words = ["sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", f"--uid={job.user}"]
    words += [f"--account={job.account}", f"--qos={job.qos}", f"--partition={job.partition}"]
    words += [f"--nodes={job.nodes}", f"--time={job.minutes}", f"--job-name=job{job.number}"]
    if job.after and job.after[1] in ids:
        words.append(f"--dependency={job.after[0]}:{ids[job.after[1]]}")
    if job.begin:
        words.append(f"--begin=now+{job.begin}")
    if job.nice:
        words.append(f"--nice={job.nice}")
    if job.reservation:
        words.append(f"--reservation={job.reservation}")
    words += job.options
    return [*words, "--wrap", f"exec sleep {job.run}"]


def _drain(cluster: Cluster, plan: Plan, begin: float) -> None:
    """Waits until the queue is empty or the time is over, and cancels the jobs that still wait."""
    end = max(begin + plan.seconds, time.time() + 5)
    while cluster.run("squeue", "-h", "-o", "%A") and time.time() < end:
        time.sleep(3)
    left = cluster.run("squeue", "-h", "-o", "%T").split()
    say(f"{left.count('PENDING')} jobs wait and {left.count('RUNNING')} run at the end: they are cancelled")
    for partition in plan.site.partitions:
        subprocess.run(["scancel", f"--partition={partition}"], env=cluster.environment, timeout=120)
    until(lambda: not cluster.run("squeue", "-h", "-o", "%A"), "an empty queue")
    time.sleep(8)  # slurmctld reports ends to slurmdbd only every few seconds


def _collect(cluster: Cluster, plan: Plan, begin: float, out: Path) -> None:
    """Collects the output of the import's commands, slurm.conf, the topology, and the plan itself."""
    commands = accounting.commands("now-1days")
    with tempfile.TemporaryDirectory(dir="/tmp") as scratch:
        done = subprocess.run(
            ["bash", "-ec", f"cd '{scratch}'\n{commands}"],
            env=cluster.environment | {"PATH": cluster.environment.get("PATH", os.defpath)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode:
            raise RuntimeError(f"the commands of the import fail: {done.stderr.strip()}")
        out.mkdir(parents=True, exist_ok=True)
        for file in (Path(scratch) / "topolane-import").iterdir():
            shutil.copy(file, out / file.name)
    for name in ("slurm.conf", TOPOLOGY):
        if not (out / name).exists():
            shutil.copy(cluster.directory / name, out / name)
    facts = {
        "begin": begin,
        "seconds": plan.seconds,
        "nodes": plan.nodes,
        "bf_interval": plan.site.interval,
        "version": cluster.run("sinfo", "--version").strip(),
    }
    (out / FACTS).write_text(json.dumps(facts, indent=2) + "\n")
    (out / PLAN).write_text(json.dumps(dataclasses.asdict(plan)) + "\n")


def hosts(nodes: tuple[int, int]) -> str:
    """A host list of the nodes from the first to the last."""
    return f"{PREFIX}[{nodes[0]}-{nodes[1]}]"


def say(text: str) -> None:
    """Prints progress, because an hour is long."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
