"""Parts of GPUs in `topolane place`, GPUs in the figures of runs, and where a job has to lie (`--within`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

MACHINE = (
    'name = "g"\n[node]\nsockets = 1\ncores-per-socket = 8\nresources = { "gpu:h100" = 4, nic = 2 }\n'
    '[[site]]\nname = "s"\nchildren = [2, 2]\n'
)
RACKS = ("--machine", "nvl72(units=1)")


@pytest.fixture
def machine(write) -> Path:
    """Four nodes of 4 GPUs."""
    return write("gpus.toml", MACHINE)


@pytest.fixture
def place(topolane, machine: Path):
    """Places a request and gives the answer."""

    def place(share: object, *running: object, policy: str = "first-fit", code: int = 0, **request: object):
        jobs = [{"id": number, "nodes": "g1", "share": one} for number, one in enumerate(running)]
        text = json.dumps({"running": jobs, "request": {"nodes": 1, "share": share, **request}})
        words = ("place", "--machine", machine, "--policy", policy, "--json")
        return json.loads(topolane(*words, stdin=text, code=code))

    return place


@pytest.mark.parametrize("policy", ["first-fit", "best-fit", "fgd", "gpu-packing"])
def test_a_part_fills_a_gpu_that_is_cut_already(place, policy):
    """Parts share a GPU up to all of it, and whole GPUs leave it alone."""
    for held, gpu in ((0.25, 0), (0.5, 0), (0.501, 1)):
        found = place({"gpu": 0.5}, {"gpu": held}, policy=policy)
        assert (found["hosts"], found["gpus"]) == (["g1"], [[gpu]])
    assert place({"gpu:h100": 0.25}, {"gpu": 0.75}, policy=policy)["gpus"] == [[0]]
    assert place({"gpu": 4}, {"gpu": 0.001}, policy=policy)["hosts"] == ["g2"]
    assert place({"gpu": 2}, {"gpu": 0.001}, policy=policy, eligible="g1")["gpus"] == [[2, 3]]


def test_parts_on_every_node_of_a_job(place):
    """A slot is on a node of its own unless slots may be stacked. What no node has is refused for good."""
    assert place({"gpu": 0.5}, nodes=2)["gpus"] == [[0], [0]]
    assert place({"gpu": 0.5}, nodes=3, stacked=True)["gpus"] == [[0], [0], [1]]
    full = [{"gpu": 0.6}] * 4
    assert place({"gpu": 0.5}, *full, eligible="g1", code=1)["refusal"] == "not-now"
    assert place({"gpu": 0.4}, *full, eligible="g1")["gpus"] == [[0]]
    assert place({"gpu:a100": 0.5}, code=1)["refusal"] == "never"


@pytest.mark.parametrize(
    ("share", "complaint"),
    [
        *(
            (
                {"gpu": part},
                f"'gpu' must be a whole number or a part of one GPU from 0.001 to 0.999, not {part}",
            )
            for part in (1.5, -0.5, 0.0001, 0.9999, 1.0)
        ),
        ({"gpu:h100": 2.5}, "'gpu:h100' must be a whole number or a part of one GPU"),
        ({"nic": 0.5}, "'nic' must be a whole number"),
        ({"gpu": 0.5, "gpu:h100": 0.5}, "a part of one GPU, not of several"),
        ({"gpu": 1, "gpu:h100": 0.5}, "a part of gpu:h100 and whole GPUs for one slot"),
    ],
)
def test_other_parts_are_refused(topolane, machine, share, complaint):
    text = json.dumps({"request": {"nodes": 1, "share": share}})
    topolane.refused("place", "--machine", machine, stdin=text, says=complaint)


def test_gpus_in_use_count_whole_nodes_and_parts(topolane, machine, write):
    """Of 16 GPUs over 100 s: a whole node for all of it, half a GPU for half of it, two GPUs for a quarter."""
    log = write("log.csv", "id,submit,run,nodes,gpus\n1,0,100,1,\n2,0,50,1,0.5\n3,0,25,1,2\n")
    used = (4 * 100 + 0.5 * 50 + 2 * 25) / (16 * 100)
    words = (
        "simulate",
        "--machine",
        machine,
        "--trace",
        log,
        "--policy",
        "first-fit",
        "--default-walltime",
        100,
    )
    run = json.loads(topolane(*words, "--json"))
    assert run["allocated_gpus"] == pytest.approx(used)
    text = topolane(*words, "--out", "out")
    assert "GPUs" in text and f"{used:.1%}" in text
    summary = json.loads((topolane.directory / "out" / "summary.json").read_text())
    assert summary["allocated_gpus"] == pytest.approx(used)
    (report,) = (topolane.directory / "out").glob("*.html")
    assert "GPUs in use" in report.read_text()


def test_a_machine_without_gpus_has_no_figures_of_gpus(topolane, toy, log):
    run = json.loads(topolane("simulate", "--machine", toy, "--trace", log, "--json"))
    assert not {"allocated_gpus", "room"} & {key for key, value in run.items() if value is not None}


@pytest.mark.parametrize(
    ("within", "runs"),
    [
        ("unconstrained", [1, 2]),
        *((f"preferred:{level}", [1, 2]) for level in ("node", "leaf", "pod", "domain", 2)),
        *((f"required:{level}", [1]) for level in ("domain", "leaf", 1)),
        ("required:node", []),
        ("required:2", [1, 2]),
    ],
)
def test_a_job_lies_where_it_has_to(topolane, write, within, runs):
    """One job fits in a rack of 18 nodes and one does not: what is required is refused, what is preferred is not."""
    log = write("log.csv", "id,submit,run,nodes\n1,0,60,4\n2,1,60,20\n")
    words = ("--trace", log, "--policy", "kueue-tas", "--within", within)
    run = json.loads(topolane("simulate", *RACKS, *words, "--json"))
    assert run["jobs"] == len(runs)
    assert sum(run["left_out"].values()) == 2 - len(runs)


@pytest.mark.parametrize(
    ("machine", "within", "says"),
    [
        *(
            (
                "cab",
                within,
                (within, "neither unconstrained nor preferred:LEVEL nor required:LEVEL", "node, leaf"),
            )
            for within in ("required:rack", "required:", "leaf", "required:-1", "required:300")
        ),
        (
            "cab",
            "required:9",
            ("required:9", "machine cab has levels 0 (node), 1 (leaf) to 3, and no level 9"),
        ),
        ("cab", "preferred:domain", ("preferred:domain", "machine cab has no domains")),
    ],
)
def test_a_level_that_is_none_is_refused(topolane, log, machine, within, says):
    words = ("--machine", machine, "--trace", log, "--policy", "kueue-tas", "--within", within)
    topolane.refused("simulate", *words, "--out", "out", says=says)
