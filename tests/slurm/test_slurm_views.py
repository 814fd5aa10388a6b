"""What the view of Slurm holds, and what its readers cost with many jobs. No Slurm runs here."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rich.live
import topolane
from hypothesis import given, settings
from hypothesis import strategies as st
from plugin_files import waiting, write_jobs
from room_records import TREE, look_at, runs, waits
from topolane._engine import LinkUse, Machine
from topolane.cli import slurm_status
from topolane.cluster.families import Families
from topolane.cluster.hypothetical import Hypothetical
from topolane.cluster.links import CrossedGroup, Links
from topolane.cluster.view import Refused, Running, View, Waiting
from topolane.serve import slurm as served
from topolane.slurm import plugin_state
from topolane.slurm.explain import explain
from topolane.slurm.inspection import InspectionSettings, SlurmInspection
from topolane.slurm.links_out import LinksOut
from topolane.slurm.metrics import metrics
from topolane.slurm.records import Partition
from topolane.slurm.status import status
from topolane.slurm.view import view


def test_jobs_of_the_same_partitions_share_the_list_of_their_nodes(tmp_path: Path) -> None:
    """Thousands of tasks of an array may name two partitions of thousands of nodes each."""
    jobs = [waits(number, 1, partitions=("p", "q")) for number in (1, 2)]
    look = look_at(tmp_path, *jobs)
    assert look.snapshot is not None
    parts = {
        name: Partition(name, nodes, True, None) for name, nodes in (("p", "node[1-4]"), ("q", "node[3-8]"))
    }
    look = dataclasses.replace(look, snapshot=dataclasses.replace(look.snapshot, partitions=parts))
    one, other = view(look).waiting
    assert one.eligible == tuple(range(8)) and one.eligible is other.eligible


def test_a_refused_job_is_shown_with_the_nodes_that_the_plugin_looked_for(tmp_path: Path) -> None:
    """Of `-N 4-8` the plugin looks for 8. Others are shown with the fewest nodes that they take."""
    look = look_at(tmp_path, waits(1, 4, reason="Resources", most_nodes=8), waits(2, 4, reason="Resources"))
    write_jobs(tmp_path, f"machine machine.toml {TREE.nodes}", waiting(1, "isolated", "not-now", 8, "0-2"))
    found = status(dataclasses.replace(look, state=plugin_state.read(tmp_path)))
    shown = io.StringIO()
    rich.console.Console(file=shown, width=200).print(slurm_status._shown(found))
    rows = [line.split() for line in shown.getvalue().splitlines()]
    assert {row[0]: row[2] for row in rows if row[:1] in (["1"], ["2"])} == {"1": "8", "2": "4"}
    assert [row.size for row in found.waiting] == [8, 4]


def test_names_of_jobs_are_no_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--watch` shows them as they are: one user's name neither ends it nor looks like something else."""
    look = look_at(tmp_path, runs(1, "node[1-2]", 1, name="[/x]"), runs(2, "node3", 1, name="[red]job[/red]"))
    shown = Terminal()

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(slurm_status, "_look", lambda *_: status(look))
    monkeypatch.setattr(slurm_status.time, "sleep", stop)
    monkeypatch.setattr("sys.stdout", shown)
    for name, value in {"TERM": "xterm", "COLUMNS": "200", "LINES": "40"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(KeyboardInterrupt):
        slurm_status._live(InspectionSettings(), None, 1.0)
    assert "[/x]" in shown.getvalue() and "[red]job[/red]" in shown.getvalue()


def test_what_is_counted_for_all_jobs_does_not_grow_with_their_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On common links each job may meet all others. A row names a few; the figures ask whether there is one. With n jobs on
    the same links the others are looked at n times a few, not n times n.
    """
    looked: list[int] = []
    meant = CrossedGroup.others

    def others(group: CrossedGroup, job: int, owns: bool) -> Iterator[int]:
        for other in meant(group, job, owns):
            looked.append(other)
            yield other

    monkeypatch.setattr(CrossedGroup, "others", others)
    monkeypatch.setattr("topolane.cluster.status.MOST_MET", 2)
    crossing = [runs(number, f"node[{number},{number + 12}]", 1) for number in range(1, 7)]
    found = status(look_at(tmp_path, *crossing, policy="isolated"))
    assert [len(row.may_meet) for row in found.running] == [2] * 6
    # For each job: two names, met in each of its groups, and one more that is too many; and one for the figures.
    groups = 4
    assert len(looked) <= 6 * (2 * groups + 1 + 1) < 6 * 5 * groups
    looked.clear()
    samples = {one.name: one.samples for one in metrics(look_at(tmp_path, *crossing, policy="first-fit"))}
    assert samples["topolane_slurm_links_shared"][0].value > 0 and not looked
    assert {one.labels["state"]: one.value for one in samples["topolane_slurm_nodes"]}["busy"] == 12
    list(metrics(look_at(tmp_path, *crossing, policy="isolated")))
    assert len(looked) <= 2 * 6


def test_links_of_jobs_on_several_sites_are_counted() -> None:
    """Both jobs use the uplinks of a leaf and of a pod on each site; what joins sites is no cable."""
    ways = [[f"site{s}", f"pod{s}", f"leaf{s}{leaf}"] for s in range(2) for leaf in range(2)]
    machine = Machine.of("sites", [(way, [f"{way[2]}n{i}" for i in range(3)]) for way in ways])
    one, other = (
        Running(number, str(number), "", "", (number, 6 + number), 0.0, None) for number in range(2)
    )
    links = Links(machine, View(0.0, (one, other), ()))
    assert links.met(one) == ["1"] and links.shared() == 4


DOMAINS = topolane.machine("nvl72(units=2)")
"""Nodes of a rack are joined by NVLink as well: a job in one rack crosses nothing."""


@st.composite
def machines_with_jobs(draw: st.DrawFn) -> tuple[Machine, tuple[Running, ...]]:
    """A machine whose groups may have the same names, with or without domains, and jobs anywhere on it, some with own links."""
    ways = [["site", f"pod{p}", f"leaf{leaf}"] for p in range(3) for leaf in range(2)]
    small = Machine.of("small", [(way, [f"{'-'.join(way)}-{i}" for i in range(3)]) for way in ways])
    machine = draw(st.sampled_from([TREE, small, DOMAINS]))
    jobs = []
    for number in range(draw(st.integers(0, 7))):
        first = draw(st.integers(0, machine.nodes - 1))
        last = draw(st.sampled_from([min(first + 5, machine.nodes - 1), machine.nodes - 1]))
        nodes = draw(st.sets(st.integers(first, last), min_size=1, max_size=6))
        own = draw(st.sets(st.integers(0, machine.links - 1), max_size=2)) if machine.links else set()
        jobs.append(
            Running(number, f"j{number}", "", "", tuple(sorted(nodes)), 0.0, None, links=tuple(sorted(own)))
        )
    return machine, tuple(jobs)


@settings(max_examples=300, deadline=None)
@given(made=machines_with_jobs())
def test_users_of_links_are_those_of_the_engine(made: tuple[Machine, tuple[Running, ...]]) -> None:
    """The engine compares each job with each: for all jobs at once that is slow, and the answers are the same."""
    machine, jobs = made
    links = Links(machine, View(0.0, jobs, ()))
    use = LinkUse(machine, [(job.id, job.nodes, job.links) for job in jobs])
    assert links.shared() == use.shared
    for job in jobs:
        met = [(group, [f"j{other}" for other in others]) for group, others in use.meetings(job.id)]
        assert links.of(job) == met
        every = sorted({other for _, others in met for other in others})
        assert links.met(job) == every and len(links.met(job, 2)) == min(len(every), 2)
        assert set(links.met(job, 2)) <= set(every)


def test_jobs_and_refusals_have_one_writer() -> None:
    """Jobs by state and policy; of each kind of refusal how many, 0 for a kind that did not occur, and the longest wait. A job that
    may not begin yet does not wait.
    """
    runs = Running(1, "1", "", "", (0,), 0.0, None, policy="isolated")
    waits = [
        Waiting(
            *(number, str(number), "", "", 1, submit, None),
            begin=begin,
            refused=None if kind is None else Refused(kind, 1),
            policy=None,
        )
        for number, submit, begin, kind in (
            (2, 10.0, 0.0, "not-now"),
            (3, 0.0, 60.0, "not-now"),
            (4, 0.0, 0.0, None),
        )
    ]
    families = Families("slurm")
    found = [families.jobs([runs], waits), *families.refused(waits, ["never", "not-now"], 100.0)]
    values = {
        (sample.name.removeprefix("topolane_slurm_"), *sample.labels.values()): sample.value
        for family in found
        for sample in family.samples
    }
    assert values == {
        ("jobs", "running", "isolated"): 1,
        ("jobs", "waiting", "unknown"): 3,
        ("refused_jobs", "never"): 0,
        ("refused_jobs", "not-now"): 2,
        ("refused_wait_seconds", "never"): 0,
        ("refused_wait_seconds", "not-now"): 90,
    }


def test_jobs_are_named_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """Not in that of their starts, in which the table of running jobs has them."""
    crossing = [runs(number, f"node[{number},{number + 12}]", number) for number in range(1, 5)]
    look = look_at(tmp_path, *crossing)
    assert [job.name for job in view(look).running] == ["4", "3", "2", "1"]
    assert "On those of pod0 it may meet jobs 2, 3 and 4." in explain(look, "1").sentences
    found = status(look).sharing
    assert found is not None and found.isolated_sharing == ["1", "2", "3", "4"]


class Terminal(io.StringIO):
    """What is printed on a terminal."""

    def isatty(self) -> bool:
        return True


class Read(tuple[int, ...]):
    """Numbers that count how often someone goes through them."""

    times = 0

    def __iter__(self) -> Iterator[int]:
        type(self).times += 1
        return super().__iter__()

    def __contains__(self, item: Any) -> bool:
        return item in list(self)


@pytest.mark.parametrize("counts_slots", [False, True])
def test_a_question_goes_through_jobs_and_links_once(counts_slots: bool) -> None:
    """However many jobs run: explanations ask once for each job that could end."""
    jobs = tuple(Running(node, str(node), "", "", (node,), 0.0, None) for node in range(TREE.nodes))
    read = []
    for some in (jobs[:1], jobs):
        Read.times = 0
        seen = View(0.0, some, (), links_out=Read((0, 1)))
        Hypothetical.of(TREE, seen, "first-fit", counts_slots=counts_slots, gone=Read((2, 3)))
        read.append(Read.times)
    assert read[0] == read[1] > 0


def test_the_page_does_not_read_links_of_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin may have another machine after a restart of slurmctld. Its numbers of links mean nothing on the page then, which says
    so."""
    now = [look_of(tmp_path, 1)]
    monkeypatch.setattr(served, "inspect", lambda _: now[0])
    page = served.SlurmSource(InspectionSettings(), None, None, 1.0)
    before = page.now()
    assert before.links_out == (3,) and not before.problems
    now[0] = dataclasses.replace(look_of(tmp_path, 2), out=LinksOut(frozenset({10**6})))
    after = page.now()
    assert after.links_out == () and [job.name for job in after.running] == ["1"]
    assert after.problems == ("The plugin has another machine than when the page started: start it again.",)


def look_of(state: Path, machine_sum: int) -> SlurmInspection:
    """A job, and a link that is out of service on the machine with this checksum."""
    look = look_at(state, runs(1, "node[1-2]", 1))
    write_jobs(state, f"machine machine.toml {TREE.nodes}", f"machine-sum {machine_sum:016x}")
    return dataclasses.replace(look, state=plugin_state.read(state), out=LinksOut(frozenset({3})))
