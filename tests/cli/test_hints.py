"""The nearest known name in the sentence that refuses a name."""

from __future__ import annotations

import pytest
from topolane.cli import hints

RUN = ("simulate", "--limit", 10)


@pytest.mark.parametrize(
    ("arguments", "refused", "nearest"),
    [
        ((*RUN, "--policy", "isolatd"), "unknown policy 'isolatd'", "isolated"),
        (("compare", "--policies", "first-fit,Jigsaw"), "unknown policy 'Jigsaw'", "jigsaw"),
        ((*RUN, "--queue", "eazy"), 'unknown queue "eazy"', "easy"),
        ((*RUN, "--machine", "cabb"), "no machine and no file is called 'cabb'", "cab"),
        (("machine", "show", "fat-tre(radix=8)"), "called 'fat-tre(radix=8)'", "fat-tree(radix=8)"),
        ((*RUN, "--workload", "cab-agu"), "no workload 'cab-agu'", "cab-aug"),
        (("machine", "convert", "cab", "--to", "slrum"), "Invalid value for '--to': 'slrum'", "slurm"),
        (("machine", "show", "cab", "--format", "tmol"), "Invalid value for '--format': 'tmol'", "toml"),
        ((*RUN, "--network", "max-mi"), 'unknown model "max-mi"', "max-min"),
        ((*RUN, "--network", "full", "--routing", "d-mod"), "called 'd-mod'", "d-mod-k"),
        (("traffic", "stencl", "--ranks", 4), 'pattern "stencl"', "stencil4d"),
        (("map", "--traffic", "stencl", "--ranks", 4), "no file is called 'stencl'", "stencil4d"),
    ],
)
def test_a_value_that_is_nearly_right_is_suggested(topolane, arguments, refused, nearest):
    """The known name stands behind the refused one, in the one sentence that every error is."""
    topolane.refused(*arguments, says=f"{refused} (did you mean '{nearest}'?)")


def test_the_nearest_option_and_command_is_suggested(topolane):
    """Of several, the nearest; a command of a wing like any other."""
    topolane.refused(
        "simulate", "--limt", 3, says="No such option '--limt'. Did you mean '--limit'? ('topolane"
    )
    topolane.refused(
        "slurm", "statsu", says="No such command 'statsu'. Did you mean 'status'? ('topolane slurm"
    )


def test_a_name_that_is_like_no_other_gets_no_suggestion(topolane):
    for arguments in ((*RUN, "--policy", "zzz"), (*RUN, "--workload", "zzz"), ("zzz",), (*RUN, "--zzz")):
        assert "id you mean" not in topolane.run(*arguments).stderr


@pytest.mark.parametrize(
    "sentence",
    [
        "log.swf:2: field 4 is '1x0', not a number",
        "'none' is not a number",
        "x.toml:3: unknown key 'nodes': give 'name', which is no list",
        "--at 'here': there is no run",
        "no quoted name; there are easy, fcfs",
        "unknown queue 'easy'; there are easy, fcfs",
        "'" + "a" * 20_000 + "; there are " + "a, " * 9,
        "",
    ],
)
def test_other_sentences_stay(sentence: str) -> None:
    """Without a refused name, a list or a name that is like it, and where the name itself is listed."""
    assert hints.with_nearest(sentence) == sentence


def test_a_list_is_read_without_parameters_quotes_and_words_between() -> None:
    found = hints.listed("'a', b(x=1, y=2), or c-2; and there is no file, d")
    assert found == ["a", "b", "c-2"]
