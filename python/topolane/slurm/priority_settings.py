"""The settings of Slurm's multifactor plugin: weights and flags, from `scontrol show config`."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from topolane._engine import InputError
from topolane.slurm.client import SlurmError

UNITS = " KMGTPEZY"

NORMAL = frozenset({"NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES"})

FOLLOWED = NORMAL | {
    "ACCRUE_ALWAYS",
    "SMALL_RELATIVE_TO_TIME",
    # These affect only numbers that are read from Slurm.
    *("DEPTH_OBLIVIOUS", "NO_FAIR_TREE", "FAIR_TREE", "MAX_TRES", "MAX_TRES_GRES"),
    "CALCULATE_RUNNING",  # no effect on waiting jobs
}
"""The supported flags. INCR_ONLY is not supported: Slurm keeps no priority of a held job, so none can only
grow.
"""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Weights, most of them for a factor from 0 to 1, and the other settings of priorities."""

    age: float
    association: float
    fair_share: float
    size: float
    partition: float
    qos: float
    tres: Mapping[str, float]
    """Weights per unit of each resource's factor."""
    max_age: float
    """Seconds after which a job stops ageing."""
    favours_small: bool
    flags: frozenset[str]
    whole_nodes: bool
    """Whether a job gets all cores of its nodes (select/linear)."""
    period: float
    """Seconds between two calculations by Slurm."""


def read() -> Settings:
    """The settings of the Slurm of this environment.

    Raises InputError if its priorities cannot be computed from outside, and SlurmError if it does not answer.
    """
    told = dict(re.findall(r"^(\w+) *= ?(.*?) *$", said("scontrol", "show", "config"), re.MULTILINE))
    if told.get("PriorityType") != "priority/multifactor":
        raise InputError(
            f"by-priority needs PriorityType=priority/multifactor; this Slurm has {told.get('PriorityType')}"
        )
    if (plugin := told.get("PrioritySiteFactorPlugin", "(null)")) not in ("(null)", "", "none"):
        raise InputError(f"by-priority cannot ask the PrioritySiteFactorPlugin {plugin} for its factors")
    # Without slurmdbd there are no associations, and Slurm ignores these weights: multifactor's init().
    counted = told.get("AccountingStorageType") == "accounting_storage/slurmdbd"
    settings = Settings(
        age=_number(told, "PriorityWeightAge") * counted,
        association=_number(told, "PriorityWeightAssoc") * counted,
        fair_share=_number(told, "PriorityWeightFairShare") * counted,
        qos=_number(told, "PriorityWeightQOS") * counted,
        size=_number(told, "PriorityWeightJobSize"),
        partition=_number(told, "PriorityWeightPartition"),
        tres=_weights(told.get("PriorityWeightTRES", "(null)")),
        max_age=_seconds(told, "PriorityMaxAge"),
        favours_small=told.get("PriorityFavorSmall") == "Yes",
        flags=_flags(told),
        whole_nodes=told.get("SelectType") == "select/linear",
        period=_seconds(told, "PriorityCalcPeriod"),
    )
    if settings.age and re.search("limits|safe", told.get("AccountingStorageEnforce", "")):
        _no_limits_of_ageing()
    return settings


def said(*command: str) -> str:
    """The output of a Slurm command. Raises SlurmError."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"{' '.join(command)} cannot be run: {error}") from error
    if done.returncode:
        raise SlurmError(f"{' '.join(command)} says {done.stderr.strip() or 'nothing'}")
    return done.stdout


@lru_cache(maxsize=4096)
def amounts(tres: str) -> Mapping[str, float]:
    """Amounts of resources in Slurm's form: `cpu=2,mem=62.50G,node=2`. Memory in MiB."""
    found = {}
    for name, number, unit in re.findall(r"([^=,]+)=([\d.]+)([KMGTPEZY]?)", tres):
        found[name] = float(number) * _scale(name, unit)
    return found


def _weights(text: str) -> dict[str, float]:
    weights = {}
    for item in text.split(",") if text not in ("", "(null)") else ():
        match = re.fullmatch(r"([^=/]+)(/[^=]+)?=([\d.]+)([KMGTPEZY]?)", item.strip())
        if match is None:
            raise InputError(f"PriorityWeightTRES of this Slurm has {item!r}, which is no weight")
        name = match[1].lower() + (match[2] or "")
        weights[name] = float(match[3]) / max(_scale(name, match[4]), 1.0)
    return weights


def _scale(name: str, unit: str) -> float:
    base = "M" if name == "mem" or name.startswith("bb/") else " "
    return 1024.0 ** (UNITS.index(unit or base) - UNITS.index(base))


def _number(told: Mapping[str, str], key: str) -> float:
    try:
        return float(told[key])
    except (KeyError, ValueError) as error:
        raise InputError(f"{key} of this Slurm is {told.get(key)!r}, not a number") from error


def _seconds(told: Mapping[str, str], key: str) -> float:
    match = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+):(\d+)", told.get(key, ""))
    if match is None:
        raise InputError(f"{key} of this Slurm is {told.get(key)!r}, not a time")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _flags(told: Mapping[str, str]) -> frozenset[str]:
    flags = set(filter(None, told.get("PriorityFlags", "").split(",")))
    if "NO_NORMAL_ALL" in flags:
        # scontrol prints the same for all four: only the file says which one is set.
        flags = flags - {"NO_NORMAL_ALL"} | _normal_flags(Path(told.get("SLURM_CONF", "")))
    if flags - FOLLOWED:
        raise InputError(f"by-priority cannot follow PriorityFlags={','.join(sorted(flags - FOLLOWED))}")
    return frozenset(flags)


def _normal_flags(conf: Path) -> frozenset[str]:
    try:
        text = conf.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(
            f"{conf}: {error.strerror}; it alone tells which NO_NORMAL flags there are"
        ) from error
    lines = re.findall(r"^[ \t]*PriorityFlags[ \t]*=[ \t]*(\S+)", text, re.MULTILINE | re.IGNORECASE)
    written = set(lines[-1].upper().split(",")) if lines else set()
    found = NORMAL if "NO_NORMAL_ALL" in written else NORMAL & written
    if not found:
        raise InputError(f"{conf}: has none of the NO_NORMAL flags that Slurm says are in PriorityFlags")
    return frozenset(found)


def _no_limits_of_ageing() -> None:
    shown = said("scontrol", "-o", "show", "assoc_mgr", "flags=assoc,qos")
    if match := re.search(r"\b\w+JobsAccrue\w*=\d+", shown):
        raise InputError(
            f"by-priority cannot follow {match[0]}: which of their held jobs age is not decided by Slurm"
        )
