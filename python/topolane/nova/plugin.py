"""What the filter and the weigher share: one per scheduler process."""

from __future__ import annotations

import functools
import threading
from typing import Any

import nova.conf
from oslo_log import log as logging

from topolane.nova import config, members
from topolane.nova.request import Request, open_request
from topolane.nova.topologies import Topologies
from topolane.nova.wishes import Wish

LOG = logging.getLogger(__name__)


class Plugin:
    """Options, topology and the requests under way."""

    def __init__(self) -> None:
        config.register(nova.conf.CONF)
        self.options = nova.conf.CONF.topolane
        self._topologies = Topologies(self.options)
        self._others = members.Others()
        self._lock = threading.Lock()

    def request(self, spec: Any) -> Request | Wish | None:
        """What is known of a request; its wish alone where that cannot be met, with the problem said.

        None for a request that is to be left to Nova: no group, no wish, or no topology.
        """
        if not _has_group(spec):
            return None
        remembered = getattr(spec, "_topolane", None)
        if isinstance(remembered, Request):
            return remembered
        wish = members.wish_of_spec(spec, self.options.default_placement)
        if wish.problem is not None:
            return wish
        if wish.placement is None:
            return None
        context = spec._context.elevated()
        with self._lock:
            topology = self._topologies.now(context)
        if topology is None:
            return None
        # A spec is made anew for every call to the scheduler, so what hangs on it dies with the call.
        spec._topolane = open_request(spec, wish, topology, self.options, self._others)
        return spec._topolane  # type: ignore[no-any-return]


def _has_group(spec: Any) -> bool:
    return "instance_group" in spec and spec.instance_group is not None and "members" in spec.instance_group


@functools.cache
def plugin() -> Plugin:
    """The process's own."""
    return Plugin()
