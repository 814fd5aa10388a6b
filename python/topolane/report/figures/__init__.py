"""One file per figure. Each has `draw(runs, picture) -> Plot`; the figures of single runs have `draw(run,
picture, ...)`.

A figure says what is drawn in values of its axes. The layout turns it into marks in points, and a writer turns
the marks into a file:

    figures/*.draw(...) -> Plot: words, alternative text, table, Figure
    Figure.marks() -> Shape, Dot, Text, Clip in points -> svg.to_svg: figures/*.svg
                                                          svg.inline: the page
                                                          png.to_png: figures/*.png, only with --png

Importing Matplotlib takes longer than the report of a month, so SVG does without it. `with_matplotlib` draws
calibrations, traffic matrices and the pictures of studies.
"""
