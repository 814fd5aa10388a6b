"""The state that the filter and the weigher share, one per scheduler process."""

from __future__ import annotations

import functools
import threading
from typing import Any

import nova.conf
from oslo_log import log as logging

from topolane.nova import config, members
from topolane.nova.hints import PlacementHint
from topolane.nova.measured_reader import MeasuredReader
from topolane.nova.request import Request, open_request
from topolane.nova.shared_claims import SharedClaims
from topolane.nova.topologies import Topologies

LOG = logging.getLogger(__name__)


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
        self._lock = threading.Lock()

    def request(self, spec: Any) -> Request | PlacementHint | None:
        """The state of a request; only its hint, with the problem, if the hint is invalid.

        None if Nova decides alone: the request has no group or no hint, or there is no topology.
        """
        if not _has_group(spec):
            return None
        remembered = getattr(spec, "_topolane", None)
        if isinstance(remembered, Request):
            return remembered
        hint = members.hint_of_spec(spec, self.options.default_placement)
        if hint.problem is not None:
            return hint
        if hint.placement is None:
            return None
        context = spec._context.elevated()
        with self._lock:
            topology = self._topologies.now(context)
        if topology is None:
            return None
        # Every call to the scheduler has its own spec, so what is stored on it ends with the call.
        spec._topolane = open_request(
            spec, hint, topology, self.options, self._others, self._measured, self._shared
        )
        return spec._topolane  # type: ignore[no-any-return]


def _has_group(spec: Any) -> bool:
    return "instance_group" in spec and spec.instance_group is not None and "members" in spec.instance_group


@functools.cache
def plugin() -> Plugin:
    """The plugin of this process."""
    return Plugin()
