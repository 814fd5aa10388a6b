"""`TopolaneWeigher`: prefers the hosts on which the server's group has the least hop-bytes."""

from __future__ import annotations

from typing import Any

import nova.conf
from nova.scheduler import utils as scheduler_utils
from nova.scheduler import weights
from oslo_log import log as logging

from topolane.nova import multiplier
from topolane.nova.plugin import plugin
from topolane.nova.request import NovaRequest

LOG = logging.getLogger(__name__)


class TopolaneWeigher(weights.BaseHostWeigher):  # type: ignore[misc]
    """Weighs hosts by their cost under the group's policy. Without a placement hint, all hosts weigh the
    same.
    """

    def __init__(self) -> None:
        self._options = plugin().options
        for warning in multiplier.warnings(nova.conf.CONF):
            LOG.warning("%s", warning)
        self._required = multiplier.RequiredMultiplier(nova.conf.CONF)
        self._balanced = self._options.weight_multiplier is not None
        if not self._balanced:
            # Nova scales weights to (w - minval) / (maxval - minval). These limits leave the weights
            # unchanged: whole numbers at least 1 apart, so a multiplier above the sum of all others cannot be
            # outweighed.
            self.minval, self.maxval = 0.0, 1.0

    def weight_multiplier(self, host_state: Any) -> float:
        """The configured multiplier, which aggregates may override; by default, one that no other weigher can
        outweigh.
        """
        if not self._balanced:
            return self._required.value
        value: float = scheduler_utils.get_weight_multiplier(
            host_state, "topolane_weight_multiplier", self._options.weight_multiplier
        )
        return value

    def weigh_objects(self, weighed_obj_list: Any, weight_properties: Any) -> list[float]:
        """The weight of every host."""
        hosts = [weighed.obj for weighed in weighed_obj_list]
        try:
            return self._weights(hosts, weight_properties)
        except Exception:
            # After any error Nova must go on without this weigher. The filter then decides about the
            # request's next server.
            LOG.exception("Topolane's weigher failed; all hosts weigh alike.")
            request = getattr(weight_properties, "_topolane", None)
            if isinstance(request, NovaRequest):
                request.problem = "an error in Topolane"
            return [0.0] * len(hosts)

    def _weights(self, hosts: list[Any], spec: Any) -> list[float]:
        alike = [0.0] * len(hosts)
        request = None if scheduler_utils.request_is_rebuild(spec) else plugin().request(spec)
        if not isinstance(request, NovaRequest):
            return alike
        asked = request.ask(hosts)
        costs = asked.answer.costs if asked.planned is None else asked.planned
        if costs is None:
            return alike
        if request.is_new and not self._balanced:
            self._required.observe(hosts)
        request.is_new = False
        weights = request.weights(costs, asked.nodes, self._balanced)
        request.expect(hosts[weights.index(max(weights))].host)
        return weights

    def _weigh_object(self, obj: Any, weight_properties: Any) -> float:
        """Not used, because hosts are weighed together."""
        raise NotImplementedError
