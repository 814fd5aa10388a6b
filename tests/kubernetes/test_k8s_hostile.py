"""What a user of one namespace writes costs that user's own rows: not the operator's page, and no answer about another tenant's group."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

pytest.importorskip("httpx", reason="needs the extra kubernetes: httpx")
pytest.importorskip("yaml", reason="needs the extra kubernetes: PyYAML")

from topolane import texts
from topolane._engine import InputError
from topolane.cluster import decided
from topolane.cluster.room_files import NoPlanError
from topolane.cluster.view import Running, View, Waiting
from topolane.kubernetes.budgets import budgets
from topolane.kubernetes.client import NotFoundError
from topolane.kubernetes.explain import explain
from topolane.kubernetes.export import job_records, workload
from topolane.kubernetes.inspection import Where, inspect
from topolane.kubernetes.machine import of_labels
from topolane.kubernetes.objects import LONGEST_NOTES, PLACEMENT, RECORD, Pod, quantity
from topolane.kubernetes.proofs import PROOF, seal
from topolane.kubernetes.room_plan import make_plan
from topolane.kubernetes.status import status
from topolane.serve.feed import PageState, written
from topolane.serve.kubernetes import KubernetesSource
from topolane.serve.live import Live
from topolane.serve.outlook import outlook

LABELS = ("topo/block", "topo/rack", "kubernetes.io/hostname")
LONG = "9" * 4000
KEY = b"of this test alone, thirty-two bytes"
PLACED = {"policy": "isolated", "nodes": ["n08"], "links": [], "share": 1, "link_use": "isolated", "rank": 0}
REFUSED = "group good/waits asks for 16 pods under isolated and does not fit now (16 wanted, 12 free)"
REFUSED += (
    RECORD + '{"policy":"isolated","share":1,"refusal":{"kind":"not-now","wanted":16,"why":"16 wanted"}}'
)
PLACEMENTS = (
    '{"policy":"isolated","nodes":["n08"],"share":NaN,"rank":0}',
    '{"policy":"isolated","nodes":["n08"],"links":[0],"share":NaN,"isolated":true,"rank":0}',
    '{"policy":"dedicated","links":[0],"share":Infinity,"rank":0}',
    f'{{"policy":"dedicated","links":[0],"share":{LONG},"rank":0}}',
    f'{{"policy":"dedicated","links":[{LONG}],"share":1,"rank":0}}',
    f'{{"policy":"dedicated","links":[0],"share":1,"rank":{LONG}}}',
    '{"policy":"dedicated","links":[0],"share":1e400,"rank":0}',
    '{"policy":"dedicated","links":[true],"share":true,"rank":false}',
    '{"policy":"dedicated","links":[-1],"share":-1,"rank":-1}',
    '{"policy":"dedicated","links":[0,0,1,2,3,4,5,6,7],"share":1,"rank":0}',
    '{"policy":"dedicated","links":[4000000000],"share":1,"rank":0}',
    '{"policy":"dedicated\\u202e","links":[0],"share":1,"rank":0}',
    '{"policy":"\\u0000\\u001b[2J","share":1,"rank":0}',
    '{"policy":"%s","share":1,"rank":0}' % ("x" * 5000),
    '{"policy":{"a":1},"share":1,"rank":0}',
    "[" * 100_000,
    '{"a":' * 3000,
    LONG,
    "null",
    "\x00",
)
TEXTS = (
    "", "0", "-1", "nan", "inf", "1e400", "0.5 ", "0x1p-1", "1_0", LONG, "٣", "4-2", "a=b", "8,8", "999999999", "1000001",
    "\u202egnp.exe", "\x1b]0;x\x07", "\ud800", "x" * 5000, "[" * 5000, "isolated", "slurm-tree",
)  # fmt: skip
AMOUNTS = ("940m", "0", "-5", "1e400", "1e999", "9" * 30, LONG, "1E", "8Ei", "1n", "", "x", "NaN", "٣")
NOTES = (
    "topolane.io/group-size", "topolane.io/policy", "topolane.io/min-bandwidth-share", "topolane.io/segment",
    "batch.kubernetes.io/job-completion-index", "topolane.io/evicted-for",
)  # fmt: skip
hostile_texts = st.sampled_from(TEXTS) | st.text(max_size=20)
hostile_placements = (
    st.sampled_from(PLACEMENTS)
    | st.text(max_size=30)
    | st.dictionaries(
        st.sampled_from(sorted(PLACED)),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=5)
        | st.lists(st.integers(), max_size=3),
    ).map(lambda change: json.dumps(PLACED | change))
)

hostile_records = (hostile_placements | st.just(REFUSED.partition(RECORD)[2])).map(
    lambda text: f"group evil/x waits{RECORD}{text}. preemption: none"
)


class Answers:
    """What an API server says, by path."""

    server = "https://cluster"

    def __init__(self, pods: list[Any], jobs: list[Any] = [], disruption: list[Any] = []) -> None:  # noqa: B006
        self._of = {"/api/v1/nodes": NODES, "/api/v1/pods": pods, "/apis/batch/v1/jobs": jobs}
        self._of["/apis/policy/v1/poddisruptionbudgets"] = disruption

    def items(self, path: str) -> list[Any]:
        return self._of[path]

    def get(self, path: str) -> dict[str, Any]:
        if path.endswith("/secrets/topolane-placement-key"):
            return {"data": {"key": base64.b64encode(KEY).decode()}}
        raise NotFoundError(path)


def node(number: int) -> dict[str, Any]:
    name = f"n{number:02}"
    labels = {"topo/block": f"b{number // 8}", "topo/rack": f"r{number // 4}", "kubernetes.io/hostname": name}
    room = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    meta = {"name": name, "labels": labels}
    return {"metadata": meta, "spec": {}, "status": {"allocatable": room, "conditions": ready}}


NODES = [node(number) for number in range(16)]


def pod(
    space: str, group: str, rank: int, on: str, notes: Mapping[str, str], said: Any = "", **asks: str
) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "True" if on else "False", "message": said}
    condition["lastTransitionTime"] = "2026-01-01T00:00:10Z"
    return {
        "metadata": {
            "uid": f"{space}-{group}-{rank}",
            "namespace": space,
            "name": f"{group}-{rank}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"scheduling.x-k8s.io/pod-group": group},
            "annotations": dict(notes),
            "ownerReferences": [{"kind": "Job", "name": group, "controller": True}],
        },
        "spec": {
            "schedulerName": "topolane",
            "containers": [{"resources": {"requests": {"cpu": "64", **asks}}}],
            **({"nodeName": on} if on else {}),
        },
        "status": {"phase": "Running" if on else "Pending", "conditions": [condition]},
    }


def bound(space: str, group: str, on: tuple[str, ...], rank: int = 0, **changes: Any) -> dict[str, Any]:
    """A pod with a placement that the scheduler signed."""
    text = json.dumps(PLACED | {"nodes": on, "rank": rank} | changes)
    made = pod(space, group, rank, on[rank], {PLACEMENT: text, "topolane.io/group-size": str(len(on))})
    key = Pod.of(made).key
    assert key is not None
    made["metadata"]["annotations"][PROOF] = f"{key} {seal(KEY, key, made['metadata']['uid'], text)}"
    return made


GOOD = [
    *(bound("good", "runs", ("n03", "n04"), rank) for rank in range(2)),
    *(pod("good", "waits", rank, "", {"topolane.io/group-size": "3"}, REFUSED) for rank in range(3)),
]


def shown_texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for one in value.items() for each in one for text in shown_texts(each)]
    return [text for one in value for text in shown_texts(one)] if isinstance(value, (list, tuple)) else []


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(NOTES, hostile_texts) | {PLACEMENT: hostile_placements}),
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("cpu", "memory", "nvidia.com/gpu", "pods"), st.sampled_from(AMOUNTS))
    ),
    st.sampled_from(["", "n08"]),
    hostile_texts | hostile_records,
)
@example({PLACEMENT: PLACEMENTS[1]}, {}, "n08", "")
@example({PLACEMENT: PLACEMENTS[3]}, {}, "n08", "")
@example(
    {"topolane.io/policy": "\u202e\x00", "topolane.io/min-bandwidth-share": "nan"},
    {"cpu": "1e400"},
    "",
    "\x1b[2J",
)
def test_one_tenants_values_never_reach_another(
    notes: dict[str, str], asks: dict[str, str], on: str, said: str
) -> None:
    """The page, the status and the groups of another tenant are as they were: all texts printable, all numbers finite."""
    cluster: Any = Answers([*GOOD, pod("evil", "x", 0, on, notes, said, **asks)])
    look = inspect(cluster, Where(labels=LABELS))
    found = status(look)
    mine = {row.job: row for row in (*found.running, *found.waiting)}
    assert {"good/runs", "good/waits", "evil/x"} == set(mine)
    assert (mine["good/runs"].ranks, mine["good/runs"].link_use) == (["n03", "n04"], "isolated")
    assert mine["good/waits"].kind == "not-now"
    answers = [dataclasses.asdict(found), *(dataclasses.asdict(explain(look, name)) for name in sorted(mine))]
    assert "Group good/waits waits" in " ".join(answers[3]["sentences"])
    with_page = KubernetesSource(cluster, Where(labels=LABELS), None, 1.0)
    snapshot = with_page.now()
    answers.append(PageState(snapshot, 1).whole())
    answers.append(outlook(with_page.machine, snapshot, "isolated", "easy"))
    for answer in answers:
        written(answer)
        for text in shown_texts(answer):
            assert texts.printable(text) == text and len(text) <= 5000, text[:80]


@settings(max_examples=60, deadline=None)
@given(hostile_placements)
def test_a_placement_is_read_or_refused_in_a_sentence(text: str) -> None:
    """What is read has a share over 0 and up to 1, a policy that a terminal shows, and links that a machine may have."""
    try:
        read = decided.read(text, LONGEST_NOTES)
    except ValueError as error:
        assert 0 < len(str(error)) < 200 and texts.printable(str(error)) == str(error)
        return
    assert 0 < read.share <= 1 and texts.printable(read.policy) == read.policy
    assert all(0 <= link < 1 << 32 for link in read.links) and 0 <= read.rank <= decided.MOST_SLOTS


def test_what_cannot_be_read_is_named_once() -> None:
    """The first of many groups that nothing proves are named; a pod without a name does not end the look."""
    bad = [pod("evil", f"x{number}", 0, "n08", {PLACEMENT: PLACEMENTS[0]}, cpu="1") for number in range(50)]
    cluster: Any = Answers(
        [*GOOD, *bad, {"metadata": {}}, {"metadata": {"name": "\u202e"}, "spec": []}, None]
    )
    look = inspect(cluster, Where(labels=LABELS))
    objects, notes = look.problems
    assert objects.startswith("A pod cannot be read and does not count: one without a name")
    assert notes.startswith(
        "Nothing proves how topolane-scheduler placed evil/x0, evil/x1, evil/x10 and 47 more, so only"
    )
    assert "good/runs" in look.groups


def test_a_link_has_one_owner() -> None:
    """A later group that says it owns a link of another, or one that the machine lacks, counts as a user of all its uplinks."""
    first = bound("a", "g", ("n00",), links=[0, 1])
    second = bound("b", "g", ("n08",), links=[1, 2])
    third = bound("c", "g", ("n09",), links=[10**6])
    cluster: Any = Answers([first, second, third])
    look = inspect(cluster, Where(labels=LABELS))
    rows = {row.job: row.links for row in status(look).running}
    assert rows == {"a/g": 2, "b/g": 0, "c/g": 0}
    [said] = look.problems
    assert "b/g (a/g owns some of them)" in said and "c/g (the machine has" in said
    assert set(look.closed) == {group.number for group in look.groups.values()}


def test_what_kube_scheduler_chose_is_not_isolated() -> None:
    """An annotation of an earlier release says that a stock choice is isolated; no row says so."""
    cluster: Any = Answers([bound("a", "g", ("n00",), policy="stock", link_use=None, isolated=True)])
    [row] = status(inspect(cluster, Where(labels=LABELS))).running
    assert (row.policy, row.link_use) == ("stock", "unknown")


def test_the_share_is_read_as_the_scheduler_reads_it() -> None:
    """What topolane-scheduler refuses is not taken for full bandwidth: a plan for such a group is refused, with the value."""
    for text, share in (("0.5", 0.5), ("1", 1.0), ("5e-1", 0.5), (".5", 0.5), ("+1", 1.0)):
        assert Pod.of(pod("a", "g", 0, "", {"topolane.io/min-bandwidth-share": text})).share == share
    for text in ("0", "nan", "inf", "1.1", "-1", " 0.5", "1_0", "x", "٠.٥", "0." + "5" * 100):
        notes = {"topolane.io/min-bandwidth-share": text, "topolane.io/group-size": "1"}
        assert Pod.of(pod("a", "g", 0, "", notes)).share is None, text
        cluster: Any = Answers([pod("a", "g", 0, "", notes)])
        look = inspect(cluster, Where(labels=LABELS))
        with pytest.raises((InputError, NoPlanError), match="is over 0 and up to 1, not"):
            make_plan(look, (), "a/g")


def test_a_policy_that_a_user_names_loads_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """MODULE:CLASS, in an annotation or in a record that nothing proves, imports nothing where the operator works."""
    named, loaded = "evil_module:Policy", list[str]()
    monkeypatch.setattr("importlib.import_module", loaded.append)
    record = REFUSED.replace('"isolated"', f'"{named}"').replace("good/waits", "evil/x")
    for notes, said in (({"topolane.io/policy": named}, ""), ({}, record)):
        evil = pod("evil", "x", 0, "", {"topolane.io/group-size": "1", **notes}, said)
        look = inspect(Answers([*GOOD, evil]), Where(labels=LABELS))  # type: ignore[arg-type]
        assert explain(look, "evil/x").policy == named
        with pytest.raises(InputError, match="unknown policy 'evil_module:Policy'; there are first-fit, "):
            make_plan(look, (), "evil/x")
    assert loaded == []


def test_amounts_have_bounds() -> None:
    """Kubernetes lowers what is larger to 2^63 - 1; so do we. What is no amount of its is refused."""
    for text in ("1e400", "1e999", "9" * 30, "8Ei", "9999999999E"):
        assert quantity(text) == (2**63 - 1) * 1000, text
    for text in (LONG, "٣", "NaN", "1e9999"):
        with pytest.raises(ValueError, match="is no amount"):
            quantity(text)


def test_jobs_and_budgets_are_checked() -> None:
    """A Job with odd numbers has no record and costs nothing else; a budget that cannot be read stops a plan that would evict."""
    odd = [
        {"metadata": {"namespace": "a", "name": "j"}, "spec": {"parallelism": value}}
        for value in (-1, "x", 1e400, 10**400)
    ]
    fine = {
        "metadata": {"namespace": "a", "name": "k"},
        "spec": {"parallelism": 2, "activeDeadlineSeconds": 10**400},
    }
    cluster: Any = Answers(GOOD, [*odd, fine])
    records = job_records(cluster)
    assert set(records) == {"a/k"} and records["a/k"].limit is None
    look = inspect(cluster, Where(labels=LABELS))
    assert look.machine is not None
    assert workload(look.pods, records, look.nodes, look.machine, look.time).running == 1
    wrong: Any = Answers([], disruption=[{"metadata": {"name": "b"}}])
    with pytest.raises(InputError, match="disruption budget cannot be read"):
        budgets(wrong)


def test_a_node_with_odd_amounts_costs_no_machine() -> None:
    """A node that says NaN cores has none; the other nodes have what they have."""
    odd = node(15)
    odd["status"]["allocatable"] = {"cpu": "NaN", "memory": "-1", "pods": {}}
    made = of_labels(LABELS, [*NODES[:15], odd])
    assert [made.resources_of(number)["cores"] for number in (14, 15)] == [64, 0]


def test_a_look_that_fails_does_not_end_the_page() -> None:
    """Whatever a source makes of what users wrote: viewers keep the last snapshot, with a problem, until the next look that works."""
    cluster: Any = Answers(GOOD)
    source = KubernetesSource(cluster, Where(labels=LABELS), None, 1.0)

    async def looks() -> list[tuple[int, tuple[str, ...], bool]]:
        live, found = Live(source), []
        for read in (cluster.items, lambda path: 1 / 0, cluster.items):
            source._cluster = type(
                "Now", (), {"items": staticmethod(read), "get": cluster.get, "server": "x"}
            )()
            await live.look()
            assert live.feed.state is not None
            last = live.feed.state.snapshot
            found.append((len(last.running), last.problems, last.is_old))
        return found

    said = "What the source says cannot be read; the log of topolane serve says why."
    assert asyncio.run(looks()) == [(1, (), False), (1, (said,), True), (1, (), False)]


def test_rows_hold_what_a_browser_reads() -> None:
    """Of any source, such as a Slurm whose jobs have odd names: texts are printable and short, and a number that is not finite is none."""
    name, nan, inf = "\u202ea\x00\x1b[2J" + "x" * 9000, float("nan"), float("inf")
    running = Running(1, name, name, name, (0,), nan, inf, bandwidth_share=nan, shadow_note=name)
    waiting = Waiting(2, name, name, name, 1, inf, nan, why=name, expected_start=nan)
    rows = PageState(View(1.0, (running,), (waiting,)), 1).whole()
    assert b"NaN" not in written(rows)
    assert all(texts.printable(text) == text and len(text) < 1100 for text in shown_texts(rows))
