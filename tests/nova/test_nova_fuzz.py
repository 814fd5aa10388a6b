"""Odd request specs and hosts: the filter and the weigher answer, whatever they are asked."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from cloud_process import HOSTS, CloudProcess
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from placements import ours, tree, write

UUIDS = [str(uuid.uuid5(uuid.NAMESPACE_DNS, f"server{number}")) for number in range(8)]
WORDS = st.one_of(
    st.sampled_from(
        ["compact", "isolated", "spread", "none", "", "0", "-1", "3", "1e9", "profile", "../x", "\0"]
    ),
    st.text(max_size=8),
)
KEYS = st.sampled_from(["topolane:placement", "topolane:traffic", "topolane:size", "group", "topolane:"])
SPECS = st.sampled_from(["topolane:placement", "topolane:traffic", "resources:VCPU", "resources:MEMORY_MB"])
SIZES = st.sampled_from([0, -(2**31), -1, 1, 512, 2048, 8192, 2**31])
NAMES = st.one_of(st.sampled_from([*HOSTS[:12], ""]), st.text(max_size=4))
RATIOS = st.sampled_from([None, 0.0, 0.5, 1.0, 16.0])


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of the fields, all of them, none."""
    return st.fixed_dictionaries({}, optional=fields)


GROUPS = st.builds(
    lambda fields, always: always | fields,
    some(
        policy=st.sampled_from(
            ["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity", None, "odd"]
        ),
        rules=st.dictionaries(st.sampled_from(["max_server_per_host", "odd"]), WORDS, max_size=2),
    ),
    st.fixed_dictionaries(
        {
            "uuid": st.just(UUIDS[0]),
            "id": st.just(7),
            "members": st.lists(st.sampled_from(UUIDS), max_size=6),
            "hosts": st.lists(NAMES, max_size=5),
        }
    ),
)
FLAVORS = st.builds(
    lambda fields, always: always | fields,
    some(extra_specs=st.dictionaries(SPECS, WORDS, max_size=3)),
    st.fixed_dictionaries(dict.fromkeys(["memory_mb", "vcpus", "root_gb", "ephemeral_gb", "swap"], SIZES)),
)
REQUESTS = st.builds(
    lambda fields, flavor, group: {"flavor": flavor} | group | fields,
    some(
        num_instances=SIZES,
        is_bfv=st.booleans(),
        scheduler_hints=st.dictionaries(KEYS, st.lists(WORDS, max_size=2), max_size=3),
        instance_group=st.none(),
    ),
    FLAVORS,
    st.fixed_dictionaries({"instance_group": GROUPS}),
)
STATES = st.fixed_dictionaries(
    {"host": NAMES, "nodename": NAMES, "instances": st.lists(st.sampled_from(UUIDS), max_size=3)}
    | dict.fromkeys(["total_usable_ram_mb", "free_ram_mb", "total_usable_disk_gb", "free_disk_mb"], SIZES)
    | dict.fromkeys(["vcpus_total", "vcpus_used"], SIZES)
    | dict.fromkeys(["ram_allocation_ratio", "cpu_allocation_ratio", "disk_allocation_ratio"], RATIOS)
)


@pytest.fixture(scope="module")
def scheduler(running: CloudProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudProcess]:
    """A machine of which most of the hosts are, and all groups are to be compact.

    The servers of these requests never come. What was given to them is forgotten at the end.
    """
    file = tmp_path_factory.mktemp("fuzz") / "topology.conf"
    write(file, tree([HOSTS[start : start + 3] for start in range(0, 9, 3)], leaves_in_pod=2))
    running.schedule_by(ours(machine_file=str(file), default_placement="compact"))
    yield running
    running.forget_requests()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    spec=REQUESTS, states=st.lists(STATES, max_size=8), servers=st.lists(st.sampled_from(UUIDS), max_size=4)
)
def test_any_request_is_answered(
    scheduler: CloudProcess, spec: dict[str, Any], states: list[dict[str, Any]], servers: list[str]
) -> None:
    """No exception comes out, and none is caught on the way: that would be logged as a failure of ours."""
    before = len(scheduler.log("; all hosts "))
    chosen = scheduler.schedule(spec, states, servers)
    assert set(chosen) <= {state["host"] for state in states}
    assert scheduler.log("; all hosts ")[before:] == []
