"""TCP flows packet by packet reach the rates of `max-min` where the queues are fair."""

from packets import CASES, compare_packets


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
