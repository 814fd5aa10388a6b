"""Settings of a run: each is written once, as a field of a dataclass that the command line offers as an option."""

from __future__ import annotations

import dataclasses
from typing import Any


def option(default: Any, help: str, *, flag: str | None = None) -> Any:
    """A field with that default which is also an option of the command line.

    flag: the name of the option; by default the field's, with dashes.
    """
    return dataclasses.field(default=default, metadata={"help": help, "flag": flag})
