"""The configuration of the plugin: the line that gives a job its policy, and the time limit of a call.

Only the plugin reads topolane.conf (native/slurm/plugin/config.c). It publishes what it read: see plugin_state.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from topolane.slurm.records import SlurmJob


@dataclasses.dataclass(frozen=True)
class PolicyRule:
    """A line that gives jobs a policy."""

    line: int
    policy: str
    min_bandwidth: float = 1.0
    """The minimum share of full bandwidth that its jobs accept on links of their own."""
    partitions: frozenset[str] | None = None
    """Names in lower case; None for any partition."""
    qos: frozenset[str] | None = None
    accounts: frozenset[str] | None = None

    def fits(self, job: SlurmJob) -> bool | None:
        """Whether the line applies to a job; None if that depends on which of its partitions the job gets."""
        named = [self.partitions is None or name.lower() in self.partitions for name in job.partitions]
        if self.qos is not None and job.qos.lower() not in self.qos:
            return False
        if not any(named) or (self.accounts is not None and job.account.lower() not in self.accounts):
            return False
        return True if all(named) else None


@dataclasses.dataclass(frozen=True)
class PluginConf:
    """The configuration that slurmctld uses."""

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
