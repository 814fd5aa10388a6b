"""The floor plan: GPUs as cells, and what the links know of domains."""

from __future__ import annotations

import itertools
import random

import polars
import pytest
import topolane
from gpu_runs import gpu_run, racks
from schedules import finish
from topolane import _engine
from topolane.moment import MOVE_COLUMNS, running_at
from topolane.report import MachinePicture, Subtree, write_report
from topolane.report.figures import racks as figure
from topolane.report.gpus import common_moment, gpu_state, racks_of, smallest
from topolane.report.holders import held_by
from topolane.report.rack_boxes import boxes
from topolane.report.rack_layout import TALLEST, WIDTH, lay_out
from topolane.report.style import IDLE, LOCAL, MUTED
from topolane.report.svg import to_svg

ONE = "cores=8;memory=100;gpu=1"
MIXED = (
    ("0-3", "", ""),  # whole nodes of two racks
    ("4 6", "0-1|2-3", "cores=8;memory=100;gpu=2"),
    ("4", "2", ONE),
    ("7", "0", "cores=4;memory=50;gpu=0.25"),
    ("7", "0", "cores=4;memory=50;gpu:T4=0.5"),  # of a type
)


def cells_of(run, picture: MachinePicture):
    """The state, and by gid the area of what is drawn, in cells."""
    state = gpu_state(run, picture, 0.0)
    layout = lay_out(state.racks, picture)
    wide, high = layout.cell
    gap = min(0.3, 0.06 * wide)
    areas: dict[str, float] = {}
    for gid, _, shapes in boxes(layout, state, state.jobs):
        for left, right, low, high_y in shapes:
            whole = (right - left) % wide > 1e-6  # boxes of whole GPUs stand back from their cells
            back = 2 * gap if whole else 0.0
            area = (right - left + back) / wide * (high_y - low + back) / high
            areas[gid] = areas.get(gid, 0.0) + area
    return state, areas


def test_every_gpu_of_a_job_is_a_cell_of_its_colour():
    """Whole nodes with all GPUs, the GPUs that a job has of a node, and parts of one: each job has as many cells as GPUs."""
    state, areas = cells_of(gpu_run(*MIXED), racks())
    assert state.jobs == {1: 16.0, 2: 4.0, 3: 1.0, 4: 0.25, 5: 0.5}
    assert areas == pytest.approx({f"job-{job}": gpus for job, gpus in state.jobs.items()})
    assert [(gpu.node, gpu.index) for of_node in state.gpus for gpu in of_node if any(j == 2 for j, _ in gpu.holders)] == [
        (4, 0), (4, 1), (6, 2), (6, 3),
    ]  # fmt: skip


def test_parts_of_a_gpu_stand_on_each_other():
    """From the bottom of the cell up, none over another."""
    state = gpu_state(gpu_run(*MIXED), racks(), 0.0)
    layout = lay_out(state.racks, racks())
    found = {gid: shapes for gid, _, shapes in boxes(layout, state, state.jobs)}
    (low,), (high,) = found["job-4"], found["job-5"]
    drawn = figure.floor_plan(racks(), state).axes[0].items
    (lines,) = (shape.lines for shape in drawn if shape.gid == "parts")
    assert {y for line in lines for _, y in line} == {low[2], high[2]}  # a line parts one from the next
    assert low[:2] == high[:2] and low[2] == pytest.approx(high[3]) and low[3] > high[3]


def test_cells_add_up_to_the_gpus_of_the_machine():
    picture, run = racks(), gpu_run(*MIXED)
    plot = figure.draw(run, picture, 0.0, 1)
    state = gpu_state(run, picture, 0.0)
    wide, high = lay_out(state.racks, picture).cell
    areas = [
        (right - left) * (high_y - low)
        for shape in plot.figure.axes[0].items
        if (shape.gid or "").startswith("rack-") and shape.fill == IDLE
        for (left, low), _, (right, high_y), _ in shape.lines
    ]
    assert sum(areas) / (wide * high) == pytest.approx(36.0)
    assert sum(state.jobs.values()) + state.total("free") == 36.0
    assert "21.75 of 36 GPUs in use by 5 jobs; 14.25 free" in plot.words


@pytest.mark.parametrize("seed", range(20))
def test_free_and_stranded_gpus_are_those_that_the_engine_counts(seed):
    """On random states: free GPUs, and those that the smallest job cannot use, are what `topolane room` says."""
    machine = topolane.machine("nvl72(units=1)")
    picture, draw = MachinePicture.of(machine), random.Random(seed)
    state, held = _engine.State(machine), []
    least = {"cores": 30.0, "memory": 2.0 ** draw.choice((34, 38)), "gpu": draw.choice((0.25, 1.0, 2.0))}
    for node in draw.sample(range(machine.nodes), 60):
        free = [0, 1, 2, 3]
        for job in range(draw.randint(1, 3)):
            gpus = 0.5 if draw.random() < 0.3 else draw.randint(1, 2)
            if len(free) < gpus:
                break
            own = [free.pop(0) for _ in range(max(1, int(gpus)))]
            share = {
                "cores": draw.choice((10, 30, 60)),
                "memory": draw.choice((2**34, 2**38, 3 * 2**37)),
                "gpu": gpus,
            }
            try:
                state.hold([node], share, id=node * 10 + job)
            except _engine.InputError:
                break
            taken = ";".join(f"{name}={count}" for name, count in share.items())
            held.append((str(node), ",".join(map(str, own)), taken))
            if gpus == 0.5:  # the engine gives the next part of a GPU from the one that is cut already
                break
    run = gpu_run(*held, nodes=machine.nodes)
    found = gpu_state_with(run, picture, least)
    room = state.room(
        [1],
        None,
        {name: value if name == "gpu" and value < 1 else int(value) for name, value in least.items()},
    )
    assert found.total("free") == pytest.approx(room["free"])
    assert found.total("stranded") == pytest.approx(sum(room["stranded"].values()))


def gpu_state_with(run, picture, least):
    """The state in which the smallest job is this one."""
    from topolane.report.gpus import state_of

    return state_of(running_at(0.0, run.jobs), picture, 0.0, frozenset(), least)


def test_the_smallest_job_has_the_least_of_each_resource():
    assert smallest(gpu_run(*MIXED).jobs) == {"cores": 4.0, "memory": 50.0, "gpu": 0.25}
    assert smallest(gpu_run(("0-3", "", "")).jobs) == {}


def test_colours_are_for_jobs_in_several_domains():
    """Grey inside one domain; on a machine of one domain, grey on one node."""
    state, _ = cells_of(gpu_run(*MIXED), racks())
    assert {job for job, colour in state.colour.items() if colour == LOCAL} == {3, 4, 5}
    assert state.places[1] == [0, 1] and state.split == {2}
    one, _ = cells_of(gpu_run(("0-1", "", ""), ("2", "", ""), nodes=3), racks(1))
    assert one.colour[1] != LOCAL and one.colour[2] == LOCAL


def test_a_failed_node_is_drawn_as_failed_while_it_lasts():
    failures = polars.DataFrame({"node": [8, 5, 4], "from": [0.0, 10.0, 0.0], "until": ["", "20", "0.5"]})
    run = gpu_run(("0", "", ""), failures=failures)
    for time, failed in ((0.0, {8, 4}), (10.0, {8, 5}), (599.0, {8})):
        state = gpu_state(run, racks(), time)
        assert {gpu.node for of_node in state.gpus for gpu in of_node if gpu.failed} == failed
    layout = lay_out(state.racks, racks())
    assert [(gid, colour) for gid, colour, _ in boxes(layout, state, ())][-1] == ("failed", MUTED)
    assert state.total("free") == 36 - 4 - 4 and "4 on nodes that have failed" in figure.facts(racks(), state)


def test_a_job_that_moved_has_its_gpus_where_it_was_then():
    moves = polars.DataFrame([(1, 100.0, "0-1", "4-5", 5.0)], schema=[*MOVE_COLUMNS], orient="row")
    run = gpu_run(("4-5", "0|1", ONE), moves=moves)
    for time, nodes in ((0.0, {0, 1}), (100.0, {4, 5})):
        gpus = gpu_state(run, racks(), time).gpus
        assert {gpu.node for of_node in gpus for gpu in of_node if gpu.holders} == nodes


def test_racks_are_domains_and_what_is_left_of_leaves():
    """Nodes in no domain stand by leaf, and every node stands in one rack."""
    levels = [[Subtree("a", 0, 4), Subtree("b", 4, 6)], [Subtree("all", 0, 6)]]
    picture = MachinePicture(6, levels, [("d", [1, 4])], [{"gpu": 1}] * 6)
    assert [(rack.name, list(rack.nodes)) for rack in racks_of(picture)] == [
        ("a", [0, 2, 3]),
        ("d", [1, 4]),
        ("b", [5]),
    ]


@pytest.mark.parametrize(
    ("count", "nodes", "gpus"), [(1, 18, 4), (8, 18, 4), (280, 18, 4), (1, 1500, 8), (2000, 18, 4)]
)
def test_every_node_has_its_place_on_the_plan(count, nodes, gpus):
    """No two nodes overlap, all lie on the figure; leaves of many nodes are cut into columns."""
    picture = racks(count, nodes, gpus=gpus)
    layout = lay_out(racks_of(picture), picture)
    assert sorted(node for column in layout.columns for node in column.nodes) == list(range(count * nodes))
    wide, high = layout.cell
    places = [(c.x, c.x + c.gpus * wide, c.y, c.y + len(c.nodes) * high) for c in layout.columns]
    assert all(left >= 0 and right <= WIDTH + 1e-6 and bottom <= TALLEST for left, right, _, bottom in places)
    lines = itertools.groupby(
        sorted(places, key=lambda place: (place[2], place[0])), key=lambda place: place[2]
    )
    below = 0.0
    for top, line in lines:
        on_line = list(line)
        assert top >= below
        assert all(one[1] < other[0] for one, other in itertools.pairwise(on_line))
        below = max(place[3] for place in on_line)


def test_a_large_machine_has_a_small_file():
    """80,000 GPUs with 20,000 jobs are less than 1 MB: small jobs of one colour are drawn together."""
    picture = racks(1111, 18)
    run = gpu_run(*[(str(node), "", "") for node in range(1111 * 18)], nodes=1111 * 18)
    assert len(to_svg(figure.draw(run, picture, 0.0, 1).figure)) < 1e6


def test_machines_without_gpus_have_no_floor_plan(tmp_path):
    bare = MachinePicture.tree((3, 3))
    text = write_report(tmp_path, [finish("run", gpu_run(("0", "", "")).jobs, 9, 3, {})], bare).read_text(
        "utf-8"
    )
    assert "GPU" not in text and not list(tmp_path.glob("figures/racks*"))


def test_all_runs_show_the_minute_at_which_the_emptiest_is_fullest():
    def run(*busy):
        table = polars.DataFrame({"time": [60.0 * n for n in range(len(busy))], "busy_nodes": list(busy)})
        return type("Run", (), {"utilization": table})

    assert common_moment([run(9, 2, 5, 5), run(1, 9, 4, 6, 9)]) == 180.0
    assert common_moment([run(1, 3, 2)]) == 60.0


def test_holders_of_links_know_domains():
    """A job inside one domain crosses nothing, even over several leaves; one that leaves it crosses as without domains."""
    levels = [[Subtree(str(leaf), 2 * leaf, 2 * leaf + 2) for leaf in range(4)], [Subtree("all", 0, 8)]]
    inside, beyond = {1: [(0, 4)]}, {1: [(0, 5)]}
    plain = MachinePicture(8, levels)
    with_domain = MachinePicture(8, levels, [("d", range(4))])
    assert held_by(inside, plain, 0.0).crossing[0] == [[1], [1], [], []]
    assert held_by(inside, with_domain, 0.0).crossing[0] == [[], [], [], []]
    assert held_by(beyond, with_domain, 0.0).crossing == held_by(beyond, plain, 0.0).crossing
    assert held_by({1: [(4, 8)]}, with_domain, 0.0).crossing[0] == [[], [], [1], [1]]  # nodes in no domain
