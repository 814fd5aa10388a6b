"""Where a server is taken to be between the scheduler's choice and the moment when a cell has it there."""

from __future__ import annotations

import pytest

pytest.importorskip("nova", reason="the extra nova-test is not installed")

from nova import objects
from nova_specs import host_state, request_spec
from topolane._engine import Machine
from topolane.nova import members, request
from topolane.nova.concurrent_requests import ConcurrentRequests
from topolane.nova.group_placement import GroupPlacement
from topolane.nova.topology import Topology


def member(host: str | None, busy: bool) -> members.GroupMember:
    return members.GroupMember("server", host, None, 0, busy)


def test_a_server_that_is_built_is_on_the_host_it_was_given() -> None:
    """Whether no cell knows it yet, or one does and it waits for its compute; not when it has failed there."""
    flight = members.InFlightHosts()
    flight.note("server", "host1", None)
    assert flight.host("server", None) == "host1"
    assert flight.host("server", member(None, busy=True)) == "host1"
    assert flight.host("server", member(None, busy=False)) is None
    assert flight.host("another", None) is None


def test_a_server_that_moves_is_on_both_hosts_until_it_has_moved() -> None:
    """What a cell says counts once it is elsewhere than where it came from, or Nova has done with it."""
    members.IN_FLIGHT.note("moving", "target", "source")
    where = {
        ("source", True): ["source", "target"],
        ("source", False): ["source"],
        ("target", True): ["target"],
        ("elsewhere", True): ["elsewhere"],
    }
    for (host, busy), hosts in where.items():
        assert members.hosts_of("moving", member(host, busy)) == hosts


def test_what_was_given_long_ago_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    flight = members.InFlightHosts()
    flight.note("server", "host1", None)
    now = members.time.monotonic()
    monkeypatch.setattr(members.time, "monotonic", lambda: now + members.UNKNOWN_SECONDS + 1)
    assert flight.host("server", None) is None
    assert flight.host("server", member(None, busy=True)) == "host1"
    monkeypatch.setattr(members.time, "monotonic", lambda: now + members.BUSY_SECONDS + 1)
    assert flight.host("server", member(None, busy=True)) is None


def test_a_host_counts_as_given_once_it_is_known_to_be_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the filter and the weigher as well.

    A request that is opened then takes what others have given as known from the databases or from here.
    """
    monkeypatch.setattr(request, "CONCURRENT", concurrent := ConcurrentRequests())
    hosts = [f"h{leaf}.{place}" for leaf in range(2) for place in range(2)]
    machine = Machine.of("toy", [([f"leaf{leaf}"], hosts[2 * leaf : 2 * leaf + 2]) for leaf in range(2)])
    objects.register_all()
    spec = request_spec(
        {
            "instance_uuid": "first",
            "flavor": {"vcpus": 1, "memory_mb": 1, "root_gb": 0, "ephemeral_gb": 0, "swap": 0},
            "instance_group": {
                "uuid": "group",
                "members": ["first", "second"],
                "hosts": [],
                "policy": "affinity",
            },
        }
    )
    placement = GroupPlacement(Topology.of(machine), "isolated-hop-bytes", True, [], 2)
    asking = request.NovaRequest(placement, spec, moves=False, asked=2)
    asking.ask([host_state({"host": host, "nodename": host, "instances": []}) for host in hosts])
    (entry,) = concurrent.others(None, {})
    assert entry.given == [members.IN_FLIGHT.host("first", None)]
