"""Groups of 16 on 4 leaves of 18 hosts: stock Nova and Topolane on the same sequence of requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from cloud_process import LEAVES, CloudProcess
from placements import COMPACT, STOCK, hops, leaves, ours, tree

TREE = tree(LEAVES, leaves_in_pod=2)


class Story(NamedTuple):
    """Hosts of servers by request, in order; every VM fills a host."""

    first: list[str]
    """A group of 16."""
    second: list[str]
    """Another of 17, so that a lone VM would fit its leaf best."""
    growth: list[str]
    """One more of the first."""


def booted(cloud: CloudProcess) -> Story:
    one, two = cloud.group("one"), cloud.group("two")
    asked = [(16, one), (17, two), (1, one)]
    return Story(*(list(cloud.boot(count, group, hints=COMPACT).values()) for count, group in asked))


@pytest.fixture(scope="module")
def stock(running: CloudProcess) -> Iterator[Story]:
    running.schedule_by(STOCK)
    yield booted(running)
    running.clear()


@pytest.fixture(scope="module")
def story(running: CloudProcess, stock: Story) -> Iterator[Story]:
    running.clear()
    running.schedule_by(ours())
    yield booted(running)
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
    assert len(set(story.second)) == 17
    assert len(leaves(TREE, story.second)) == 1
    assert leaves(TREE, story.second) != leaves(TREE, story.first)


def test_a_group_grows_on_its_leaf(story: Story) -> None:
    """Though the other group's leaf, with one free host, is the better fit for one VM."""
    assert leaves(TREE, story.growth) == leaves(TREE, story.first)


def test_the_groups_have_no_hops_where_stock_nova_gives_them_hundreds(stock: Story, story: Story) -> None:
    for seen, holds in ((stock, lambda hops: hops > 100), (story, lambda hops: hops == 0)):
        for group in ([*seen.first, *seen.growth], seen.second):
            assert holds(hops(TREE, group))
