"""Request specs and host states of Nova from plain values, straight into the filter and the weigher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova import context, objects, weights
from nova.scheduler import host_manager
from topolane.nova.filter import TopolaneFilter
from topolane.nova.weigher import TopolaneWeigher


def host_state(wanted: Mapping[str, Any]) -> host_manager.HostState:
    state = host_manager.HostState(wanted["host"], wanted["nodename"], None)
    for name in wanted.keys() - {"host", "nodename", "instances"}:
        setattr(state, name, wanted[name])
    state.instances = {uuid: objects.Instance(uuid=uuid) for uuid in wanted["instances"]}
    return state


def request_spec(wanted: Mapping[str, Any]) -> objects.RequestSpec:
    """Fields that are not wanted stay unset, as they are in specs of older releases."""
    fields = dict(wanted)
    fields["flavor"] = objects.Flavor(**wanted["flavor"])
    if fields.get("instance_group") is not None:
        fields["instance_group"] = objects.InstanceGroup(**wanted["instance_group"])
    return objects.RequestSpec(context.get_admin_context(), **fields)


def schedule(
    spec: Mapping[str, Any], hosts: Sequence[Mapping[str, Any]], servers: Sequence[str]
) -> list[str]:
    """The hosts that servers get one after another, as the scheduler would ask for them; one may fail to."""
    spec, left = request_spec(spec), [host_state(host) for host in hosts]
    plugin_filter, weigher = TopolaneFilter(), TopolaneWeigher()
    chosen = []
    for server in servers:
        spec.instance_uuid = server
        left = list(plugin_filter.filter_all(left, spec))
        if not left:
            break
        weighed = weigher.weigh_objects([weights.WeighedObject(host, 0.0) for host in left], spec)
        assert len(weighed) == len(left)
        best = left[weighed.index(max(weighed))]
        chosen.append(best.host)
        if "instance_group" in spec and spec.instance_group is not None:
            spec.instance_group.hosts.append(best.host)
        best.instances[server] = objects.Instance(uuid=server)
    return chosen
