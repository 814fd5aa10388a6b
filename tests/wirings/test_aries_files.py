"""Every cable of real machines: what the reader and the presets make of the files of two Cray machines.

The files are not part of the product, so these tests are skipped without them.
"""

from __future__ import annotations

import gzip
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from closure import hosts
from topolane import sources

MACHINES = Path(__file__).resolve().parents[2].parent / "shared" / "machines"
LINE = re.compile(r"\S+\((\d+):(\d+):(\d+)\) (?:green|black|blue) -> \S+\((\d+):(\d+):(\d+)\)")
Place = tuple[int, ...]
"""Group, row and column of a router."""

pytestmark = pytest.mark.skipif(not MACHINES.is_dir(), reason="the machines are not in ../shared/machines")


def cables_of_file(name: str) -> Counter[tuple[Place, Place]]:
    """The number of cables between routers, each pair in order."""
    found: Counter[tuple[Place, Place]] = Counter()
    with gzip.open(MACHINES / name, "rt") as file:
        for line in file:
            if match := LINE.match(line):
                numbers = tuple(map(int, match.groups()))
                if numbers[:3] < numbers[3:]:
                    found[numbers[:3], numbers[3:]] += 1
    # Edison's groups have no number 12.
    groups = sorted({place[0] for pair in found for place in pair})
    return Counter(
        {
            tuple((groups.index(place[0]), *place[1:]) for place in pair): count
            for pair, count in found.items()
        }
    )


def cables_of_machine(text: str, place: re.Pattern[str]) -> Counter[tuple[Place, Place]]:
    dragonfly = tomllib.loads(text)["dragonfly"]
    places = []
    for number, group in enumerate(dragonfly["groups"]):
        for name in hosts(group):
            match = place.fullmatch(name)
            assert match, name
            places.append((number, *map(int, match.groups())))
    found: Counter[tuple[Place, Place]] = Counter()
    for table in dragonfly["cables"]:
        for a, b, count in table["between"]:
            ends = sorted((places[a], places[b]))
            found[ends[0], ends[1]] += count
    return found


PRESET = re.compile(r"g\d+r(\d+)s(\d+)")


@pytest.mark.parametrize(
    ("file", "preset"), [("theta-3456.interconnect.gz", "theta"), ("edison-links.txt.gz", "edison")]
)
def test_a_preset_has_the_cables_of_the_file(file: str, preset: str) -> None:
    """Theta's preset continues a state of nine groups, so it has more groups than the file."""
    there = cables_of_file(file)
    groups = 1 + max(a[0] for pair in there for a in pair)
    made = cables_of_machine(sources.machine(preset).to("toml"), PRESET)
    assert {
        pair: count for pair, count in made.items() if pair[1][0] < groups and pair[0][0] < groups
    } == there


@pytest.mark.parametrize("file", ["theta-3456.interconnect.gz", "edison-links.txt.gz"])
def test_the_reader_has_the_cables_of_the_file(file: str) -> None:
    there = cables_of_file(file)
    machine = sources.machine(MACHINES / file)
    routers = {place for pair in there for place in pair}
    assert machine.nodes == 4 * len(routers) and machine.wiring == "dragonfly"
    text = machine.to("toml")
    read = tomllib.loads(text)["dragonfly"]
    # The reader orders routers by group, row and column, as the places here are ordered.
    names = [name for group in read["groups"] for name in hosts(group)]
    at = dict(zip(range(len(names)), sorted(routers), strict=True))
    found: Counter[tuple[Place, Place]] = Counter()
    for table in read["cables"]:
        for a, b, count in table["between"]:
            found[at[a], at[b]] += count
    assert found == there
