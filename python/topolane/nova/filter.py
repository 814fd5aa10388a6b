"""`TopolaneFilter`: excludes full hosts, and hosts where a group would use links dedicated to another group."""

from __future__ import annotations

from typing import Any

import nova.conf
import numpy as np
from nova.exception import NoValidHost
from nova.scheduler import filters
from nova.scheduler import utils as scheduler_utils
from oslo_log import log as logging

from topolane.nova.hints import PlacementHint
from topolane.nova.plugin import plugin
from topolane.nova.request import NovaRequest
from topolane.nova.unanswered import Unanswered

LOG = logging.getLogger(__name__)


class TopolaneFilter(filters.BaseHostFilter):  # type: ignore[misc]
    """Passes the hosts that the policy of the server's group may use. Passes all hosts if the server has no
    placement hint.

    It must be the last of `enabled_filters`, so that the weigher sees the same hosts.
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
        except Unanswered as error:
            why, reason = str(error), error.reason
        except Exception:
            why = reason = "an error in Topolane"
            LOG.exception("Topolane's filter failed.")
        return _without_answer(hosts, spec_obj, why, reason)

    @staticmethod
    def _passing(hosts: list[Any], spec: Any) -> list[Any]:
        if scheduler_utils.request_is_rebuild(spec):
            return hosts
        request = plugin().request(spec)
        if request is None:
            return hosts
        if isinstance(request, PlacementHint):
            LOG.error("Server %s is placed nowhere: %s", spec.instance_uuid, request.problem)
            plugin().refusals.add("invalid-hint")
            return []
        if request.problem is not None:
            raise Unanswered(request.problem)
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
                # This is the request's last server: no later call could detect that Nova chose another host.
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
            # A host outside the topology uses no link that is known to be dedicated.
            may |= asked.nodes < 0
        return [host for host, passes in zip(hosts, (may & (asked.slots > 0)).tolist()) if passes]


def _without_answer(hosts: list[Any], spec: Any, why: str, reason: str) -> list[Any]:
    """The hosts to pass after an error: all of them, so that Nova goes on without this filter.

    Raises NoValidHost with a reason for the user if the request asks for isolation. This is possible only
    before a server of the request has a host: after a later exception Nova would not release the server's
    allocations in Placement.
    """
    request = getattr(spec, "_topolane", None)
    try:
        waits = plugin().must_wait(spec)
    except Exception:
        LOG.exception("What server %s asks for cannot be read.", spec.instance_uuid)
        waits = False
    if not waits:
        LOG.warning("Server %s is left to Nova: %s", spec.instance_uuid, why)
        plugin().leave_to_nova(spec)
        return hosts
    if isinstance(request, NovaRequest) and request.is_complete:
        return []  # Nova asks only for alternate hosts; the server has its host.
    LOG.error(
        "Server %s asks for isolation, which cannot be decided, and is placed nowhere: %s",
        spec.instance_uuid,
        why,
    )
    plugin().refusals.add("unanswered")
    if isinstance(request, NovaRequest) and request.has_given:
        return []
    raise NoValidHost(
        reason=f"Isolation of this server group cannot be promised now ({reason}). Request it again later."
    )


def _refuse(request: NovaRequest, spec: Any, kind: str, words: str, why: str | None) -> None:
    """Logs and counts a refusal, except if Nova asks only for alternate hosts."""
    level = logging.DEBUG if request.for_alternates else logging.WARNING
    LOG.log(level, f"Server %s {words}", spec.instance_uuid, why)
    if not request.for_alternates:
        plugin().refusals.add(kind)
