"""Jobs that share nodes, run steps, and change while they run."""

from __future__ import annotations

from observed import Observed

from .registry import scenario


@scenario
def heterogeneous(slurm: Observed) -> None:
    """Heterogeneous jobs"""
    options = ("-n4", "-N1", ":", "-N2", "--exclusive", "--time=60", ":", "-N1", "--gres=gpu:2", "--time=60")
    slurm.submit("parts", *options)
    slurm.reaches("parts", "RUNNING")
    for part in (1, 2):
        slurm.reaches("parts", "RUNNING", job=f"{slurm.jobs['parts']}+{part}")
    slurm.ends("parts")
    slurm.runs("full", "-N16", "--exclusive")
    slurm.submit("later", "-N1", ":", "-N2", "--time=60")
    slurm.reaches("later", "PENDING", "Resources")
    slurm.ends("full")
    slurm.reaches("later", "RUNNING")
    slurm.submit("wrong", "-N1", ":", "-N17")


@scenario
def exclusive(slurm: Observed) -> None:
    """Whole nodes: `--exclusive`, `--exclusive=user`, a partition of whole nodes"""
    slurm.runs("option", "-n2", "-N1", "--exclusive", "-w", "node1")
    slurm.waits("second", "Resources", "-n1", "-w", "node1")
    slurm.runs("partition", "-n3", "-p", "whole", "-w", "node5")
    slurm.waits("other", "Resources", "-n1", "-w", "node5")
    slurm.runs("user", "-n2", "--exclusive=user", "-w", "node9", user="daemon")
    slurm.runs("same", "-n2", "--exclusive=user", "-w", "node9", user="daemon")
    slurm.waits("another", "", "-n2", "-w", "node9", user="games")


@scenario
def shared(slurm: Observed) -> None:
    """Shared nodes: cores, memory, and a partition that lets two jobs share cores"""
    for number in range(4):
        slurm.runs(f"quarter{number}", "-n4", "-w", "node2")
    slurm.waits("fifth", "Resources", "-n1", "-w", "node2")
    slurm.ends("quarter1")
    slurm.reaches("fifth", "RUNNING")
    slurm.runs("one", "-n16", "-p", "over", "-w", "node6")
    slurm.runs("two", "-n16", "-p", "over", "-w", "node6")
    slurm.waits("three", "Resources", "-n16", "-p", "over", "-w", "node6")
    slurm.runs("all", "-n160")


@scenario
def requeue(slurm: Observed) -> None:
    """Requeue: of a running job, into hold, of a job that forbids it"""
    slurm.runs("again", "-N2", "--requeue")
    slurm.runs("hold", "-N2", "--requeue")
    slurm.runs("never", "-N1", "--no-requeue")
    for name, verb in {"again": "requeue", "hold": "requeuehold", "never": "requeue"}.items():
        slurm.ask("scontrol", verb, slurm.jobs[name], name=f"{verb} {name}")
    slurm.reaches("hold", "PENDING", "job_requeued_in_held_state")
    slurm.reaches("again", "PENDING", "BeginTime")
    slurm.at_once("again")
    slurm.reaches("again", "RUNNING")


@scenario
def resize(slurm: Observed) -> None:
    """A running job gives back nodes"""
    slurm.renew()  # Slurm 24.11.5 counts cores of the nodes as taken after the job has ended
    slurm.runs("four", "-N4", "--exclusive")
    slurm.ask("scontrol", "update", f"JobId={slurm.jobs['four']}", "NumNodes=2", name="smaller")
    slurm.reaches("four", "RUNNING")
    slurm.runs("rest", "-N14", "--exclusive")
    slurm.ask("scontrol", "update", f"JobId={slurm.jobs['four']}", "NumNodes=3", name="larger")


@scenario
def grow(slurm: Observed) -> None:
    """A job takes over the nodes of another (`--dependency=expand`)"""
    slurm.renew()
    slurm.runs("first", "-N2", "--exclusive")
    slurm.submit("more", "-N2", "--exclusive", f"--dependency=expand:{slurm.jobs['first']}")
    if "more" in slurm.jobs:
        slurm.reaches("more", "RUNNING")
        slurm.ask("scontrol", "update", f"JobId={slurm.jobs['more']}", "NumNodes=0", name="give")
        slurm.ask("scontrol", "update", f"JobId={slurm.jobs['first']}", "NumNodes=ALL", name="take")
        slurm.reaches("first", "RUNNING")


@scenario
def salloc(slurm: Observed) -> None:
    """`salloc`, also when the machine is full"""
    command = "echo $SLURM_JOB_NUM_NODES $SLURM_NTASKS $SLURM_TASKS_PER_NODE $SLURM_JOB_CPUS_PER_NODE; exit 7"
    slurm.ask("salloc", "-N2", "-n6", "sh", "-c", command, name="salloc")
    slurm.ask("salloc", "-N2", "srun", "-l", "echo", "here", name="salloc with a step")
    # From 26.05 on it waits for a larger partition.
    slurm.ask("salloc", "--immediate=1", "-N17", "true", name="too many")
    slurm.runs("full", "-N16", "--exclusive")
    slurm.ask("salloc", "--immediate=1", "-N1", "true", name="now")


@scenario
def srun(slurm: Observed) -> None:
    """`srun`, and `srun -I` on an idle and on a full machine"""
    slurm.ask("srun", "-N3", "-n3", "-l", "echo", "here", name="three")
    slurm.ask("srun", "-I", "-N2", "echo", "now", name="idle")
    slurm.ask("srun", "-n1", "sh", "-c", "exit 5", name="fails")
    slurm.runs("full", "-N16", "--exclusive")
    slurm.ask("srun", "-I", "-N2", "true", name="full")
    slurm.ask("srun", "-I2", "-n1", "true", name="full, two seconds")


@scenario
def accounting(slurm: Observed) -> None:
    """Rows of `sacct` of jobs and steps"""
    slurm.submit("good", "-N2", "-n2", script="srun -n2 true; srun -N1 -n1 true")
    slurm.submit("bad", "-n1", script="exit 3")
    slurm.submit("step", "-n1", script="srun false")
    slurm.reaches("good", "COMPLETED")
    slurm.reaches("bad", "FAILED")
    slurm.reaches("step", "FAILED")
    listed = ",".join(map(str, slurm.jobs.values()))
    rows: list[str] = []

    def complete() -> bool:
        fields = "JobName,State,ExitCode,NNodes,NTasks,AllocCPUS,AllocTRES,Partition"
        rows[:] = slurm.run("sacct", "-nP", "-j", listed, "-o", fields).stdout.splitlines()
        return len(rows) == 9 and not any("RUNNING" in row for row in rows)

    slurm.until(complete, "all steps have ended in sacct")
    slurm.see("rows", sorted(rows))


@scenario
def suspended(slurm: Observed) -> None:
    """A job that an administrator suspends and resumes"""
    slurm.runs("job", "-N4", "--exclusive")
    slurm.ask("scontrol", "suspend", slurm.jobs["job"], name="suspend")
    slurm.reaches("job", "SUSPENDED")
    slurm.ask("scontrol", "resume", slurm.jobs["job"], name="resume")
    slurm.reaches("job", "RUNNING")


@scenario
def signalled(slurm: Observed) -> None:
    """A signal to the batch script"""
    ready = slurm.cluster.directory / "ready"
    slurm.runs("job", "-N2", script=f"trap 'exit 9' USR1; touch {ready}; sleep 900 & wait")
    slurm.until(ready.exists, "the script is ready")
    slurm.ask("scancel", "--batch", "--signal=USR1", slurm.jobs["job"], name="signal")
    slurm.reaches("job", "FAILED")
