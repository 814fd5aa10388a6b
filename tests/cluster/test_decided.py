"""The records of what plug-ins decided: what each host writes, and what the one reader takes of it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from topolane import texts
from topolane.cluster import decided
from topolane.cluster.decided import Decided
from topolane.cluster.view import Refused

CASES = json.loads(Path(__file__).with_name("record_cases.json").read_text())
"""By host: what its writer makes (held by native/kubernetes/plugin/record_test.go, tests/slurm/test_plugin_parts.py and
tests/flux/test_flux_requests.py), and the fields that the reader finds in it."""
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "outputs.md"
MOST = 1 << 20


def expected(reads: dict[str, Any]) -> Decided:
    found = {key: tuple(value) if isinstance(value, list) else value for key, value in reads.items()}
    if "refused" in found:
        refused = dict(found["refused"])
        found["refused"] = Refused(**refused | {"in_the_way": tuple(refused.get("in_the_way", ()))})
    return Decided(**found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['host']}: {case['what']}")
def test_what_a_host_writes_is_read(case: dict[str, Any]) -> None:
    """One reader takes the records of all hosts, whole."""
    assert decided.read(case["text"], MOST, case["nodes"]) == expected(case["reads"])


def test_a_job_of_the_longest_name_is_in_the_way() -> None:
    """A group with the longest names that Kubernetes allows does not cost the record of the group that waits for it."""
    name = f"{'s' * 63}/{'g' * 253}"
    refusal = {"kind": "not-now", "wanted": 1, "in_the_way": [{"at": "r0", "jobs": [name] * 3}]}
    found = decided.of({"policy": "isolated", "share": 1, "refusal": refusal}).refused
    assert found is not None and found.in_the_way == (f"r0: {name}, {name}, {name}",)


def test_the_page_lists_the_keys() -> None:
    """Each key that a host writes, and each kind of refusal, is in the reference."""
    page = PAGE.read_text().partition("## What plug-ins decided")[2].partition("\n## ")[0]
    for case in CASES:
        said = json.loads(case["text"])
        for key in [*said, *said.get("refusal", {}), *(said.get("refusal", {}).get("in_the_way") or [{}])[0]]:
            assert f"`{key}`" in page, key


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"policy": ""}, "policy is"),
        ({"policy": None}, "policy is"),
        ({"policy": "x\u202e"}, "printable"),
        ({"share": None}, "share is None"),
        ({"share": 0}, "share is 0"),
        ({"share": True}, "share is True"),
        ({"link_use": "all"}, "link_use is none of isolated"),
        ({"link_use": None, "isolated": 1}, "isolated is neither"),
        ({"nodes": "n0"}, "nodes is no list"),
        ({"nodes": [1]}, "a node is no name"),
        ({"nodes": ["n" * 318]}, "a node is no name"),
        ({"links": [-1]}, "a link is -1"),
        ({"links": [1 << 32]}, "a link is 4294967296"),
        ({"revision": -1}, "revision is -1"),
        ({"rank": 1.0}, "rank is 1.0"),
        ({"takes": [1]}, "takes is no object"),
        ({"takes": {"cores": -1}}, "cores is -1"),
        ({"offered": [1]}, "offered is no text"),
        ({"offered": "3-1"}, "'3-1' is not ascending numbers of the 24 nodes"),
        ({"offered": "24"}, "'24' is not ascending"),
        ({"offered": "1,1"}, "'1' is not ascending"),
        ({"refusal": []}, "refusal is no object"),
        ({"refusal": {"kind": "no", "wanted": 1}}, "kind is no, which is none of not-now"),
        ({"refusal": {"kind": "never", "wanted": "1"}}, "wanted is"),
        ({"refusal": {"kind": "never", "wanted": 1, "time": 1e300}}, "time is 1e+300"),
        ({"refusal": {"kind": "never", "wanted": 1, "time": 1 << 40}}, "time is 1099511627776"),
        (
            {"refusal": {"kind": "never", "wanted": 1, "in_the_way": ["r0"]}},
            "what is in the way is no object",
        ),
        (
            {"refusal": {"kind": "never", "wanted": 1, "in_the_way": [{"at": "r0", "jobs": [1]}]}},
            "a job is no",
        ),
        (
            {"refusal": {"kind": "never", "wanted": 1, "in_the_way": [{"at": "r0"}] * 4}},
            "in_the_way has 4 entries; the most is 3",
        ),
        (
            {"refusal": {"kind": "never", "wanted": 1, "in_the_way": [{"at": "r0", "jobs": ["a"] * 4}]}},
            "jobs has 4 entries",
        ),
    ],
)
def test_a_bad_value_is_refused_in_a_sentence(changes: dict[str, Any], says: str) -> None:
    """The sentence names the key and is printable."""
    said = {"policy": "isolated", "share": 1, "link_use": "isolated"} | changes
    with pytest.raises(ValueError) as error:
        decided.of(said, 24)
    assert says in str(error.value) and texts.printable(str(error.value)) == str(error.value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just("9" * 4000),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=4), inside, max_size=3),
    max_leaves=6,
)
KEYS = [field.name for field in dataclasses.fields(Decided)] + ["refusal", "isolated"]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), values), st.booleans())
def test_any_record_is_read_or_refused(changes: dict[str, Any], is_usual: bool) -> None:
    """Whatever a user writes: what is read has finite numbers in their ranges and printable texts."""
    said = {"policy": "isolated", "share": 1} | changes if is_usual else changes
    try:
        read = decided.of(said, 24)
    except ValueError:
        return
    assert 0 < read.share <= 1 and texts.printable(read.policy) == read.policy
    assert all(type(link) is int and 0 <= link < 1 << 32 for link in read.links)
    assert all(texts.printable(name) == name for name in (*read.nodes, read.rule or ""))
