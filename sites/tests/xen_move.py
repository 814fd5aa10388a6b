"""In the dom0 of an emulated machine: starts the guest of an XML file (`start FILE`), or moves g1 by the mover (`move`)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import libvirt
from topolane_sites.model import Guest, Host
from topolane_sites.movers import mover

HOSTS = tuple(
    Host(f"xen{n}", f"site-{n}", 2, 2**30, driver="libvirt", address=f"xen+tcp://10.9.0.{n}/system")
    for n in (1, 2)
)
GUEST = Guest("g1", "c", 1, 96 << 20, "xen1")


def main(words: list[str]) -> None:
    if words[0] == "start":
        libvirt.open("xen:///system").createXML(Path(words[1]).read_text(), 0)
        return
    moves = mover("libvirt")
    (here,) = moves.where(GUEST, HOSTS)
    source, target = HOSTS if here == "xen1" else HOSTS[::-1]
    seen: list[float] = []
    measured = moves.move(GUEST, source, target, seen.append)
    print(json.dumps({"from": here, "to": moves.where(GUEST, HOSTS), "measured": measured, "last": seen[-1]}))


main(sys.argv[1:])
