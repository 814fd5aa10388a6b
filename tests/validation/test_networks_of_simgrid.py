"""`max-min` on dragonflies and tori gives flows the rates that SimGrid's own dragonfly and torus give them, over the same routes."""

from simgrid_networks import PATTERNS, SHAPES, is_kept, pattern_rows


def test_rates_are_simgrids_over_the_same_routes(compiled):
    """Under `minimal` where groups are joined all to all, under `dimension-order` where no ring has two ways of one length, and
    everywhere over the routes that SimGrid takes."""
    rows = pattern_rows(compiled("simgrid_rates"), seeds=1)
    assert len(rows) == sum(len(PATTERNS) * (len(shape.routings) + 1) for shape in SHAPES)
    assert [row for row in rows if not is_kept(row)] == []
    # The comparison can fail: one hashed route of several is another one than SimGrid's, and so is half a message either way.
    differing = {row.machine for row in rows if row.equal < 1}
    assert differing == {"all to all", "rows and columns", "torus 4 x 6 x 4"}
