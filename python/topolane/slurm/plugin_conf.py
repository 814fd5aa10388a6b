"""The parts of topolane.conf that commands need: the line that gives a job its policy, and the time limit of
a call.

The plugin checks the file (native/slurm/plugin/config.c); lines that are not understood here are ignored.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from topolane import texts
from topolane._engine import InputError
from topolane.slurm.records import SlurmJob

MOST_BYTES = 1 << 20
CALL_TIME = 0.002
"""The default limit of a call of the engine, in seconds of processor time."""


@dataclasses.dataclass(frozen=True)
class PolicyRule:
    """A line that gives jobs a policy."""

    line: int
    policy: str
    partitions: frozenset[str]
    """Names in lower case; empty for any partition."""
    qos: frozenset[str]
    accounts: frozenset[str]
    min_bandwidth: float = 1.0
    """The minimum share of full bandwidth that its jobs accept on links of their own."""

    def fits(self, job: SlurmJob) -> bool | None:
        """Whether the line applies to a job; None if that depends on which of its partitions the job gets."""
        named = [not self.partitions or name.lower() in self.partitions for name in job.partitions]
        if self.qos and job.qos.lower() not in self.qos:
            return False
        if not any(named) or (self.accounts and job.account.lower() not in self.accounts):
            return False
        return True if all(named) else None


@dataclasses.dataclass(frozen=True)
class PluginConf:
    """The content of topolane.conf."""

    path: Path
    rules: tuple[PolicyRule, ...]
    call_time: float
    """The limit of a call of the engine, in seconds."""
    engine: Path | None = None
    """The path of the engine's library."""

    def policy(self, job: SlurmJob) -> tuple[str, int] | None:
        """The policy of a job and the line that gives it; line 0 if no line applies, so that stock Slurm
        decides. None if the policy depends on which of its partitions the job gets.
        """
        rule = next((rule for rule in self.rules if rule.fits(job) is not False), None)
        if rule is None:
            return "stock", 0
        return (rule.policy, rule.line) if rule.fits(job) else None

    def min_bandwidth(self, job: SlurmJob) -> float:
        """The minimum share of full bandwidth that the job accepts on links of its own, from the line that
        gives its policy.
        """
        return next((rule.min_bandwidth for rule in self.rules if rule.fits(job) is not False), 1.0)


def read(path: Path) -> PluginConf:
    """Reads topolane.conf. Raises InputError if it cannot be read."""
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
            rules.append(PolicyRule(number, given["policy"], partitions, qos, accounts, share))
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
