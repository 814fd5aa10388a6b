"""Colours, the same in every figure.

Figures are drawn in the light colours. On the page each becomes a CSS variable, whose dark value stands next
to it here. Series colours come from Okabe and Ito's palette, which people with any of the common
colour-vision deficiencies can tell apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

INK, MUTED, FAINT, SURFACE = "#1b1f24", "#5c6670", "#d5dade", "#ffffff"
IDLE, LOCAL, SHARED = "#e9edf0", "#a4aeb7", "#d0021b"
GAIN, LOSS = "#0072b2", "#d55e00"

# light colour: (name of the CSS variable, dark colour)
THEME = {
    INK: ("ink", "#e6e9ec"),
    MUTED: ("muted", "#a3adb6"),
    FAINT: ("faint", "#3a424a"),
    SURFACE: ("surface", "#171b20"),
    IDLE: ("idle", "#272e35"),
    LOCAL: ("local", "#66717b"),
    SHARED: ("shared", "#ff4d5e"),
    "#0072b2": ("blue", "#4aa3df"),
    "#d55e00": ("vermilion", "#ff8a4c"),
    "#009e73": ("green", "#2cc99b"),
    "#b0588a": ("purple", "#e59cc4"),
    "#56b4e9": ("sky", "#9ad6fa"),
    "#e69f00": ("orange", "#ffc145"),
    "#7f5b3c": ("brown", "#c29b78"),
    "#4d5a9e": ("indigo", "#98a4ec"),
    "#8f9a1b": ("olive", "#c8d44e"),
}

# Link loads from the lowest class to the highest, from Matplotlib's inferno, which has even steps, also for
# people with colour-vision deficiencies. Light pages run from pale to dark, dark pages from dark to pale.
HEAT = ("#f3f68a", "#fbbc21", "#f68013", "#db503b", "#b1325a", "#7f1e6c", "#4c0c6b", "#160b39")
HEAT_DARK = ("#4a0c6b", "#771c6d", "#a22b62", "#cb4149", "#eb6429", "#fa9407", "#f9c932", "#f5f992")
HEAT_THEME = {light: (f"heat-{i}", dark) for i, (light, dark) in enumerate(zip(HEAT, HEAT_DARK), start=1)}

SERIES = ("#0072b2", "#d55e00", "#009e73", "#b0588a", "#e69f00", "#56b4e9", "#7f5b3c", "#4d5a9e")

# No reds: red marks links that two jobs may share.
JOBS = ("#0072b2", "#e69f00", "#009e73", "#56b4e9", "#7f5b3c", "#4d5a9e", "#8f9a1b")

RAILS = (*JOBS, "#b0588a")


PALE = {
    "#0072b2": "#7fb8d8",
    "#d55e00": "#eaae7f",
    "#009e73": "#7fcdb6",
    "#b0588a": "#d7a9c3",
    "#e69f00": "#f2cf7e",
    "#56b4e9": "#a9d9f3",
    "#7f5b3c": "#bdab9b",
    "#4d5a9e": "#a3a9cc",
}
"""The paler colour of a variant of a series."""
PALE_DARK = (*("#2b5f80", "#95562f", "#1f785f", "#86617a", "#957330", "#5b7f92", "#75604c", "#5c638c"),)
THEME |= {pale: (f"pale-{i}", dark) for i, (pale, dark) in enumerate(zip(PALE.values(), PALE_DARK), start=1)}


def hues(rules: Sequence[Hashable]) -> list[str]:
    """The colours of runs with these rules: one hue for each rule; all runs of it but the first are paler."""
    order = {rule: index for index, rule in enumerate(dict.fromkeys(rules))}
    seen: set[Hashable] = set()
    found = []
    for rule in rules:
        colour = series(order[rule])
        found.append(PALE[colour] if rule in seen else colour)
        seen.add(rule)
    return found


def series(index: int) -> str:
    """The colour of run `index`. Colours repeat after eight; every run is labelled as well."""
    return SERIES[index % len(SERIES)]
