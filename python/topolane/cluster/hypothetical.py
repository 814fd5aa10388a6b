"""A hypothetical placement: where a policy would place a job now, given the jobs that really hold nodes.

Shadows, the repetition of their logs, explanations and plans ask here, for all systems, so that they ask alike.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from topolane import texts
from topolane._engine import (
    Decision,
    InputError,
    LinkUse,
    Machine,
    NoRoom,
    Refusal,
    RoomPlan,
    State,
    check_live,
)
from topolane._engine import make_room as engine_room
from topolane.cluster.answers import NoPlace, Placement, no_place
from topolane.cluster.view import ISOLATED, SHARED, UNKNOWN, View
from topolane.policy import Policy, built_in


@dataclasses.dataclass(frozen=True)
class NodeSlots:
    """The number of slots of a job that each node of the machine takes, by the node's number."""

    free: tuple[int, ...]
    """Now."""
    room: tuple[int, ...]
    """If nothing ran there."""
    stacked: bool = True
    """Whether a node may take several."""


@dataclasses.dataclass(frozen=True)
class Holder:
    """A job on its nodes."""

    nodes: tuple[int, ...]
    """Once per slot."""
    links: tuple[int, ...] = ()
    """Links that only this job may use."""
    bandwidth_share: float = 1.0
    """Its share of full bandwidth on these links."""
    link_use: str = SHARED
    """How it uses links: `view.ISOLATED` and so on. Read where the system counts the slots."""
    share: Mapping[str, float] | None = None
    """What it takes of each node; None for whole nodes. Read where the engine counts what is free."""
    is_beyond: bool = False
    """Whether it has nodes that the machine lacks. Read where the system counts the slots."""


@dataclasses.dataclass(frozen=True)
class Question:
    """What a job asks for."""

    job: int
    nodes: int
    """Slots: nodes, or pods."""
    share: Mapping[str, float] | None = None
    """What it takes of each node; None for whole nodes."""
    eligible: Collection[int] | None = None
    """Nodes that it may use, idle or not; None for all."""
    slots: NodeSlots | None = None
    """The slots of every node, where the system counts them; None where the engine counts what jobs hold."""
    within: str | None = None
    """`preferred:LEVEL` or `required:LEVEL`."""
    stacked: bool = False
    """Whether jobs that make room for it may share nodes: such a node is free once the last of them has left."""


class Cost(NamedTuple):
    """What it costs to disturb a job that holds nodes."""

    node_seconds: float | None
    """None if it must stay."""
    group: int | None = None
    """Whose budget it is under."""
    uses: int = 1
    """How much of the budget it takes."""
    rank: int = 0
    """A job of a higher rank goes only if those of lower ranks make no room."""


class Counted(NamedTuple):
    """The amounts from which the slots of nodes follow, if the system counts them and several jobs may be on a node."""

    asks: Sequence[int]
    """What a slot takes of each kind of amount."""
    free: Sequence[int]
    """What is free of each kind, node after node."""
    most: Sequence[int]
    """The most slots of each node."""
    left: Mapping[int, tuple[Sequence[int], Sequence[int]]]
    """By job: the nodes where it leaves something if it goes, and the amounts of each kind, node after node."""


class Hypothetical:
    """A policy, and the jobs that hold nodes in a live system.

    policy: the name of one built in, or a policy in Python. A name that a user of the cluster wrote must load no code, so resolve
    others first. min_bandwidth: the least share of full bandwidth that jobs accept on links of their own;
    None for all of it. counts_slots: whether the system counts what is free on nodes, and says so with each question; jobs then
    hold links only. links_out: links that no job may own. Raises InputError for a policy that does not exist.
    """

    def __init__(
        self,
        machine: Machine,
        policy: str | Policy,
        min_bandwidth: float | None = None,
        *,
        counts_slots: bool = False,
        links_out: Sequence[int] = (),
    ) -> None:
        self.machine, self._links_out = machine, list(links_out)
        if isinstance(policy, str) and policy not in built_in():
            raise InputError(f"unknown policy {texts.shown(policy)}; there are {', '.join(built_in())}")
        self._policy = policy
        self._min_bandwidth, self._counts_slots = min_bandwidth, counts_slots
        self._holders: dict[int, Holder] = {}
        self._unfit: set[int] = set()
        """Jobs on nodes that are full already, such as suspended ones. They count for links, not for the policy."""
        self._out: frozenset[int] = frozenset()
        self._state: State | None = self._made()
        """None if it must be made again."""

    @classmethod
    def of(
        cls,
        machine: Machine,
        view: View,
        policy: str | Policy,
        min_bandwidth: float | None = None,
        *,
        counts_slots: bool = False,
        gone: Collection[int] = (),
    ) -> Hypothetical:
        """With the running jobs of a view but `gone`."""
        ended, links_out = frozenset(gone), frozenset(view.links_out)
        made = cls(machine, policy, min_bandwidth, counts_slots=counts_slots, links_out=sorted(links_out))
        if not counts_slots:
            made.serve(view.out)
        for job in view.claiming if counts_slots else view.running:
            if job.id not in ended:
                # A job one of whose links is out of service may use the others of its groups.
                links = job.links if links_out.isdisjoint(job.links) else ()
                use = ISOLATED if job.link_use == UNKNOWN else job.link_use
                holder = Holder(job.nodes, links, job.bandwidth_share, use, job.share, job.is_beyond)
                made.hold(job.id, holder)
        return made

    @property
    def jobs(self) -> int:
        """The number of jobs that hold nodes."""
        return len(self._holders)

    @property
    def out(self) -> frozenset[int]:
        """The nodes that take no new jobs."""
        return self._out

    def hold(self, job: int, holder: Holder) -> None:
        """Lets a job hold the nodes that the system gave it."""
        self._holders[job] = holder
        if self._state is not None and not self._enter(self._state, job, holder):
            self._unfit.add(job)

    def end(self, job: int) -> None:
        """The job holds its nodes no longer."""
        self._holders.pop(job, None)
        self._unfit.discard(job)
        if self._state is not None and not self._state.release(job) and self._counts_slots:
            self._state = None

    def serve(self, out: Collection[int]) -> None:
        """Exactly these nodes take no new jobs."""
        now = frozenset(out)
        if self._state is not None:
            self._state.take_out(sorted(now - self._out))
            self._state.put_back(sorted(self._out - now))
        self._out = now

    def ask(self, question: Question) -> Placement | NoPlace:
        """Where the policy would place a job. Nothing is changed."""
        answer = self.decide(question)
        if isinstance(answer, Refusal):
            return no_place(answer)
        return self.placed(question.job, answer.nodes, answer.links, answer.bandwidth_share)

    def decide(self, question: Question) -> Decision | Refusal:
        """The engine's own answer. What the job holds itself does not count."""
        own = self._holders.get(question.job)
        if own is not None:
            self.end(question.job)
        try:
            return self._decided(question)
        finally:
            if own is not None:
                self.hold(question.job, own)

    def _decided(self, question: Question) -> Decision | Refusal:
        check_live(self.machine, self._policy)
        if self._state is None:
            self._state = self._made()
        if question.slots is not None:
            return self._state.place(
                self._policy,
                question.nodes,
                id=question.job,
                share=(1, 0),
                stacked=question.slots.stacked,
                slots=list(question.slots.free),
                room=list(question.slots.room),
                within=question.within,
                min_bandwidth=self._min_bandwidth,
            )
        return self._state.place(
            self._policy,
            question.nodes,
            id=question.job,
            share=None if question.share is None else dict(question.share),
            eligible=self._eligible(question),
            within=question.within,
            min_bandwidth=self._min_bandwidth,
        )

    def _eligible(self, question: Question) -> list[int]:
        full = {node for job in self._unfit for node in self._holders[job].nodes}
        eligible = range(self.machine.nodes) if question.eligible is None else question.eligible
        return sorted(set(eligible) - full)

    def make_room(
        self,
        question: Question,
        costs: Mapping[int, Cost],
        budgets: Sequence[int] = (),
        *,
        counted: Counted | None = None,
        movable: Collection[int] = (),
        questions: int | None = None,
    ) -> RoomPlan | NoRoom:
        """The cheapest jobs to be disturbed so that the policy places a job.

        costs: of jobs that hold whole nodes, or leave amounts that are `counted`; of sets that cost the same that of earlier jobs goes.
        budgets: how much of each group may be disturbed. movable: jobs that are moved in place of going; the policy places them after
        the job. questions: how often the policy is asked at most.
        """
        rows = [
            (
                job,
                sorted(set(self._holders[job].nodes)),
                list(self._holders[job].links),
                cost.node_seconds,
                cost.group,
            )
            for job, cost in costs.items()
            if job not in self._unfit
        ]
        return engine_room(
            self._made(without=self._unfit | {row[0] for row in rows}),
            self._policy,
            question.nodes,
            rows,
            id=question.job,
            movable=list(movable),
            stacked=question.stacked,
            budgets=list(budgets),
            eligible=self._eligible(question),
            min_bandwidth=self._min_bandwidth,
            questions=questions,
            ranks={job: cost.rank for job, cost in costs.items() if cost.rank},
            uses={job: cost.uses for job, cost in costs.items() if cost.uses != 1},
            counted=counted,
            # Without counted slots, a job whose place is free keeps off others as the policy does.
            isolated=None
            if counted is None
            else {job for job in costs if self._holders[job].link_use == ISOLATED},
        )

    def room(self) -> dict[str, Any]:
        """How many more jobs of each size fit at each level (`State.room`)."""
        return self._made().room()

    def placed(
        self, job: int, nodes: Sequence[int], links: Sequence[int] = (), bandwidth_share: float = 1.0
    ) -> Placement:
        """A job on these nodes, next to the others that hold nodes."""
        rows = [
            (each, sorted(set(one.nodes)), list(one.links))
            for each, one in self._holders.items()
            if each != job
        ]
        use = LinkUse(self.machine, [*rows, (job, sorted(set(nodes)), list(links))])
        others = {other for _, met in use.meetings(job) for other in met}
        aph = self.machine.quality(list(nodes))[0]
        return Placement(tuple(nodes), aph, len(others), tuple(links), bandwidth_share)

    def _made(self, without: Collection[int] = ()) -> State:
        state = State(self.machine)
        state.take_out(sorted(self._out))
        if self._links_out:
            state.overlay([], links=self._links_out)
        for job, holder in self._holders.items():
            if job not in without:
                self._enter(state, job, holder)
        return state

    def _enter(self, state: State, job: int, holder: Holder) -> bool:
        """Whether the job could be given what it holds."""
        if not holder.nodes:
            return True
        nodes, links = list(holder.nodes), list(holder.links)
        if self._counts_slots:
            state.overlay(
                nodes,
                holder.link_use == ISOLATED,
                holder.is_beyond,
                links=links,
                bandwidth_share=holder.bandwidth_share,
                id=job,
            )
            return True
        taken = None if holder.share is None else dict(holder.share)
        # A job whose links another one holds as well is there without them.
        for own, share in ((links, holder.bandwidth_share), ([], 1.0)):
            try:
                state.hold(nodes, taken, own, share, link_use=holder.link_use, id=job)
            except InputError:
                continue
            return True
        return False
