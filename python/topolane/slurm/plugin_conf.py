"""topolane.conf as far as commands need it: which line gives a job its policy, and how long a call may take.

The plugin checks the file (native/slurm/plugin/config.c); here a line that is not understood is passed over.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from topolane import texts
from topolane._engine import InputError
from topolane.slurm.records import Job

MOST_BYTES = 1 << 20
CALL_TIME = 0.002
"""Seconds of processor time that a call of the engine may take, unless the file says otherwise."""


@dataclasses.dataclass(frozen=True)
class Rule:
    """A line that gives jobs a policy."""

    line: int
    policy: str
    partitions: frozenset[str]
    """In small letters; empty for any."""
    qos: frozenset[str]
    accounts: frozenset[str]
    min_bandwidth: float = 1.0
    """The least share of full bandwidth that its jobs accept on links of their own."""

    def fits(self, job: Job) -> bool | None:
        """Whether it is the rule of a job. None if that depends on which of its partitions it gets."""
        named = [not self.partitions or name.lower() in self.partitions for name in job.partitions]
        if self.qos and job.qos.lower() not in self.qos:
            return False
        if not any(named) or (self.accounts and job.account.lower() not in self.accounts):
            return False
        return True if all(named) else None


@dataclasses.dataclass(frozen=True)
class PluginConf:
    """What topolane.conf says."""

    path: Path
    rules: tuple[Rule, ...]
    call_time: float
    """Seconds."""
    engine: Path | None = None
    """The engine's library."""

    def policy(self, job: Job) -> tuple[str, int] | None:
        """The policy of a job and the line that gives it, 0 if no line fits: then stock Slurm decides. None if that depends
        on which of its partitions the job gets.
        """
        rule = next((rule for rule in self.rules if rule.fits(job) is not False), None)
        if rule is None:
            return "stock", 0
        return (rule.policy, rule.line) if rule.fits(job) else None

    def min_bandwidth(self, job: Job) -> float:
        """The least share of full bandwidth that the job accepts on links of its own, by the line that gives its policy."""
        return next((rule.min_bandwidth for rule in self.rules if rule.fits(job) is not False), 1.0)


def read(path: Path) -> PluginConf:
    """Reads the file. Raises InputError if that cannot be done."""
    rules, call_time, engine = [], CALL_TIME, None
    content = texts.decoded(texts.read_bytes(path, MOST_BYTES), str(path))
    for number, line in enumerate(content.split("\n"), 1):
        words = [word.partition("=") for word in line.partition("#")[0].split()]
        given = {key.lower(): value for key, _, value in words}
        if "calltime" in given:
            call_time = _seconds(given["calltime"], path, number)
        if given.get("engine"):
            engine = Path(given["engine"])
        if "policy" in given:
            partitions, qos, accounts = (
                frozenset(filter(None, given.get(key, "").lower().split(",")))
                for key in ("partition", "qos", "account")
            )
            share = _share(given.get("minbandwidth"))
            rules.append(Rule(number, given["policy"], partitions, qos, accounts, share))
    return PluginConf(path, tuple(rules), call_time, engine)


def _share(word: str | None) -> float:
    try:
        share = 1.0 if word is None else float(word)
    except ValueError:
        return 1.0
    return share if 0 < share <= 1 else 1.0


def _seconds(word: str, path: Path, line: int) -> float:
    try:
        return float(word) / 1e6
    except ValueError:
        raise InputError(
            f"{path} line {line}: CallTime is {texts.shown(word)}, not a number of microseconds"
        ) from None
