"""Settings of the scheduler for Flux: the arguments of `flux module load`, and the options in a jobspec."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from topolane import _engine, sources
from topolane._engine import InputError
from topolane.policy import SEGMENTS, Policy, isolates, resolve

WORDS = ("machine", "policy", "queue", "min-bandwidth", "without-engine")
FLUX_WORDS = ("queue-depth", "log-level")
"""Arguments that Flux takes for all schedulers in Python."""
WITHOUT_ENGINE = ("stock", "wait")
"""The behaviour of jobs without the engine. `stock`: they start in order of priority on any free nodes.
`wait`: they wait.
"""
JOB_WORDS = ("min-bandwidth", "segment")


@dataclasses.dataclass(frozen=True)
class FluxSettings:
    """The arguments of `flux module load`."""

    machine: str | None = None
    """A machine file or a name; None to use the machine that Flux's resources describe."""
    policy: str = "isolated"
    queue: str = "easy"
    min_bandwidth: float | None = None
    """The default for the minimum share of full bandwidth that a job accepts on links of its own."""
    without_engine: str = "stock"
    """What happens to jobs of an isolating policy while the engine cannot answer: one of `WITHOUT_ENGINE`."""

    @classmethod
    def taken_from(cls, words: list[str]) -> FluxSettings:
        """Removes the scheduler's own arguments, such as `policy=dedicated`, from a list. Raises InputError
        for a wrong value.
        """
        given = {}
        for word in list(words):
            name, equals, value = word.partition("=")
            if name in WORDS and equals:
                words.remove(word)
                given[name] = value
        without = given.pop("without-engine", "stock")
        if without not in WITHOUT_ENGINE:
            raise InputError(f"without-engine={without}: it is {' or '.join(WITHOUT_ENGINE)}")
        share = given.pop("min-bandwidth", None)
        settings = cls(
            **given,
            min_bandwidth=None if share is None else _share("min-bandwidth", share),
            without_engine=without,
        )
        known = [name for name, _ in _engine.queues() if name not in ("recorded", "slurm")]
        if settings.queue not in known:
            raise InputError(f"queue={settings.queue}: there are {', '.join(known)}")
        if settings.resolved_policy() == "recorded":
            raise InputError("policy=recorded: there is no log here whose nodes it could follow")
        return settings

    def check_machine(self) -> None:
        """Raises InputError if the machine cannot be read."""
        if self.machine is not None:
            sources.tree(self.machine)

    def resolved_policy(self) -> str | Policy:
        """The policy. Raises InputError if there is none with that name."""
        return resolve(self.policy)

    def why_it_waits(self, words: JobWords) -> str | None:
        """Why a job must not start while the engine cannot answer; None if it may start on any free nodes."""
        if asked := words.promise:
            return f"it asks for {asked}, and Topolane's engine cannot answer"
        if self.without_engine == "wait" and isolates(self.policy):
            return f"policy {self.policy} keeps jobs apart, and Topolane's engine cannot answer"
        return None


@dataclasses.dataclass(frozen=True)
class JobWords:
    """A jobspec's options for this scheduler: its `attributes.system.topolane`."""

    min_bandwidth: float | None = None
    segment: int | None = None
    """The number of nodes in each part of the job that must lie in one domain."""

    @property
    def promise(self) -> str | None:
        """The option that only the engine can satisfy, if the job has one; otherwise None."""
        return next(
            (
                f"system.topolane.{name}"
                for name in JOB_WORDS
                if getattr(self, name.replace("-", "_")) is not None
            ),
            None,
        )

    @classmethod
    def of(cls, jobspec: Mapping[str, Any], settings: FluxSettings) -> JobWords:
        """The options in a jobspec.

        Raises InputError for an unknown option or one that the scheduler's policy does not support, because a
        job must not start without what it asks for.
        """
        said = ((jobspec.get("attributes") or {}).get("system") or {}).get("topolane")
        if said is None:
            return cls()
        where = "attributes.system.topolane"
        if not isinstance(said, Mapping):
            raise InputError(f"{where}: must be a table of {' and '.join(JOB_WORDS)}, not {_shown(said)}")
        for name in said:
            if name not in JOB_WORDS:
                raise InputError(f"{where}: {_shown(name)} is none of {', '.join(JOB_WORDS)}")
        share, segment = said.get("min-bandwidth"), said.get("segment")
        if segment is not None and not (type(segment) is int and 0 < segment < 1 << 32):
            raise InputError(f"{where}: segment is a number of nodes, not {_shown(segment)}")
        policy = settings.resolved_policy()
        if segment is not None and isinstance(policy, str) and policy not in SEGMENTS:
            raise InputError(
                f"{where}: policy {policy} keeps no segments, for which segment={segment} asks: load the scheduler with "
                f"policy={', '.join(SEGMENTS[:-1])} or {SEGMENTS[-1]}"
            )
        return cls(None if share is None else _share(f"{where}: min-bandwidth", share), segment)


def _share(what: str, value: object) -> float:
    try:
        share = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else 0.0
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise InputError(f"{what} is a share above 0 and up to 1, not {_shown(value)}")
    return share


def _shown(value: object) -> str:
    return repr(value)[:80]


def words_of(settings: FluxSettings) -> Sequence[str]:
    """The settings as arguments, for `flux module stats`."""
    return [
        f"policy={settings.policy}",
        f"queue={settings.queue}",
        f"machine={settings.machine or 'of the resources'}",
        f"without-engine={settings.without_engine}",
    ]
