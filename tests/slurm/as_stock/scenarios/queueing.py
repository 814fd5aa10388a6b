"""The order in which jobs start, and what is said of those that wait."""

from __future__ import annotations

import re

from observed import Observed

from .registry import scenario

FULL = ("-N16", "--exclusive", "--time=10")


@scenario
def arrays(slurm: Observed) -> None:
    """Arrays, with a limit of tasks at a time"""
    slurm.submit("array", "-n1", "--array=0-4%2")
    job = slurm.jobs["array"]
    slurm.reaches("array", "RUNNING", job=f"{job}_0")
    slurm.reaches("array", "RUNNING", job=f"{job}_1")
    slurm.reaches("array", "PENDING", "JobArrayTaskLimit", job=f"{job}_2")
    slurm.ask("scancel", f"{job}_0", name="scancel a task")
    slurm.reaches("array", "RUNNING", job=f"{job}_2")
    slurm.submit("wide", "-N2", "--array=1-2", script="exit 0")
    for task in (1, 2):
        slurm.reaches("wide", "COMPLETED", job=f"{slurm.jobs['wide']}_{task}")


@scenario
def dependencies(slurm: Observed) -> None:
    """Dependencies"""
    slurm.runs("one", "-n1")
    one = slurm.jobs["one"]
    slurm.waits("after", "Dependency", "-n1", f"--dependency=afterany:{one}")
    slurm.waits("well", "Dependency", "-n1", f"--dependency=afterok:{one}")
    slurm.waits("badly", "Dependency", "-N2", f"--dependency=afternotok:{one}")
    slurm.submit("gone", "-n1", f"--dependency=afterok:{one}", "--kill-on-invalid-dep=yes")
    slurm.runs("begun", "-n1", f"--dependency=after:{one}")
    slurm.ends("one")
    slurm.reaches("after", "RUNNING")
    slurm.reaches("badly", "RUNNING")
    slurm.reaches("well", "PENDING", "DependencyNeverSatisfied")
    slurm.reaches("gone", "CANCELLED")
    slurm.ends("begun")
    slurm.runs("single", "-n1", "--dependency=singleton")
    slurm.submit("wrong", "-n1", "--dependency=afterok:99999999")


@scenario
def start_order(slurm: Observed) -> None:
    """Waiting jobs start in the order of their priorities"""
    order = slurm.cluster.directory / "order"
    order.write_text("")
    slurm.runs("full", *FULL)
    names = {"low": 500, "high": 0, "middle": 200, "last": 900}
    for name, nice in names.items():
        slurm.submit(name, *FULL, f"--nice={nice}", script=f"echo {name} >>{order}")
    slurm.reaches("high", "PENDING", "Resources")
    for name in ("low", "middle", "last"):
        slurm.reaches(name, "PENDING", "Priority")
    slurm.ends("full")
    for name in names:
        slurm.reaches(name, "COMPLETED")
    slurm.see("order", order.read_text().split())


@scenario
def backfill(slurm: Observed) -> None:
    """A short job passes a wide one that waits, a long one does not"""
    slurm.runs("most", "-N12", "--exclusive", "--time=10")
    slurm.waits("wide", "Resources", "-N16", "--exclusive", "--time=10")
    slurm.runs("short", "-N2", "--exclusive", "--time=2")
    slurm.waits("long", "Priority", "-N2", "--exclusive", "--time=60")


@scenario
def expected_start(slurm: Observed) -> None:
    """`squeue --start`: when a job will start that waits for others"""
    slurm.runs("full", *FULL)
    slurm.waits("next", "Resources", *FULL)
    slurm.waits("later", "Priority", *FULL)

    def minutes() -> dict[str, int | None]:
        """After the end of the running job, by name."""
        listed = slurm.run("squeue", "-h", "-o", "%j %S %e", "-t", "R,PD").stdout
        times = {line.split()[0]: line.split()[1:] for line in listed.splitlines()}
        end = _seconds(times["full"][1])
        starts = {name: _seconds(each[0]) for name, each in times.items()}
        return {name: None if not (at and end) else (at - end) // 120 for name, at in starts.items()}

    slurm.until(lambda: None not in minutes().values(), "every job has a start")
    found = minutes()
    slurm.see(
        "pairs of minutes after the end of the first", {name: found[name] for name in ("next", "later")}
    )
    slurm.ask("squeue", "--start", "-h", "-o", "%j %T %D %C %r", "-S", "j", name="squeue --start")


def _seconds(shown: str) -> int | None:
    found = re.fullmatch(r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)", shown)
    if not found:
        return None
    day, hour, minute, second = (int(found[group]) for group in (3, 4, 5, 6))
    return ((day * 24 + hour) * 60 + minute) * 60 + second


@scenario
def priorities(slurm: Observed) -> None:
    """`sprio`"""
    slurm.runs("full", *FULL)
    slurm.waits("plain", "", "-N2")
    slurm.waits("nice", "", "-N4", "--nice=30")
    slurm.waits("qos", "", "-n40", "--qos=first")
    listed = ",".join(str(slurm.jobs[name]) for name in ("plain", "nice", "qos"))
    slurm.ask("sprio", "-h", "-j", listed, "-o", "%i %r %Y %A %J %P %Q %N", name="sprio")


@scenario
def held(slurm: Observed) -> None:
    """Held, released and later jobs; a change of a waiting job"""
    slurm.waits("held", "JobHeld", "-N2", "--hold")
    slurm.ask("scontrol", "release", slurm.jobs["held"], name="release")
    slurm.reaches("held", "RUNNING")
    slurm.waits("later", "BeginTime", "-N2", "--begin=now+1hour")
    slurm.waits("wide", "JobHeld", "-N8", "--hold")
    job = f"JobId={slurm.jobs['wide']}"
    slurm.ask("scontrol", "update", job, "NumNodes=2", "Partition=right", "TimeLimit=7", name="update")
    slurm.ask("scontrol", "release", slurm.jobs["wide"], name="release wide")
    slurm.reaches("wide", "RUNNING")


@scenario
def test_only(slurm: Observed) -> None:
    """`sbatch --test-only`"""
    for name, options in {
        "four nodes": ("-N4",),
        "tasks": ("-n20",),
        "gpus": ("--gpus=5",),
        "too many": ("-N17",),
        "no such partition": ("-N1", "-p", "none"),
    }.items():
        slurm.ask("sbatch", "--test-only", *options, "--wrap", "true", name=name)
    slurm.runs("full", *FULL)
    slurm.ask("sbatch", "--test-only", "-N2", "--time=5", "--wrap", "true", name="on a full machine")
    slurm.ask("srun", "--test-only", "-N2", "--time=5", "true", name="srun on a full machine")
