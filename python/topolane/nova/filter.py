"""`TopolaneFilter`: excludes full hosts, and hosts where a group would use links dedicated to another group."""

from __future__ import annotations

from typing import Any

import nova.conf
import numpy as np
from nova.scheduler import filters
from nova.scheduler import utils as scheduler_utils
from oslo_log import log as logging

from topolane.nova.hints import PlacementHint
from topolane.nova.plugin import NO_TOPOLOGY, plugin
from topolane.nova.request import Request

LOG = logging.getLogger(__name__)


class TopolaneFilter(filters.BaseHostFilter):  # type: ignore[misc]
    """Passes the hosts that the policy of the server's group may use; all hosts for a server without a
    placement hint.

    It must come last in `enabled_filters`, so that the weigher sees the same hosts.
    """

    def __init__(self) -> None:
        plugin()
        if "topolane.nova.weigher.TopolaneWeigher" not in nova.conf.CONF.filter_scheduler.weight_classes:
            LOG.warning("TopolaneWeigher is not in [filter_scheduler] weight_classes: groups are not packed.")

    def filter_all(self, filter_obj_list: Any, spec_obj: Any) -> list[Any]:
        """The hosts that pass."""
        hosts = list(filter_obj_list)
        try:
            return self._passing(hosts, spec_obj)
        except Exception:
            # After any error, Nova must go on without this filter. Its own choice would break the promise of an isolated group.
            if self._isolates(spec_obj):
                LOG.exception(
                    "Topolane's filter failed; isolated server %s is placed nowhere.", spec_obj.instance_uuid
                )
                plugin().refusals.add("unable")
                return []
            LOG.exception("Topolane's filter failed; all hosts pass.")
            return hosts

    @staticmethod
    def _isolates(spec: Any) -> bool:
        try:
            return plugin().isolates(spec)
        except Exception:
            LOG.exception("Topolane cannot read what a server asks for.")
            return False

    @staticmethod
    def _passing(hosts: list[Any], spec: Any) -> list[Any]:
        if scheduler_utils.request_is_rebuild(spec):
            return hosts
        request = plugin().request(spec)
        if request is None:
            return hosts
        if isinstance(request, PlacementHint):
            LOG.error("Server %s is placed nowhere: %s", spec.instance_uuid, request.problem)
            plugin().refusals.add("unable" if request.problem == NO_TOPOLOGY else "invalid-hint")
            return []
        asked = request.ask(hosts)
        costs = asked.answer.costs
        if asked.problem is not None:
            _refuse(request, spec, "no-identical-host", "finds no identical host: %s", asked.problem)
            return []
        if costs is not None:
            may = np.isfinite(np.where(asked.nodes >= 0, costs[asked.nodes], np.inf))
            if asked.planned is not None:
                may |= np.isfinite(np.where(asked.nodes >= 0, asked.planned[asked.nodes], np.inf))
            if asked.only is not None:
                # Nothing comes after this server that could find out whether the host was another one.
                may = asked.nodes == asked.only
        elif request.isolates or (asked.answer.shares and not request.moves):
            what = "of its own" if request.isolates else "that are not dedicated to another group"
            words = f"finds no links {what}: %s"
            _refuse(request, spec, asked.answer.kind, words, asked.answer.refusal)
            return []
        else:
            level = logging.DEBUG if request.for_alternates else logging.INFO
            LOG.log(level, "Server %s is left to Nova: %s", spec.instance_uuid, asked.answer.refusal)
            may = np.ones(len(hosts), dtype=bool)
        if not request.isolates:
            # A host that the topology does not know crosses no link that is known to be dedicated.
            may |= asked.nodes < 0
        return [host for host, passes in zip(hosts, (may & (asked.slots > 0)).tolist()) if passes]


def _refuse(request: Request, spec: Any, kind: str, words: str, why: str | None) -> None:
    """Logs and counts a refusal. If only alternates are missing, the server has a host."""
    level = logging.DEBUG if request.for_alternates else logging.WARNING
    LOG.log(level, f"Server %s {words}", spec.instance_uuid, why)
    if not request.for_alternates:
        plugin().refusals.add(kind)
