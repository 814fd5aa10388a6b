"""Preemption by QOS and by partition. Four jobs of four whole nodes fill the machine, so one of them makes room."""

from __future__ import annotations

from observed import Observed

from .registry import scenario

FULL = [f"small{number}" for number in range(4)]


WHOLE = ("-N4", "--ntasks-per-node=16")
"""All cores, and not the GPUs, which a suspended job keeps."""


def fill(slurm: Observed, *options: str) -> None:
    for name in FULL:
        slurm.runs(name, *WHOLE, *options)


def one_gives_way(slurm: Observed, state: str, *options: str) -> None:
    slurm.runs("urgent", *WHOLE, *options)
    slurm.states(*FULL, what="jobs of low priority", until={"RUNNING": 3, state: 1})


@scenario
def qos_requeues(slurm: Observed) -> None:
    """Preemption by QOS, requeue"""
    fill(slurm, "--qos=again")
    one_gives_way(slurm, "PENDING", "--qos=first")
    slurm.ends("urgent")
    slurm.at_once(*FULL)
    slurm.states(*FULL, what="jobs of low priority afterwards", until={"RUNNING": 4})


@scenario
def qos_cancels(slurm: Observed) -> None:
    """Preemption by QOS, cancel"""
    fill(slurm, "--qos=never")
    one_gives_way(slurm, "PREEMPTED", "--qos=first")


@scenario
def qos_preempts_part(slurm: Observed) -> None:
    """Preemption by QOS of no more jobs than needed, for GPUs"""
    for name in FULL:
        slurm.runs(name, "-N2", "--gres=gpu:4", "--qos=never", "-p", "left")
    slurm.runs("urgent", "-N1", "--gres=gpu:2", "--qos=first", "-p", "left")
    slurm.states(*FULL, what="jobs of low priority", until={"RUNNING": 3, "PREEMPTED": 1})


@scenario
def partition_requeues(slurm: Observed) -> None:
    """Preemption by partition, requeue"""
    slurm.configure(PreemptType="preempt/partition_prio")
    fill(slurm, "--partition=low")
    one_gives_way(slurm, "PENDING", "--partition=high")


@scenario
def partition_cancels(slurm: Observed) -> None:
    """Preemption by partition, cancel"""
    slurm.configure(PreemptType="preempt/partition_prio")
    fill(slurm, "--partition=lost")
    one_gives_way(slurm, "PREEMPTED", "--partition=high")


@scenario
def partition_suspends(slurm: Observed) -> None:
    """Preemption by partition, suspend and resume"""
    slurm.configure(PreemptType="preempt/partition_prio", PreemptMode="SUSPEND,GANG")
    slurm.ask(
        "scontrol", "create", "PartitionName=paused", "Nodes=ALL", "PriorityTier=1", "PreemptMode=SUSPEND"
    )
    fill(slurm, "--partition=paused")
    one_gives_way(slurm, "SUSPENDED", "--partition=high")
    slurm.ends("urgent")
    slurm.states(*FULL, what="jobs of low priority afterwards", until={"RUNNING": 4})
