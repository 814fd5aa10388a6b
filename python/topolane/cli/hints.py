"""Adds the nearest known name to a sentence that refuses a name and lists the known ones."""

from __future__ import annotations

import difflib
import re

QUOTED = re.compile(r"'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"")
LISTS = (" there are ", " is not one of ", " is not ", ": ")
"""What is between a refused name and the known ones: that of the engine, of Click, and of Python."""
LONGEST = 10_000
"""The most characters of a sentence that is searched."""


def with_nearest(sentence: str) -> str:
    """The sentence with `(did you mean 'NAME'?)` after the refused name, if a name that it lists is like it."""
    if len(sentence) > LONGEST:
        return sentence
    for mark in LISTS:
        before, found, after = sentence.partition(mark)
        refused = list(QUOTED.finditer(before)) if found else []
        if refused:
            at = refused[-1]
            name = nearest(at[1] or at[2], listed(after))
            return (
                f"{sentence[: at.end()]} (did you mean '{name}'?){sentence[at.end() :]}" if name else sentence
            )
    return sentence


def listed(text: str) -> list[str]:
    """The names at the beginning of a text, separated by commas, without their parameters."""
    names = re.sub(r"\([^()]*\)", "", text).partition(";")[0].split(",")
    plain = (re.sub(r"^(or|and) ", "", name.strip()).strip("'\" ") for name in names)
    return [name for name in plain if re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name)]


def nearest(refused: str, known: list[str]) -> str | None:
    """The known name that is most like the refused one, with its parameters; None if none is like it."""
    head, bracket, parameters = refused.partition("(")
    by_letters = {name.lower(): name for name in known}
    found = difflib.get_close_matches(head.lower(), by_letters, 1)
    return by_letters[found[0]] + bracket + parameters if found and by_letters[found[0]] != head else None
