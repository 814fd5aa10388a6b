"""PodDisruptionBudgets: how many pods may be evicted now."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from topolane import untrusted
from topolane._engine import InputError
from topolane.kubernetes.client import KubernetesCluster
from topolane.kubernetes.fit import holds
from topolane.kubernetes.objects import Json, Pod

BUDGETS = "/apis/policy/v1/poddisruptionbudgets"


@dataclasses.dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget."""

    name: str
    """NAMESPACE/NAME."""
    selector: Json | None
    """Its pods in its namespace: all with an empty selector, none without one."""
    allowed: int
    """How many more of its pods may be evicted now."""
    disrupted: frozenset[str]
    """Names of pods that are counted as evicted already."""

    @staticmethod
    def of(item: Json) -> Budget:
        """A budget of the API."""
        meta, status = item["metadata"], item.get("status") or {}
        allowed: Any = status.get("disruptionsAllowed")
        return Budget(
            f"{meta['namespace']}/{meta['name']}",
            (item.get("spec") or {}).get("selector"),
            max(allowed, 0) if isinstance(allowed, int) else 0,
            frozenset(status.get("disruptedPods") or ()),
        )

    def covers(self, pod: Pod) -> bool:
        """Whether it limits the evictions of a pod."""
        if self.selector is None or self.name.partition("/")[0] != pod.namespace:
            return False
        wanted: Mapping[str, str] = self.selector.get("matchLabels") or {}
        if any(pod.labels.get(key) != value for key, value in wanted.items()):
            return False
        return all(holds(one, pod.labels) for one in self.selector.get("matchExpressions") or [])

    def counts(self, pods: Sequence[Pod]) -> int:
        """How much of it the eviction of these pods uses up."""
        return sum(self.covers(pod) and pod.name not in self.disrupted for pod in pods)


def budgets(cluster: KubernetesCluster) -> tuple[Budget, ...]:
    """All budgets of a cluster. Raises InputError."""
    problems: list[str] = []
    found = tuple(untrusted.each(Budget.of, cluster.items(BUDGETS), "disruption budget", problems))
    if problems:
        # A budget that is passed over would protect nothing.
        raise InputError(problems[0].rstrip("."))
    return found
