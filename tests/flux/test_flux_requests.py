"""The machine of a Flux instance, and what the engine is asked for its jobs. No Flux runs here."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from topolane import InputError, Machine, Policy, Refusal, State
from topolane.flux.fabric import Fabric, RankNode, groups_of
from topolane.flux.requests import NodeRequest
from topolane.flux.resources import JobResources
from topolane.flux.settings import FluxSettings, JobWords
from topolane.policy import built_in

NODES = [RankNode(rank, f"n{rank}", 8, 4 if rank < 4 else 0) for rank in range(8)]


def graph(racks: int, hosts: int = 8) -> dict[str, Any]:
    """A resource graph as Fluxion writes it: a cluster, racks, nodes."""
    rows = [("cluster", "c0", "/c0")]
    rows += [("rack", f"rack{rack}", f"/c0/rack{rack}") for rack in range(racks)]
    rows += [("node", f"n{host}", f"/c0/rack{host * racks // hosts}/n{host}") for host in range(hosts)]
    return {
        "graph": {
            "nodes": [
                {"metadata": {"type": kind, "name": name, "paths": {"containment": path}}}
                for kind, name, path in rows
            ]
        }
    }


def request(
    nodes: int = 0,
    slots: int = 1,
    cores: int = 1,
    gpus: int = 0,
    most: int | None = -1,
    exclusive: bool = False,
) -> Any:
    """A parsed jobspec, by the names of flux-core's ResourceRequest."""
    return SimpleNamespace(
        nnodes=nodes,
        nnodes_max=nodes if most == -1 else most,
        nslots=slots,
        slot_size=cores,
        gpu_per_slot=gpus,
        exclusive=exclusive,
    )


def test_racks_of_a_graph_are_leaves() -> None:
    """Nodes of one rack hang on one switch. Cores and GPUs are those of Flux."""
    fabric = Fabric.of(NODES, None, graph(2))
    machine = fabric.machine
    assert [machine.groups(1)[leaf][:2] for leaf in range(2)] == [(0, 4), (4, 8)]
    assert fabric.ranks == tuple(range(8)) and not fabric.notes
    assert machine.resources_of(0) == {"cores": 8, "gpu": 4, "memory": machine.resources_of(0)["memory"]}
    assert machine.resources_of(7)["cores"] == 8 and not machine.resources_of(7).get("gpu")


@pytest.mark.parametrize(
    "scheduling", [None, {}, {"graph": 5}, {"graph": {"nodes": [3, {"metadata": {}}]}}, "x"]
)
def test_without_a_graph_there_is_one_switch(scheduling: object) -> None:
    """Whatever stands where a graph should: all nodes on one switch, and a note says so."""
    assert groups_of(scheduling) == {}
    fabric = Fabric.of(NODES, None, scheduling)
    assert fabric.machine.depth == 1 and fabric.notes


def test_a_machine_file_may_be_larger_and_in_another_order() -> None:
    """Only the nodes that Flux has are taken, by name. What Flux counts on them holds, whatever the file says."""
    nodes = [RankNode(0, "cab20", 32, 2), RankNode(1, "cab3", 16, 0), RankNode(2, "cab1", 16, 0)]
    fabric = Fabric.of(nodes, "cab")
    names = [fabric.machine.node_name(node) for node in range(3)]
    assert names == ["cab1", "cab3", "cab20"] and fabric.ranks == (2, 1, 0)
    assert fabric.node_of == {0: 2, 1: 1, 2: 0}
    assert [fabric.machine.resources_of(node)["cores"] for node in range(3)] == [16, 16, 32]


def test_the_mark_distinguishes_machines() -> None:
    """Links of machines with one mark have the same numbers: it changes with the tree, and not from one look to the next."""
    one, again, other = (Fabric.of(NODES, None, graph(racks)).mark for racks in (2, 2, 4))
    assert one == again != other


@pytest.mark.parametrize(
    ("nodes", "source", "sentence"),
    [
        (NODES, "cab", "cab does not name n0 and 7 more, which Flux has"),
        ([NODES[0], NODES[0]._replace(rank=1)], None, "n0 is the name of several ranks"),
        ([], None, "the instance has no resources"),
    ],
)
def test_ranks_that_are_no_nodes_are_refused(
    nodes: list[RankNode], source: str | None, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        Fabric.of(nodes, source)


@pytest.mark.parametrize(
    ("asked", "nodes", "most", "share", "eligible"),
    [
        (request(3, 3, exclusive=True), 3, 0, None, None),
        (request(2, 4, 2), 2, 0, {"cores": 4}, None),
        (request(2, 2, 8), 2, 0, {"cores": 8}, None),
        (request(2, 4, 1, 1), 2, 0, {"cores": 2, "gpu": 2}, (0, 1, 2, 3)),
        (request(2, 2, most=5), 2, 5, {"cores": 1}, None),
        (request(2, 2, most=None), 2, 8, {"cores": 1}, None),
        (request(0, 3, 2), 1, 0, {"cores": 6}, None),
        (request(0, 20, 1), 3, 0, None, None),
        (request(0, 9, 1, 1), 3, 0, None, (0, 1, 2, 3)),
    ],
)
def test_a_jobspec_is_nodes_and_a_share(
    asked: Any, nodes: int, most: int, share: dict[str, int] | None, eligible: tuple[int, ...] | None
) -> None:
    """See the table in docs/explanation/flux.md."""
    found = NodeRequest.of(asked, Fabric.of(NODES, None, graph(2)), NODES)
    assert (found.nodes, found.most, found.share, found.eligible) == (nodes, most, share, eligible)


def test_all_of_every_node_is_whole_nodes() -> None:
    """A job that asks for all cores of nodes that are alike gets whole nodes, so every policy can take it."""
    alike = [RankNode(rank, f"n{rank}", 8, 0) for rank in range(4)]
    assert NodeRequest.of(request(2, 2, 8), Fabric.of(alike, None), alike).share is None


@pytest.mark.parametrize(
    ("cores", "slots", "nodes", "eligible"),
    [
        ([1, 10, 10, 10], 30, 3, (1, 2, 3)),
        ([4, 8, 4, 4], 6, 1, (1,)),
        ([4, 8, 4, 4], 9, 3, None),
        ([1, 10, 1, 10], 21, 3, (0, 1, 3)),
    ],
)
def test_slots_on_nodes_that_are_not_alike(
    cores: list[int], slots: int, nodes: int, eligible: tuple[int, ...] | None
) -> None:
    """A job takes the fewest nodes that hold its slots, and small nodes deny it nothing that the large ones hold."""
    unlike = [RankNode(rank, f"n{rank}", count, 0) for rank, count in enumerate(cores)]
    found = NodeRequest.of(request(0, slots, 1), Fabric.of(unlike, None), unlike)
    assert (found.nodes, found.eligible) == (nodes, eligible)


def test_words_are_taken_and_others_left() -> None:
    """Words of Flux's own schedulers stay for Flux."""
    words = ["policy=dedicated", "queue-depth=8", "min-bandwidth=0.5", "machine=cab"]
    settings = FluxSettings.taken_from(words)
    assert words == ["queue-depth=8"]
    assert settings == FluxSettings(machine="cab", policy="dedicated", min_bandwidth=0.5)


def test_without_the_engine_a_promise_of_its_own_makes_a_job_wait() -> None:
    """A job that asks for links or segments itself waits, whatever the administrator chose, and its annotation says why. For what only
    the policy promises, the administrator chooses; a policy that promises nothing never makes a job wait."""
    links, parts, nothing = JobWords(min_bandwidth=0.5), JobWords(segment=4), JobWords()
    for words in (
        [],
        ["without-engine=stock"],
        ["without-engine=wait"],
        ["policy=first-fit", "without-engine=wait"],
    ):
        chosen = FluxSettings.taken_from(list(words))
        assert "system.topolane.min-bandwidth" in str(chosen.why_it_waits(links))
        assert "system.topolane.segment" in str(chosen.why_it_waits(parts))
        waits = words == ["without-engine=wait"]
        assert (chosen.why_it_waits(nothing) is not None) == waits, words
    with pytest.raises(InputError, match="without-engine=maybe: it is stock or wait"):
        FluxSettings.taken_from(["without-engine=maybe"])


@pytest.mark.parametrize(
    "jobspec",
    [{}, {"attributes": None}, {"attributes": {"system": None}}, {"attributes": {"system": {"duration": 5}}}],
)
def test_a_job_that_says_nothing_asks_for_nothing(jobspec: dict[str, Any]) -> None:
    assert JobWords.of(jobspec, FluxSettings()) == JobWords()


class Reads(Policy):
    """A policy of the user's own, which may read segments."""

    name = "reads-segments"

    def choose(self, request: Any, state: Any) -> Sequence[int] | None:
        return None


@pytest.mark.parametrize(
    "policy",
    [name for name in built_in() if name not in ("recorded", "isolated-global")] + ["reads-segments"],
)
def test_segments_are_refused_where_the_policy_keeps_none(policy: str) -> None:
    """Two leaves of three nodes hold six nodes, but not three segments of two: a policy that keeps segments refuses them.
    A policy of the user's own may read them."""
    settings, jobspec = FluxSettings(policy=policy), {"attributes": {"system": {"topolane": {"segment": 2}}}}
    machine = Machine.parse(
        'name = "m"\n[node]\nnic-bandwidth = 1e9\n[[site]]\nname = "s"\nchildren = [3, 2]\n', "m.toml"
    )
    keeps = policy == "reads-segments" or (
        isinstance(State(machine).place(policy, 6, segment=2), Refusal)
        and not isinstance(State(machine).place(policy, 6), Refusal)
    )
    if keeps:
        assert JobWords.of(jobspec, settings).segment == 2
    else:
        with pytest.raises(InputError, match=f"policy {policy} keeps no segments, for which segment=2 asks"):
            JobWords.of(jobspec, settings)


def test_counts_of_a_scheduler_take_the_place_of_the_file_s() -> None:
    """`Machine.counting`: cores and other resources node by node; the tree and all else of the nodes stay."""
    machine = Machine.parse(
        'name = "m"\n[node]\nnic-bandwidth = 1e9\n[[site]]\nname = "s"\nchildren = [2, 2]\n', "m.toml"
    )
    counted = machine.counting([(6, {"gpu": 2}), (7, {}), (6, {"gpu": 2})])
    assert [counted.resources_of(node)["cores"] for node in range(4)] == [6, 7, 6, 16]
    assert [counted.resources_of(node).get("gpu", 0) for node in range(4)] == [2, 0, 2, 0]
    assert counted.links == machine.links and "nic-bandwidth = 1000000000" in counted.to("toml")
    assert machine.counting([(0, {})]).resources_of(0)["cores"] == 0
    with pytest.raises(InputError):
        machine.counting([(4, {"bad name": 1})])


def test_a_record_keeps_what_a_job_holds() -> None:
    """What is written for a running job has the keys of all hosts, and gives the same nodes, links and shares after a reload. So does
    the record of an earlier release."""
    fabric = Fabric.of(NODES, None, graph(2))
    first = fabric.machine.node_named("n1"), fabric.machine.node_named("n0")
    runs = JobResources((first[0] or 0, first[1] or 0), 5.0, 60.0, {"cores": 3, "gpu": 1}, (2,), 0.5)
    record = runs.record(fabric, "dedicated")
    cases = json.loads((Path(__file__).parents[1] / "cluster" / "record_cases.json").read_text())
    (text,) = [case["text"] for case in cases if case["host"] == "flux"]
    assert record | {"machine": "0badcafe"} == json.loads(text)
    plain = JobResources(tuple(sorted(runs.nodes)), 5.0, 60.0)
    assert plain.recorded(json.loads(json.dumps(record)), fabric) == runs
    before = {"nodes": list(runs.nodes), "links": [2], "share": runs.share, "bandwidth-share": 0.5}
    assert plain.recorded({"machine": fabric.mark[:16], **before}, fabric) == runs
    assert record["machine"] != fabric.mark[:16], (
        "an earlier release does not take this record for one of its own"
    )
    whole = dataclasses.replace(runs, share=None)
    assert plain.recorded(whole.record(fabric, "isolated"), fabric) == whole


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"machine": "another"}, "started on another machine file"),
        ({"nodes": []}, "without some of its nodes"),
        ({"nodes": ["n1"]}, "without some of its nodes"),
        ({"nodes": ["n9"]}, "a node that the machine lacks"),
        ({"share": 2}, "share is 2"),
        ({"links": ["2"]}, "a link is"),
        ({"bandwidth-share": 1.0}, "started on another machine file"),
        (
            {"bandwidth-share": 1.0, "machine": Fabric.of(NODES, None, graph(2)).mark[:16]},
            "has a record that cannot be read",
        ),
    ],
)
def test_a_record_of_no_use_is_refused_in_a_sentence(changes: dict[str, Any], says: str) -> None:
    """The job then keeps the nodes that R has, and its links are not known."""
    fabric = Fabric.of(NODES, None, graph(2))
    runs = JobResources((0,), 5.0, 60.0, None, (2,))
    with pytest.raises(ValueError, match=says):
        runs.recorded(runs.record(fabric, "dedicated") | changes, fabric)
    with pytest.raises(ValueError, match="cannot be read"):
        runs.recorded([], fabric)
