"""The state that the filter and the weigher share, one per scheduler process."""

from __future__ import annotations

import functools
import threading
import uuid
from typing import Any

import nova.conf
from nova import context as nova_context
from nova import objects
from oslo_log import log as logging

from topolane.nova import config, members
from topolane.nova.hints import PlacementHint
from topolane.nova.measured_reader import MeasuredReader
from topolane.nova.refusals import RefusalCounts
from topolane.nova.request import NovaRequest, open_request
from topolane.nova.shared_claims import SharedClaims
from topolane.nova.topologies import Topologies
from topolane.nova.unanswered import Unanswered

LOG = logging.getLogger(__name__)

LEFT_TO_NOVA = object()
"""Marks a request that Nova decides alone because Topolane cannot."""


class Plugin:
    """Options, topology and current requests."""

    def __init__(self) -> None:
        config.register(nova.conf.CONF)
        self.options = nova.conf.CONF.topolane
        self._topologies = Topologies(self.options)
        self._others = members.OtherGroups()
        self._measured = MeasuredReader(self.options)
        self._measured.start()
        self._shared = SharedClaims(self.options.share_claims)
        self._shared.prepare(nova_context.get_admin_context())
        self.refusals = RefusalCounts()
        self._lock = threading.Lock()

    def request(self, spec: Any) -> NovaRequest | PlacementHint | None:
        """The state of a request, or only its hint if the hint is invalid.

        None if Nova decides alone: the request has no hint, or is for one server without a group, or there is
        no topology. Raises Unanswered if the group must be isolated and Topolane cannot decide.
        """
        # Nova makes a new spec for every call to the scheduler, so what is stored on it ends with the call.
        remembered = getattr(spec, "_topolane", None)
        if remembered is LEFT_TO_NOVA:
            return None
        if isinstance(remembered, NovaRequest):
            return remembered
        grouped = _has_group(spec)
        hint = members.hint_of_spec(spec, self.options.default_placement if grouped else "none")
        if not grouped:
            if hint.problem is None and hint.placement is None:
                return None
            hint = _without_group(spec, hint)
        if hint.problem is not None:
            return hint
        if hint.placement is None:
            return None
        context = spec._context.elevated()
        with self._lock:
            topology = self._topologies.now(context)
        if topology is None:
            if hint.placement == "isolated":
                raise Unanswered("the network is not described")
            return None
        if not grouped:
            # This group exists only in this process. Nova adds the hosts that it gives, as it does for any
            # group.
            spec.instance_group = objects.InstanceGroup(
                uuid=str(uuid.uuid4()), members=[], hosts=[], policy=None, policies=[]
            )
        spec._topolane = open_request(
            spec, hint, topology, self.options, self._others, self._measured, self._shared
        )
        return spec._topolane  # type: ignore[no-any-return]

    def must_wait(self, spec: Any) -> bool:
        """Whether to refuse a request that cannot be decided: true if it asks for isolation itself. If
        isolation comes only from the operator's default, the option `unanswered` decides.
        """
        grouped = _has_group(spec)
        if not grouped and not _has_several(spec):
            return False
        if members.hint_of_spec(spec, "none").placement == "isolated":
            return True
        default = self.options.default_placement if grouped else "none"
        return (
            self.options.unanswered == "refuse"
            and members.hint_of_spec(spec, default).placement == "isolated"
        )

    @staticmethod
    def leave_to_nova(spec: Any) -> None:
        """Leaves the rest of this request to Nova."""
        spec._topolane = LEFT_TO_NOVA


def _has_group(spec: Any) -> bool:
    return "instance_group" in spec and spec.instance_group is not None and "members" in spec.instance_group


def _has_several(spec: Any) -> bool:
    return "num_instances" in spec and spec.num_instances > 1


def _without_group(spec: Any, hint: PlacementHint) -> PlacementHint:
    """The hint for a request whose servers are in no server group. Several servers of one request are placed
    as a group.
    """
    if hint.problem is not None:
        return hint
    # The spec of a moving server still has the server count of its original request.
    if not _has_several(spec) or members.known_servers(spec._context.elevated(), [spec.instance_uuid]):
        LOG.info(
            "Server %s asks for topolane:placement=%s without a server group: Nova places it alone.",
            spec.instance_uuid,
            hint.placement,
        )
        return PlacementHint(None)
    if hint.placement == "isolated":
        return PlacementHint(
            None, problem="isolated servers need a server group, whose links are kept as long as it exists"
        )
    return hint


@functools.cache
def plugin() -> Plugin:
    """The plugin of this process."""
    return Plugin()
