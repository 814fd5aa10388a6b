"""The width of a text in DejaVu Sans, computed without a font library, for the layout of figures."""

from __future__ import annotations

FIRST = 32
WIDTHS = (
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 53,
    100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50,
    50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84,
)  # fmt: skip
"""Widths of the characters from space to tilde, in hundredths of the font size."""
OTHERS = 100


def width_of(text: str, size: float) -> float:
    """The width of `text` in the unit of `size`, the font size. A character outside ASCII counts as a wide
    one.
    """
    places = (ord(letter) - FIRST for letter in text)
    return size / 100 * sum(WIDTHS[place] if 0 <= place < len(WIDTHS) else OTHERS for place in places)
