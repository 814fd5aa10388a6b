"""Prints name, version and licence of each part in CycloneDX lists, one per line.

python tools/licences.py topolane-0.1.0-crates.cdx.json ...
"""

import json
import pathlib
import sys
from collections.abc import Iterator


def parts(file: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    """Name, version and licence of each part in the list."""
    for part in json.loads(file.read_text()).get("components", []):
        yield part["name"], part.get("version", ""), licence(part) or "not stated"


def licence(part: dict) -> str:  # type: ignore[type-arg]
    """The licence of a part as the list states it: an expression, an identifier or a name."""
    found = part.get("licenses", [])
    stated = [
        each.get("expression") or each["license"].get("id") or each["license"].get("name") for each in found
    ]
    return ", ".join(sorted({one.rpartition(" :: ")[2].strip() for one in stated}))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        listed = sorted(set(parts(pathlib.Path(name))))
        print(f"{name.rpartition('/')[2]}: {len(listed)} parts")
        for each in listed:
            print("  {:34} {:14} {}".format(*each))
