"""`topolane patterns` and `topolane traffic`: what is listed can be made, written and read back."""

from __future__ import annotations

import json

import pytest
from topolane import _engine
from topolane.traffic import read_traffic, summary

NAMES = [name for name, _, _ in _engine.patterns()]
SYMMETRIC = {"stencil4d", "pairs", "suba2a", "alltoall", "allreduce", "ep"}


def test_patterns_lists_names_and_parameters(topolane):
    listed = json.loads(topolane("patterns", "--json"))
    assert [one["name"] for one in listed] == NAMES
    asked = {"stencil4d", "unstructured3d", "pairs", "suba2a", "ring", "alltoall", "allreduce", "uniform"}
    assert asked | {"is", "cg", "lu", "bt", "mg", "ep"} <= set(NAMES)
    fields = {"name", "summary", "unit", "range", "default"}
    assert all(set(parameter) == fields for one in listed for parameter in one["parameters"])
    text = topolane("patterns")
    assert all(one["name"] in text and one["summary"] in text for one in listed)


@pytest.mark.parametrize("name", NAMES)
def test_a_pattern_is_written_and_read_back(topolane, tmp_path, name):
    """The file holds the same matrix: same figures, and the phases add up to them."""
    made = json.loads(topolane("traffic", name, "--ranks", 24, "--seed", 3, "--out", "t.csv", "--json"))
    read = json.loads(topolane("traffic", "t.csv", "--json"))
    phases = made.pop("phases")
    assert read.pop("phases") == []
    assert read == made
    assert sum(phase["bytes"] for phase in phases) == pytest.approx(made["bytes"], rel=1e-12)
    if name in SYMMETRIC:
        assert made["symmetric"]
    assert (tmp_path / "t.csv").read_text() == _engine.Traffic.pattern(name, 24, 3).csv()


def test_the_summary_says_what_the_matrix_holds(topolane, tmp_path):
    """Of 4 ranks 0 sends to 1 and 2, 1 to 0; 3 hears nothing and says nothing."""
    (tmp_path / "t.csv").write_text("# ranks: 4\nfrom,to,bytes,messages\n0,1,10,2\n0,2,5,1\n1,0,10,1\n")
    assert json.loads(topolane("traffic", "t.csv", "--json")) == {
        "ranks": 4,
        "messages": 4.0,
        "bytes": 25.0,
        "entries": 3,
        "degree": {"least": 0, "mean": 0.75, "most": 2},
        "symmetric": False,
        "phases": [],
    }
    text = topolane("traffic", "t.csv")
    assert "0 to 2 of a rank, 0.75 in the mean" in text
    assert "symmetric  no" in text


@pytest.mark.parametrize(
    ("sent", "symmetric"),
    [([], True), ([(0, 1, 5), (1, 0, 5)], True), ([(0, 1, 5), (1, 0, 6)], False), ([(0, 1, 5)], False)],
)
def test_symmetric_means_as_much_back(sent, symmetric):
    columns = [list(column) for column in zip(*sent)] or [[], [], []]
    assert summary(_engine.Traffic.of(3, *columns))["symmetric"] is symmetric


def test_a_file_of_no_ranks_has_a_summary(tmp_path):
    (tmp_path / "t.csv").write_text("from,to,bytes\n")
    assert summary(read_traffic(tmp_path / "t.csv"))["degree"] == {"least": 0, "mean": 0.0, "most": 0}


def test_is_has_collective_and_point_to_point_parts():
    kinds = {name: kind for name, kind, _ in _engine.phases("is(class=A)", 8)}
    assert kinds == {"bucket sizes": "collective", "keys": "collective", "verification": "point-to-point"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ring"], "the pattern 'ring' needs a number of ranks: give --ranks"),
        (["nowhere.csv"], "no file is called 'nowhere.csv'"),
        (["ring(bytes=-1)", "--ranks", 4], 'bytes "-1" is not a number from 0'),
        (["rings", "--ranks", 4], "there is none of that name"),
        (["ring", "--ranks", 0], "0 is not in the range"),
        (["alltoall", "--ranks", 100_000], "more than the 16777216 entries"),
        (["t.csv"], 't.csv:3: from "x" is not a rank'),
        (["raw.csv"], "raw.csv: not UTF-8 text"),
        (["ring", "--ranks", 4, "--out", "no/where.csv"], "--out no/where.csv: cannot be written"),
    ],
)
def test_bad_input_is_refused(topolane, tmp_path, arguments, says):
    (tmp_path / "t.csv").write_text("# ranks: 4\nfrom,to,bytes\nx,1,1\n")
    (tmp_path / "raw.csv").write_bytes(b"\xff\xfe\x00")
    topolane.refused("traffic", *arguments, says=says)
