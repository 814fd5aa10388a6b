"""Prints what pyproject.toml pins: to build and run, and the extras named as arguments."""

import pathlib
import sys
import tomllib

project = tomllib.loads((pathlib.Path(__file__).parent.parent / "pyproject.toml").read_text())
pins = project["build-system"]["requires"] + project["project"]["dependencies"]
for extra in sys.argv[1:]:
    pins += project["project"]["optional-dependencies"][extra]
print("\n".join(pins))
