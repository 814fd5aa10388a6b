"""Groups of 16 on 4 leaves of 18 hosts: stock Nova and Topolane on the same sequence of requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from cloud_process import LEAVES, CloudProcess
from placements import COMPACT, STOCK, hops, leaves, ours, pods, tree

TREE = tree(LEAVES, leaves_in_pod=2)


class Story(NamedTuple):
    """Hosts of servers by request, in order; every VM fills a host."""

    first: list[str]
    """A group of 16."""
    second: list[str]
    """Another of 16."""
    growth: list[str]
    """Two more of the first, which makes 18."""
    beyond: list[str]
    """And two more, when its leaf is full."""


def told(cloud: CloudProcess) -> Story:
    one, two = cloud.group("one"), cloud.group("two")
    asked = [(16, one), (16, two), (2, one), (2, one)]
    return Story(*(list(cloud.boot(count, group, hints=COMPACT).values()) for count, group in asked))


@pytest.fixture(scope="module")
def stock(running: CloudProcess) -> Iterator[Story]:
    running.schedule_by(STOCK)
    yield told(running)
    running.clear()


@pytest.fixture(scope="module")
def story(running: CloudProcess, stock: Story) -> Iterator[Story]:
    running.clear()
    running.schedule_by(ours())
    yield told(running)
    running.clear()


def test_stock_nova_spreads_each_group_over_leaves(stock: Story) -> None:
    """All hosts are alike to its weighers: a group lies as the list of hosts comes from the database."""
    for group in (stock.first, stock.second):
        assert len(leaves(TREE, group)) > 1
        assert hops(TREE, group) > 0


def test_a_group_asked_for_at_once_lands_on_one_leaf(story: Story) -> None:
    assert len(set(story.first)) == 16
    assert len(leaves(TREE, story.first)) == 1


def test_a_second_group_lands_on_another_leaf(story: Story) -> None:
    assert len(leaves(TREE, story.second)) == 1
    assert leaves(TREE, story.second) != leaves(TREE, story.first)


def test_a_group_grows_on_its_leaf(story: Story) -> None:
    """And fills it, though other leaves are empty."""
    assert leaves(TREE, story.growth) == leaves(TREE, story.first)


def test_beyond_a_full_leaf_a_group_stays_in_its_pod(story: Story) -> None:
    """All its members are on hosts that are full and no longer in the scheduler's list."""
    assert len(leaves(TREE, story.beyond)) == 1
    assert leaves(TREE, story.beyond) != leaves(TREE, story.first)
    assert pods(TREE, story.beyond) == pods(TREE, story.first)


def test_the_groups_have_fewer_hops_than_stock_nova_gives_them(stock: Story, story: Story) -> None:
    """The second group has none; the first has 2 for each of the 18 x 2 pairs across two leaves of a pod."""
    assert hops(TREE, story.second) == 0
    whole = [*story.first, *story.growth, *story.beyond]
    assert hops(TREE, whole) == 2 * 18 * 2
    assert hops(TREE, [*stock.first, *stock.growth, *stock.beyond]) > 4 * hops(TREE, whole)
