"""TCP flows packet by packet reach the rates of `max-min` where the queues are fair, and jobs share links."""

import pytest
from packets import CASES, compare_packets
from speedups import packet_times
from topolane._engine import Traffic


def test_two_flows_over_one_link_under_ns3(compiled):
    """x + y = the link, x = y: within 5 % with fair queues, and the link is full."""
    row = compare_packets(compiled("ns3_bulk"), CASES[0], "fair", seconds=0.5)
    assert row.flows == 2
    assert row.largest < 0.05
    assert abs(row.total - 1) < 0.05


def test_a_flow_takes_what_others_leave_under_ns3(compiled):
    """Five flows to one node, a fifth of its link each; the sender of one of them has a second flow, which
    takes the other four fifths of its own link."""
    row = compare_packets(compiled("ns3_bulk"), CASES[1], "fair", seconds=0.5)
    assert row.flows == 6
    assert row.largest < 0.1


@pytest.mark.parametrize("queues", ["fair", "shared"])
def test_a_job_that_shares_a_link_takes_twice_as_long_under_ns3(compiled, queues):
    """Two jobs send from one leaf to another under `d-mod-k`. Nodes 8 and 16 are reached by one cable upwards, so both
    take twice their time alone; nodes 8 and 9 are not, and neither is slowed. The tail of a message, which
    travels alone, is a tenth of its time at most."""
    programs, message = compiled("ns3_bulk"), Traffic.of(2, [0], [1], [65536.0])
    [alone] = packet_times(programs, queues, [([0, 8], message)])
    meeting = packet_times(programs, queues, [([0, 8], message), ([1, 16], message)])
    apart = packet_times(programs, queues, [([0, 8], message), ([1, 9], message)])
    assert meeting / alone == pytest.approx([2, 2], rel=0.2)
    assert apart / alone == pytest.approx([1, 1], rel=0.02)
