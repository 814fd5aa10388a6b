"""The versions of Flux whose protocol the scheduler speaks."""

import re

from topolane._engine import InputError

MAJOR, OLDEST_MINOR = 0, 84


def check_version(version: str) -> None:
    """Raises InputError for a version of flux-core, such as `0.88.0-59-g4a5e79f56`, that the scheduler does
    not support.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None:
        raise InputError(f"cannot read the version of Flux: {version[:80]!r}")
    major, minor = (int(part) for part in found.groups())
    if major != MAJOR or minor < OLDEST_MINOR:
        raise InputError(
            f"this instance runs flux-core {version}: Topolane needs {MAJOR}.{OLDEST_MINOR} or newer, before {MAJOR + 1}.0"
        )
