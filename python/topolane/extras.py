"""Says what to install for the parts of Topolane that need more Python packages than a plain installation
has.
"""

from __future__ import annotations

import shlex
import sys
from importlib import metadata

from topolane._engine import InputError


def missing(what: str, needed_for: str, error: ImportError) -> InputError:
    """The sentence for a package that cannot be imported: what needs it, and the command that installs it.

    what: the subject of the sentence, such as `this command`. needed_for: the name of an extra in `pyproject.toml`, or of the
    distribution of a wing. Topolane itself is in no package index, so the command names the packages that it needs.
    """
    is_wing = needed_for.startswith("topolane-")
    conditions = ("",) if is_wing else (f"extra == '{needed_for}'", f'extra == "{needed_for}"')
    try:
        requirements = metadata.requires(needed_for if is_wing else "topolane") or []
    except metadata.PackageNotFoundError:
        requirements = []
    wanted = [
        name.strip()
        for name, _, condition in (line.partition(";") for line in requirements)
        if condition.strip() in conditions and not name.startswith("topolane")
    ]
    sentence = f"{what} needs the Python packages of {'' if is_wing else 'the extra '}{needed_for}: {error}"
    if not wanted:
        return InputError(sentence)
    return InputError(
        f"{sentence}; install them with: {shlex.join([sys.executable, '-m', 'pip', 'install', *wanted])}"
    )
