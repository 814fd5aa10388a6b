"""Limits of QOS, and licences."""

from __future__ import annotations

from observed import Observed

from .registry import scenario


@scenario
def qos_group_cores(slurm: Observed) -> None:
    """QOS limit GrpTRES of cores"""
    slurm.runs("one", "-n16", "--qos=cpus")
    slurm.runs("two", "-n16", "--qos=cpus")
    slurm.waits("three", "QOSGrpCpuLimit", "-n1", "--qos=cpus")
    slurm.runs("other", "-n1")
    slurm.ends("one")
    slurm.reaches("three", "RUNNING")


@scenario
def qos_group_gpus(slurm: Observed) -> None:
    """QOS limit GrpTRES of GPUs"""
    slurm.runs("one", "-n1", "--gpus=3", "--qos=gpus")
    slurm.waits("two", "QOSGrpGRES", "-n1", "--gpus=2", "--qos=gpus")
    slurm.runs("three", "-n1", "--gpus=1", "--qos=gpus")


@scenario
def qos_jobs_of_a_user(slurm: Observed) -> None:
    """QOS limit MaxJobsPerUser"""
    slurm.runs("first", "-n1", "--qos=one", user="daemon")
    slurm.waits("second", "QOSMaxJobsPerUserLimit", "-n1", "--qos=one", user="daemon")
    slurm.runs("other", "-n1", "--qos=one", user="games")
    slurm.ends("first")
    slurm.reaches("second", "RUNNING")


@scenario
def qos_denies(slurm: Observed) -> None:
    """QOS that denies a job over its limit"""
    slurm.submit("three", "-N3", "--qos=few")
    slurm.runs("two", "-N2", "--qos=few")


@scenario
def licences(slurm: Observed) -> None:
    """Licences"""
    slurm.runs("three", "-N1", "-L", "solver:3")
    slurm.waits("two", "Licenses", "-N1", "-L", "solver:2")
    slurm.runs("one", "-N1", "-L", "solver:1")
    slurm.submit("many", "-N1", "-L", "solver:5")
    slurm.ends("three")
    slurm.reaches("two", "RUNNING")
