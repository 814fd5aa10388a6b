"""Prints what the pyproject.toml files pin: to build and run, and the extras and wings named as arguments."""

import pathlib
import sys
import tomllib

root = pathlib.Path(__file__).parent.parent


def read(file: str) -> dict:
    return tomllib.loads((root / file).read_text())


core = read("pyproject.toml")
wings = {wing: read(f"{wing}/pyproject.toml") for wing in ("sites", "gang", "studies")}
pins = [pin for each in (core, *wings.values()) for pin in each["build-system"]["requires"]]
pins += core["project"]["dependencies"]
extras = core["project"]["optional-dependencies"]
for name in sys.argv[1:]:
    wanted = wings[name]["project"]["dependencies"] if name in wings else extras[name]
    pins += [pin for pin in wanted if not pin.startswith("topolane")]
print("\n".join(dict.fromkeys(pins)))
