"""Instances of Nugent, Vollmann & Ruml (Operations Research 16, 1968), with QAPLIB's numbering.

Locations are the cells of a grid with Manhattan distances. The smaller instances use the first facilities of
nug30 (Burkard, Karisch & Rendl 1997). All optima are proven (Anstreicher et al. 2002).
"""

from __future__ import annotations

FLOW = """
    3 24 003 0A40 24005 A05021 505202A 025202A1 52100153A 214604A525 50102AA0150 05020A605605
    0045020020152 20020502012202 004505A43510414 5001202505002050 62611512202025132
    303100AA0500130025 0121001602020A12010 16522050430060020255 A1520A55056420500A524
    00245025506514026A1105 A1101032250A52205403100 220200550241500530510445
    120024005A500000502504451 153210252A3004550516051000 11120A052120121200255001A00
    0A0521105520551550A502201002 1525113222A1550A10A3052000A22
"""
"""The lower triangle of nug30's flows, row by row from the second row; A stands for 10."""

GRIDS = {
    "nug21": (3, 7, 2438),
    "nug22": (2, 11, 3596),
    "nug24": (4, 6, 3488),
    "nug27": (3, 9, 5234),
    "nug28": (4, 7, 5166),
    "nug30": (5, 6, 6124),
}
"""Rows and columns of the grid, and the optimum."""


def instance(name: str) -> tuple[int, list[float], list[float], int]:
    """The size n, flows and distances row by row, and the optimum."""
    rows, columns, best = GRIDS[name]
    n = rows * columns
    lower = [[float(int(digit, 16)) for digit in row] for row in FLOW.split()]
    flow = [0.0] * (n * n)
    for a in range(1, n):
        for b, value in enumerate(lower[a - 1]):
            flow[a * n + b] = flow[b * n + a] = value
    cells = [divmod(place, columns) for place in range(n)]
    distance = [float(abs(a[0] - b[0]) + abs(a[1] - b[1])) for a in cells for b in cells]
    return n, flow, distance, best
