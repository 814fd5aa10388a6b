"""Effects of other weighers and settings of the scheduler on Topolane's weigher."""

from __future__ import annotations

from typing import Any

from nova.scheduler import weights

VETO = 1e5
"""Multipliers of at least this value are vetoes, meant to outweigh everything: Nova uses 1e6 for failed
builds and cells.
"""


def warnings(conf: Any) -> list[str]:
    """Sentences about settings that undo packing."""
    options = conf.filter_scheduler
    found = []
    if options.host_subset_size > 1:
        found.append(
            f"[filter_scheduler] host_subset_size = {options.host_subset_size} draws among the best hosts at "
            "random: groups will be scattered unless it is 1."
        )
    if options.shuffle_best_same_weighed_hosts:
        found.append(
            "[filter_scheduler] shuffle_best_same_weighed_hosts mixes hosts that are equally good for a group: "
            "the order of the other weighers is lost there."
        )
    if len(options.weight_classes) == 1:
        found.append(
            "TopolaneWeigher stands alone in [filter_scheduler] weight_classes, a list with commas: Nova's own weighers are off."
        )
    if "TopolaneFilter" not in options.enabled_filters:
        found.append(
            "TopolaneFilter is not in [filter_scheduler] enabled_filters: isolated groups are not kept apart."
        )
    elif options.enabled_filters[-1] != "TopolaneFilter":
        found.append(
            "TopolaneFilter is not the last of [filter_scheduler] enabled_filters: it counts hosts that others take away."
        )
    return found


class RequiredMultiplier:
    """The multiplier above the sum of all other weighers, including multipliers in the metadata of
    aggregates.
    """

    def __init__(self, conf: Any) -> None:
        handler = weights.HostWeightHandler()
        classes = handler.get_matching_classes(conf.filter_scheduler.weight_classes)
        self._others = [cls() for cls in classes if not cls.__module__.startswith("topolane.")]
        self._most = [0.0] * len(self._others)
        self.value = 1.0
        """Slightly more than the sum of the largest multipliers seen, without vetoes. Nova reads it once for
        each host.
        """

    def observe(self, hosts: list[Any]) -> None:
        """Updates the value with the multipliers of these hosts, one host for each set of aggregates."""
        by_aggregates = {tuple(aggregate.id for aggregate in host.aggregates): host for host in hosts}
        for host in by_aggregates.values():
            for index, other in enumerate(self._others):
                self._most[index] = max(self._most[index], abs(other.weight_multiplier(host)))
        self.value = 1.0 + sum(most for most in self._most if most < VETO)
