"""Says what to install for the parts of Topolane that need more Python packages than a plain installation
has.
"""

from __future__ import annotations

import shlex
import sys
from importlib import metadata

from topolane._engine import InputError


def missing(what: str, extra: str, error: ImportError) -> InputError:
    """The error for a package that cannot be imported. It names what needs the package and the command that
    installs it.

    what: the subject of the sentence, such as `this command`. extra: the name of the extra in
    `pyproject.toml`. Topolane itself is in no package index, so the command names the packages of the extra.
    """
    try:
        requirements = metadata.requires("topolane") or []
    except metadata.PackageNotFoundError:
        requirements = []
    wanted = [
        name.strip()
        for name, _, condition in (line.partition(";") for line in requirements)
        if condition.strip() in (f"extra == '{extra}'", f'extra == "{extra}"')
    ]
    sentence = f"{what} needs the Python packages of the extra {extra}: {error}"
    if not wanted:
        return InputError(sentence)
    return InputError(
        f"{sentence}; install them with: {shlex.join([sys.executable, '-m', 'pip', 'install', *wanted])}"
    )
