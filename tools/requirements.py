"""Prints the requirements that pyproject.toml files pin: those to build and run, and the extras named as
arguments.
"""

import pathlib
import sys
import tomllib

root = pathlib.Path(__file__).parent.parent
project, studies = (
    tomllib.loads((root / file).read_text()) for file in ("pyproject.toml", "python/pyproject.toml")
)
pins = project["build-system"]["requires"] + studies["build-system"]["requires"]
pins += project["project"]["dependencies"]
for extra in sys.argv[1:]:
    pins += project["project"]["optional-dependencies"][extra]
print("\n".join(pins))
