"""Measures a decision of Nova's scheduler in Topolane's filter and weigher, and in Nova's own weighers."""

from __future__ import annotations

import itertools
import random
import time
import warnings
from typing import Any

from measure import BenchError, Options, Row

HOSTS_PER_LEAF = 18
LEAVES_PER_POD = 18
PODS = 4


def weighing(options: Options) -> list[Row]:
    """Figures for one instance, and for a group of 64, on 1,296 hosts that all have room."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hosts = _hosts()
        ours, stock = _handlers()
    runs = 3 if options.quick else 25
    rows = []
    for what, size, limit, repeats in (
        ("one instance", 1, 5.0, runs),
        ("group of 64", 64, 200.0, 3 if options.quick else 7),
    ):
        times = [_timed(ours, stock, hosts, size, seed) for seed in range(repeats)]
        own, around, theirs = zip(*times)
        rows += [
            _row(f"{what}: our filter and weigher", limit, own),
            _row(f"{what}: the same with what Nova does around a weigher", None, around),
            _row(f"{what}: Nova's own weighers, likewise", None, theirs),
        ]
    return rows


def _row(what: str, limit: float | None, values: tuple[float, ...]) -> Row:
    return Row("weighing", f"1,296 hosts, {what}", "ms CPU", values, limit)


def _hosts() -> list[Any]:
    from nova.scheduler.host_manager import HostState

    hosts = []
    for number in range(HOSTS_PER_LEAF * LEAVES_PER_POD * PODS):
        host = HostState(f"host{number}", f"host{number}", "cell")
        host.total_usable_ram_mb = host.free_ram_mb = 65_536
        host.total_usable_disk_gb, host.free_disk_mb = 1_000, 1_000 * 1024
        host.vcpus_total = 16
        host.ram_allocation_ratio = host.cpu_allocation_ratio = host.disk_allocation_ratio = 1.0
        host.metrics = []
        hosts.append(host)
    return hosts


def _handlers() -> tuple[tuple[Any, Any], list[Any]]:
    """Topolane's filter and weigher, and the weighers of Nova that are on by default."""
    import nova.conf
    from nova.scheduler import weights

    nova.conf.CONF([], project="nova", default_config_files=[])
    from topolane.nova.filter import TopolaneFilter
    from topolane.nova.weigher import TopolaneWeigher

    classes = weights.HostWeightHandler().get_matching_classes(nova.conf.CONF.filter_scheduler.weight_classes)
    return (TopolaneFilter(), TopolaneWeigher()), [cls() for cls in classes]


def _timed(
    ours: tuple[Any, Any], stock: list[Any], hosts: list[Any], size: int, seed: int
) -> tuple[float, float, float]:
    """CPU milliseconds of a whole request: Topolane's part alone, Topolane's part as Nova runs it, and Nova's
    own weighers on the same lists.
    """
    from nova.scheduler import weights

    draw = random.Random(seed)
    for host in hosts:
        host.vcpus_used, host.num_instances, host.instances = 0, 0, {}
        host.num_io_ops, host.failed_builds = draw.randrange(4), 0
    members, remaining = hosts[:8], hosts[8:]
    spec = _request(size, hosts, members)
    handler = weights.HostWeightHandler()
    filtering, weigher = ours
    own = around = theirs = 0.0
    for index in range(size):
        spec.instance_uuid = f"server{index}"
        moments = [time.thread_time()]
        remaining = filtering.filter_all(remaining, spec)
        moments.append(time.thread_time())
        if getattr(spec._topolane, "_answer", None) is None:
            raise BenchError("the filter logged an error and let Nova choose: there is nothing to measure")
        best = handler.get_weighed_objects([weigher], remaining, spec)[0].obj
        moments.append(time.thread_time())
        handler.get_weighed_objects(stock, remaining, spec)
        moments.append(time.thread_time())
        weighed = [handler.object_class(host, 0.0) for host in remaining]
        moments.append(time.thread_time())
        weigher.weigh_objects(weighed, spec)
        moments.append(time.thread_time())
        filtered, ran, stocks, _, alone = (after - before for before, after in itertools.pairwise(moments))
        own += filtered + alone
        around += filtered + ran
        theirs += stocks
        best.vcpus_used = best.vcpus_total
        spec.instance_group.hosts.append(best.host)
    return own * 1e3, around * 1e3, theirs * 1e3


def _request(size: int, hosts: list[Any], members: list[Any]) -> Any:
    """A request for a compact group with eight running members, in the plugin's state after the databases
    have answered.
    """
    from nova import context, objects
    from topolane.nova.group_placement import GroupPlacement
    from topolane.nova.request import NovaRequest
    from topolane.nova.topology import Aggregate, from_aggregates

    objects.register_all()
    by_leaf = [hosts[start : start + HOSTS_PER_LEAF] for start in range(0, len(hosts), HOSTS_PER_LEAF)]
    topology, _ = from_aggregates(
        Aggregate(
            f"leaf{leaf}",
            [host.host for host in within],
            {"topolane:leaf": f"leaf{leaf}", "topolane:pod": f"pod{leaf // LEAVES_PER_POD}"},
        )
        for leaf, within in enumerate(by_leaf)
    )
    assert topology is not None
    flavor = objects.Flavor(memory_mb=65_536, vcpus=16, root_gb=0, ephemeral_gb=0, swap=0, extra_specs={})
    group = objects.InstanceGroup(
        uuid="group", policy="anti-affinity", members=[], hosts=[host.host for host in members]
    )
    spec = objects.RequestSpec(
        context.get_admin_context(),
        flavor=flavor,
        instance_group=group,
        num_instances=size,
        is_bfv=False,
        scheduler_hints={},
        requested_resources=[],
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
    )
    nodes = [topology.node_of[host.host] for host in members]
    placing = GroupPlacement(topology, "hop-bytes-exact", stacked=False, members=nodes, awaiting=size)
    spec._topolane = NovaRequest(placing, spec, moves=False)
    return spec
