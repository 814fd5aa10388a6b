"""Where a policy would place a job of Slurm, given the jobs that hold nodes: the question that the shadow asks. No Slurm runs here."""

from __future__ import annotations

import random
from typing import Any

import pytest
from room_records import TREE
from topolane import InputError
from topolane._engine import NoRoom
from topolane.cluster.answers import NoPlace, Placement
from topolane.cluster.hypothetical import Cost, Holder, Hypothetical, NodeSlots, Question
from topolane.cluster.view import ISOLATED, NONE, Running, View

EVERY = range(TREE.nodes)
JOB = 1000
"""The job that is asked about."""


def ask(
    asked: Hypothetical, nodes: int, eligible: range | list[int] = EVERY, share: int | None = None
) -> list[int]:
    """The nodes that the job would get; none if it would not start."""
    cores = None if share is None else {"cores": share}
    answer = asked.ask(Question(JOB, nodes, cores, eligible))
    return list(answer.nodes) if isinstance(answer, Placement) else []


def test_a_job_gets_free_nodes_in_service_that_it_may_use() -> None:
    """First-fit gives the lowest of them, so the answer is known. A question changes nothing, so each is asked twice; jobs come and end, and
    nodes go out of service and come back, at random.
    """
    draw, asked = random.Random(11), Hypothetical(TREE, "first-fit")
    held: dict[int, list[int]] = {}
    out: set[int] = set()
    for number in range(300):
        busy = {node for nodes in held.values() for node in nodes}
        free = [node for node in EVERY if node not in busy]
        if free and draw.random() < 0.5:
            held[number] = draw.sample(free, draw.randint(1, min(len(free), 6)))
            asked.hold(number, Holder(tuple(held[number])))
        elif held:
            ended = draw.choice(sorted(held))
            asked.end(ended)
            del held[ended]
        if draw.random() < 0.3:
            out = set(draw.sample(EVERY, draw.randint(0, 4)))
            asked.serve(out)
        assert (asked.jobs, asked.out) == (len(held), out)
        eligible = sorted(draw.sample(EVERY, 18))
        busy = {node for nodes in held.values() for node in nodes} | out
        could = [node for node in eligible if node not in busy]
        size = draw.randint(1, 8)
        wanted = could[:size] if len(could) >= size else []
        assert ask(asked, size, eligible) == wanted == ask(asked, size, eligible)


def test_nodes_that_are_full_already_count_once() -> None:
    """A job in the place of a suspended one holds nodes that are taken: no other job gets them while one of the two is there. It may
    hold more nodes than those, and they are not free either.
    """
    asked = Hypothetical(TREE, "first-fit")
    asked.hold(1, Holder((0, 1)))
    asked.hold(2, Holder((1, 2)))
    assert (ask(asked, 2), asked.jobs) == ([3, 4], 2)
    asked.end(1)
    assert (ask(asked, 2), ask(asked, 1, [1, 2])) == ([0, 3], [])
    asked.end(2)
    assert (ask(asked, 3), asked.jobs) == ([0, 1, 2], 0)
    asked.end(3)  # it never held any
    assert asked.jobs == 0


def test_jobs_that_share_nodes_leave_the_other_cores() -> None:
    asked = Hypothetical(TREE, "first-fit")
    cores = TREE.resources_of(0)["cores"]
    asked.hold(1, Holder((0,), share={"cores": cores - 1}))
    assert (ask(asked, 1, share=1), ask(asked, 1, share=2), ask(asked, 1)) == ([0], [1], [1])


def test_a_refusal_says_why() -> None:
    """Never, if there are fewer nodes than it asks for; not now, if too few are free; or that links would be shared. It does not wait here
    afterwards.
    """
    asked = Hypothetical(TREE, "isolated")
    never = asked.ask(Question(JOB, TREE.nodes + 1, None, EVERY))
    assert isinstance(never, NoPlace) and never.kind == "never"
    asked.hold(1, Holder((0,)))
    waits = asked.ask(Question(JOB, TREE.nodes, None, EVERY))
    assert isinstance(waits, NoPlace) and waits.kind == "not-now" and waits.why
    asked.end(1)
    assert len(ask(asked, TREE.nodes)) == TREE.nodes
    asked.hold(2, Holder((0, 6)))
    shares = asked.ask(Question(JOB, 2, None, [1, 7]))
    assert isinstance(shares, NoPlace) and shares.kind == "would-share-links"
    with pytest.raises(InputError, match="unknown policy 'none-such'"):
        Hypothetical(TREE, "none-such")


def test_links_of_its_own_are_the_jobs_until_it_ends() -> None:
    """Dedicated gives two jobs of nine nodes in one pod no common link. Links that another job owns already are not taken a second time,
    but the nodes are.
    """
    asked = Hypothetical(TREE, "dedicated")
    first = asked.ask(Question(1, 9, None, EVERY))
    assert isinstance(first, Placement) and first.links and first.bandwidth_share == 1.0
    asked.hold(1, Holder(tuple(first.nodes), first.links, first.bandwidth_share))
    second = asked.ask(Question(2, 9, None, EVERY))
    assert isinstance(second, Placement) and not set(second.links) & set(first.links)
    assert second.shares_with == 0 == asked.placed(1, first.nodes, first.links).shares_with
    others = [node for node in EVERY if node not in first.nodes][:9]
    asked.hold(3, Holder(tuple(others), first.links, first.bandwidth_share))
    assert not set(ask(asked, 6)) & {*first.nodes, *others}


def test_a_job_without_links_of_its_own_may_use_any() -> None:
    """One that Slurm's records give the links of another job: no job gets links of its own on leaves that it crosses."""
    asked, first = (
        Hypothetical(TREE, "dedicated"),
        Hypothetical(TREE, "dedicated").ask(Question(1, 2, None, [0, 6])),
    )
    assert isinstance(first, Placement) and first.links
    asked.hold(1, Holder(tuple(first.nodes), first.links))
    assert ask(asked, 2, [2, 8]) == [2, 8]
    asked.hold(2, Holder((1, 7), first.links))
    assert ask(asked, 2, [2, 8]) == []
    asked.end(2)
    assert ask(asked, 2, [2, 8]) == [2, 8]


def test_jobs_on_common_links_are_counted() -> None:
    """Both cross the uplinks of the first leaf of six nodes; the third lies inside another. The job itself is none of the others, and where
    it was before does not count."""
    asked = Hypothetical(TREE, "first-fit")
    asked.hold(1, Holder((0, 6)))
    asked.hold(2, Holder((1, 12)))
    asked.hold(3, Holder((18, 19)))
    found = asked.placed(4, [2, 7, 8])
    assert (found.shares_with, found.nodes, found.links, found.bandwidth_share) == (2, (2, 7, 8), (), 1.0)
    assert found.aph == pytest.approx((2 + 2 + 0) / 3), "two pairs on two leaves, one on a leaf"
    assert asked.placed(1, [0, 6]).shares_with == 1 and asked.placed(2, [20, 21]).shares_with == 0


@pytest.mark.parametrize(("least", "shares"), [(None, [1.0, 1.0]), (0.5, [0.5, 0.5, 0.5])])
def test_more_jobs_have_links_of_their_own_if_they_accept_less_bandwidth(
    least: float | None, shares: list[float]
) -> None:
    """Jobs with a node on each of the four leaves: two of them with full bandwidth, three with half of it."""
    asked, found = Hypothetical(TREE, "dedicated", least), []
    for job in range(6):
        answer = asked.ask(Question(job, 4, None, range(job, TREE.nodes, 6)))
        if isinstance(answer, Placement):
            assert answer.links
            found.append(answer.bandwidth_share)
            asked.hold(job, Holder(tuple(answer.nodes), answer.links, answer.bandwidth_share))
    assert found == shares


def job(number: int, *nodes: int, **given: Any) -> Running:
    """A running job of a view."""
    return Running(number, str(number), "", "", nodes, 0.0, None, **given)


def test_the_jobs_of_a_view_hold_what_they_hold() -> None:
    """Where the engine counts, they hold nodes, and closed nodes are not free. Where the system counts, they hold links only, and a job
    that may use any link holds none. Those that are gone hold nothing."""
    seen = View(0.0, (job(1, 0, 6, link_use=ISOLATED), job(2, 1, 7, link_use=NONE)), (), out=(2,))
    engine = Hypothetical.of(TREE, seen, "first-fit")
    assert (engine.jobs, engine.out, ask(engine, 3)) == (2, {2}, [3, 4, 5])
    assert ask(Hypothetical.of(TREE, seen, "first-fit", gone=[1]), 2) == [0, 3]
    free = tuple(int(node in (3, 9)) for node in EVERY)

    def place(view: View, *gone: int) -> bool:
        asked = Hypothetical.of(TREE, view, "isolated", counts_slots=True, gone=gone)
        return isinstance(asked.ask(Question(JOB, 2, slots=NodeSlots(free, free, stacked=False))), Placement)

    assert not place(seen) and place(seen, 1)
    assert place(View(0.0, (job(2, 1, 7, link_use=NONE),), ()))


def test_links_out_of_service_are_given_to_no_job() -> None:
    """Also not those of a job that owns one of them: it may use all links of its groups, as the engine cannot give it that one."""
    first = Hypothetical(TREE, "dedicated").ask(Question(1, 2, None, [0, 6]))
    assert isinstance(first, Placement) and first.links
    owner = job(1, 0, 6, links=tuple(first.links))
    free = tuple(int(node in (1, 7)) for node in EVERY)
    question = Question(JOB, 2, slots=NodeSlots(free, free, stacked=False))
    for out, fits in (((), True), (tuple(first.links[:1]), False)):
        seen = View(0.0, (owner,), (), links_out=out)
        assert bool(ask(Hypothetical.of(TREE, seen, "dedicated"), 2, [1, 7])) is fits
        answer = Hypothetical.of(TREE, seen, "dedicated", counts_slots=True).ask(question)
        assert isinstance(answer, Placement) is fits


def test_room_is_made_by_the_cheapest_jobs() -> None:
    """Jobs without a cost stay; so do jobs on nodes that others hold as well, whatever they cost."""
    seen = View(0.0, (job(1, *range(12)), job(2, *range(12, 24)), job(3, 12)), ())
    asked = Hypothetical.of(TREE, seen, "first-fit")

    def gone(**costs: float | None) -> list[int]:
        found = asked.make_room(Question(JOB, 6), {int(name[1:]): Cost(cost) for name, cost in costs.items()})
        return [] if isinstance(found, NoRoom) else found.requeued

    assert gone(j1=5.0, j2=4.0, j3=0.0) == [2]
    assert gone(j1=5.0, j2=None, j3=0.0) == [1]
    assert gone(j1=None, j2=None, j3=0.0) == []
