"""The texts of a subnet and its forwarding tables, read by patterns alone: a check on the readers."""

import re


class Text:
    """What ibnetdiscover and opensm (or dump_fts) say of one subnet."""

    def __init__(self, net: str, tables: str) -> None:
        self.name: dict[str, str] = {}
        self.lid: dict[str, int] = {}
        self.far: dict[tuple[str, int], str] = {}
        for line in net.splitlines():
            if found := re.match(r'(?:Switch|Ca)\s+\d+ "(\S+)"\s+# "(\S+)"', line):
                device = found[1]
                self.name[device] = found[2]
            elif found := re.match(r'\[(\d+)\].*?"(\S+)"\[\d+\]', line):
                self.far[device, int(found[1])] = found[2]
                if own := re.search(r"# lid (\d+) lmc", line):
                    self.lid[device] = int(own[1])
        self.port: dict[tuple[str, int], int] = {}
        for line in tables.splitlines():
            if found := re.search(r"guid 0x([0-9a-f]{16})", line) if "Unicast" in line else None:
                switch = f"S-{found[1]}"
            elif found := re.match(r"0x([0-9a-f]{4}) (\d{3}) ", line):
                self.port[switch, int(found[1], 16)] = int(found[2])

    def walk(self, source: str, target: str) -> list[tuple[str, int]]:
        """(device, port out) from one host to another."""
        way = [(source, 1)]
        while (at := self.far[way[-1]]) != target:
            assert len(way) < 10
            way.append((at, self.port[at, self.lid[target]]))
        return way
