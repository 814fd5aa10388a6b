"""`max-min` gives flows the rates that SimGrid gives them over the same explicit ways."""

import numpy as np
import pytest
from cases import ROUTINGS, SHAPES, Shape, Ways, flow_set
from rates import compare_jobs, compare_rates, simgrid


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_rates_are_simgrids(compiled, shape, routing):
    """Every rate of random flow sets differs by at most 1e-6 of itself; 9 x 36 sets in all."""
    row = compare_rates(compiled("simgrid_rates"), shape, routing, sets=9, seed=len(shape.name))
    assert row.flows >= row.sets
    assert row.difference <= 1e-6


def test_simgrid_solves_what_can_be_solved_by_hand(compiled):
    """Two leaves of two nodes under one cable each of half a node's bandwidth B = 2 u. Both nodes of leaf 0
    send to leaf 1: x + y = u, half each. Node 2 sends to node 3, where y ends: z + y = 2 u, z = 3/2 u."""
    unit = 1e9
    shape = Shape("two", (2, 2), (1, 1), (1, 1), (2 * unit, unit))
    ways = Ways(shape.machine().routing("d-mod-k", 0))
    flows = [(0, 2), (1, 3), (2, 3)]
    ways.add(flows)
    expected = [0.5 * unit, 0.5 * unit, 1.5 * unit]
    [answer] = simgrid(compiled("simgrid_rates"), ways, [flows])
    assert answer.rates == pytest.approx(expected, rel=1e-9)
    assert ways.rates(flows) == pytest.approx(expected, rel=1e-9)


def test_the_sets_need_max_min():
    """A solver that gave each flow the least even share of its channels would not pass: in the sets compared
    many flows get more than that, for others on their channels are held elsewhere."""
    machine = SHAPES[5].machine()
    ways = Ways(machine.routing("d-mod-k", 0))
    rng = np.random.default_rng(1)
    more = flows_in_all = 0
    for _ in range(9):
        flows = flow_set(rng, machine.nodes)
        ways.add(flows)
        load = np.zeros(len(ways.channels))
        for pair in flows:
            load[ways.of[pair]] += 1
        even = ways.capacity() / np.maximum(load, 1)
        naive = np.array([even[ways.of[pair]].min() for pair in flows])
        rates = ways.rates(flows)
        assert (rates >= naive * (1 - 1e-9)).all()
        more += int((rates > naive * 1.01).sum())
        flows_in_all += len(flows)
    assert more > flows_in_all / 10


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("shape", SHAPES[2:6], ids=lambda shape: shape.name)
def test_rates_of_jobs_are_simgrids(compiled, shape, routing):
    """The model `max-min` gives the flows of jobs that run together, weighted by their part of what their node
    sends, the rates that SimGrid gives flows whose latencies are the inverses of these weights."""
    row = compare_jobs(compiled("simgrid_rates"), shape, routing, sets=1, seed=len(shape.name))
    assert row.difference <= 1e-6
