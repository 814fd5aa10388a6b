"""One file per figure. Each has `draw(runs, picture) -> Plot`; the figures of single runs have `draw(run,
picture, ...)`.
"""
