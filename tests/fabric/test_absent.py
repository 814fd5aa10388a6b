"""What a subnet has lost since its machine was read: shown by a later output of `ibnetdiscover`."""

from __future__ import annotations

import random
import re

import pytest
from topolane import InputError, Machine

TREE = """
name = "toy"
[[site]]
name = "core"
children = [4, 3, 2]
parents = [1, 2, 2]
cables = [1, 2, 1]
"""


@pytest.fixture
def net() -> str:
    return Machine.parse(TREE, "toy.toml").to("ibnetdiscover")


def cables(text: str) -> list[tuple[str, str]]:
    """The two lines of every cable."""
    found, device = {}, ""
    for number, line in enumerate(text.splitlines()):
        if head := re.match(r'(?:Switch|Ca)\t\d+ "([^"]+)"', line):
            device = head[1]
        elif port := re.match(r'\[(\d+)\](?:\([^)]*\))?\s*"([^"]+)"\[(\d+)\]', line):
            found[device, port[1]] = (port[2], port[3]), number
    return [(number, found[peer][1]) for peer, number in found.values()]


def lacking(text: str, lines: set[int]) -> str:
    return "".join(line for number, line in enumerate(text.splitlines(keepends=True)) if number not in lines)


def test_cables_that_are_gone_are_found(net):
    """Of any cables whose lines both ends lack, as many are found, the same ones each time, and none of those left."""
    machine = Machine.parse(net, "net", "ibnetdiscover")
    pairs = sorted({tuple(sorted(pair)) for pair in cables(net)})
    assert len(pairs) == machine.links
    assert machine.absent(net, net, "net", "now") == []
    of_cable = {}
    for pair in pairs:
        (of_cable[pair],) = machine.absent(net, lacking(net, set(pair)), "net", "now")
    assert sorted(of_cable.values()) == list(range(machine.links))
    draw = random.Random(1)
    for _ in range(50):
        gone = draw.sample(pairs, draw.randint(2, 40))
        now = lacking(net, {line for pair in gone for line in pair})
        assert machine.absent(net, now, "net", "now") == sorted(of_cable[pair] for pair in gone)


def test_a_switch_that_is_gone_takes_its_cables_with_it(net):
    """All that led to it, whatever order the devices now come in."""
    machine = Machine.parse(net, "net", "ibnetdiscover")
    devices = net.split("\n\n")
    names = [re.search(r'"([SH]-[0-9a-f]+)"', device) for device in devices]
    (switch,) = [n for n, device in enumerate(devices) if '# "pod0-s1"' in device.partition("\n[")[0]]
    left = [
        "\n".join(line for line in device.splitlines() if f'"{names[switch][1]}"' not in line)
        for n, device in enumerate(devices)
        if n != switch
    ]
    now = "\n\n".join([left[0], *reversed(left[1:])]) + "\n"
    assert machine.absent(net, now, "net", "now") == machine.cables_named(["pod0-s1"])[0]


def test_a_text_that_is_cut_short_is_named(net):
    machine = Machine.parse(net, "net", "ibnetdiscover")
    with pytest.raises(InputError, match="^now:"):
        machine.absent(net, net[: len(net) // 2], "net", "now")
    with pytest.raises(InputError, match="^net: the subnet is not that of machine toy"):
        Machine.parse(TREE.replace("[4, 3, 2]", "[4, 2, 2]"), "toy.toml").absent(net, net, "net", "now")
