"""How true replays of the queue `slurm` were, by the rules of the cluster.

`benches/run.py slurm/flavours --records DIR` measures these figures on records of a real Slurm 24.11 whose jobs,
users and settings were drawn at random (docs/benchmarks/slurm.md).
"""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from topolane._engine import Workload


@dataclasses.dataclass(frozen=True)
class Truth:
    """What was measured on records of a flavour."""

    what: str
    """What texts call the flavour."""
    main: float
    backfill: float
    """Starts of each scheduler that the queue decides too, in percent."""
    off: float
    """By how much the mean wait of replays was off, in the mean over plans, in percent."""
    noise: float
    """By how much the mean waits of two runs of Slurm itself differed, in percent."""


FLAVOURS = {
    "basic": Truth("priority/basic", 99, 98, 2, 1),
    "fair-whole": Truth("fair share, whole nodes", 100, 97, 2, 5),
    "fair-shared": Truth("fair share, shared nodes", 100, 98, 10, 11),
    "qos-preemption": Truth("preemption", 100, 96, 9, 9),
    "partitions": Truth("partitions of several tiers", 98, 97, 2, 5),
    "gpus": Truth("GPUs", 98, 98, 2, 10),
}


def of(config: Path, log: Path, workload: Workload) -> str:
    """The flavour of a cluster. config: the configuration of the queue slurm; log: the file of the workload.

    Raises OSError.
    """
    found = json.loads(config.read_text())
    if found.get("preemption", {}).get("by"):
        return "qos-preemption"
    if len({row.get("tier", 0) for row in found.get("partitions", [])}) > 1:
        return "partitions"
    with gzip.open(log, "rt") if log.suffix == ".gz" else open(log) as file:
        columns = file.readline().strip().split(",")
    if any(name.startswith("resource:gpu") or name in ("gpus", "gpus_per_node") for name in columns):
        return "gpus"
    if not bool(np.isnan(workload.columns()["cores"]).all()):
        return "fair-shared"
    weights = found.get("priority", {})
    weighs = any(
        weights.get(f"weight_{what}") for what in ("age", "fair_share", "job_size", "partition", "qos")
    )
    return "fair-whole" if weighs else "basic"


def sentence(flavour: str) -> str:
    """What was measured for a flavour."""
    truth = FLAVOURS[flavour]
    return (
        f"Clusters like this ({truth.what}), measured: the same single decisions in {truth.main:.0f} % (main scheduler) and "
        f"{truth.backfill:.0f} % (backfill); mean waits of replays {truth.off:.0f} % off, where Slurm is {truth.noise:.0f} % "
        "off itself."
    )
