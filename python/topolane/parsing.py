"""Parses TOML and JSON from users and other programs. Errors are one sentence that names file and line."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from topolane import texts
from topolane._engine import InputError

if sys.version_info >= (3, 11):  # noqa: UP036
    import tomllib
else:  # inside Nova's services (topolane-nova)
    import tomli as tomllib

LONGEST_SHOWN = 80
"""The most characters of a value that an error shows."""


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """The table in a TOML text. Raises InputError, with the line, for invalid text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source}: {error}") from error
    except RecursionError as error:
        raise _too_deep(text, source, 1) from error
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"{source}: not TOML that can be used: {error}") from error


def parse_json(text: str, source: str, line: int = 1) -> Any:
    """The value in a JSON text that begins at `line` of the source. Raises InputError, with the line, for
    invalid text.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{source}:{line + error.lineno - 1}"
        raise InputError(f"{place}: not JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise _too_deep(text, source, line) from error
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"{source}:{line}: not JSON that can be used: {error}") from error


def read_json(path: str | Path) -> Any:
    """The value in a JSON file. Raises InputError if the file is not JSON."""
    return parse_json(texts.read_text(path, texts.SMALL), str(path))


def _too_deep(text: str, source: str, line: int) -> InputError:
    """The error for too deep nesting. It names the line with the most open brackets, including those in
    strings.
    """
    depth = deepest = 0
    where = line
    for number, one in enumerate(text.splitlines(), line):
        for sign in re.findall(r"[][{}]", one):
            depth += 1 if sign in "[{" else -1
            if depth > deepest:
                deepest, where = depth, number
    return InputError(f"{source}:{where}: arrays and tables are nested too deep to be read")


def shown(value: object) -> str:
    """A value of a file for an error message: on one line and cut short."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        return "a number too long to show" if isinstance(value, int) else "a value that is too long to show"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."
