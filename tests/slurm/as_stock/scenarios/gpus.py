"""GPUs and counted resources: every node has 4 GPUs of two types and 4 `nic`."""

from __future__ import annotations

from observed import Observed

from .registry import scenario


@scenario
def gpus_per_node_by_gres(slurm: Observed) -> None:
    """`--gres=gpu:2` on one and on several nodes"""
    slurm.runs("one", "-n1", "--gres=gpu:2")
    slurm.runs("rest", "-n1", "--gres=gpu:2")
    slurm.runs("three", "-N3", "--gres=gpu:4")
    slurm.submit("many", "-N1", "--gres=gpu:5")
    slurm.submit("wide", "-N9", "--gres=gpu:1", "-p", "right")


@scenario
def gpus_per_job(slurm: Observed) -> None:
    """`--gpus`"""
    slurm.runs("some", "--gpus=3")
    slurm.ends("some")
    slurm.runs("typed", "--gpus=red:2", "-N2")
    slurm.ends("typed")
    slurm.runs("six", "--gpus=6", "-n2", "-N2")
    slurm.submit("many", "--gpus=65")


@scenario
def gpus_per_node(slurm: Observed) -> None:
    """`--gpus-per-node`"""
    slurm.runs("three", "-N3", "--gpus-per-node=2")
    slurm.runs("typed", "-N2", "--gpus-per-node=blue:2")
    slurm.submit("many", "-N1", "--gpus-per-node=red:3")


@scenario
def gpus_per_task(slurm: Observed) -> None:
    """`--gpus-per-task`"""
    slurm.runs("tasks", "-n3", "--gpus-per-task=1", "--cpus-per-task=2")
    slurm.runs("spread", "-N2", "--ntasks-per-node=2", "--gpus-per-task=blue:1")
    slurm.submit("many", "-n70", "--gpus-per-task=1")


@scenario
def typed_gpus(slurm: Observed) -> None:
    """GPUs of two types in one job, and of a type that no node has"""
    slurm.runs("both", "-N2", "--gres=gpu:red:1,gpu:blue:2")
    slurm.submit("unknown", "-N1", "--gres=gpu:green:1")


@scenario
def gpus_all_taken(slurm: Observed) -> None:
    """A job waits while all GPUs are taken"""
    for number in range(8):
        slurm.runs(f"all{number}", "-n1", "--gres=gpu:4", "-p", "right")
    slurm.waits("next", "Resources", "-n1", "--gres=gpu:1", "-p", "right")
    slurm.runs("cores", "-n1", "-p", "right")
    slurm.ends("all3")
    slurm.reaches("next", "RUNNING")


@scenario
def counted_resources(slurm: Observed) -> None:
    """Counted GRES without device files"""
    slurm.runs("three", "-n1", "--gres=nic:3")
    slurm.runs("two", "-N2", "--gres=nic:2,gpu:1")
    slurm.submit("many", "-n1", "--gres=nic:5")
    slurm.submit("wrong", "-n1", "--gres=disk:1")
