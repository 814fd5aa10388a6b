"""The sites file: what it says is read, and what it cannot mean is refused with file, line and value."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="topolane-sites is not installed with what it needs")
from topolane import InputError
from topolane.reading import size
from topolane_sites.files import read_config

FILE = """\
[manager]
listen = ["unix:/run/t/api.sock", "unix:/run/t/other.sock"]
programs = "unix:/run/t/programs.sock"
state = "sites.db"
policy = "inter-site-traffic"
act = true
interval = 2
moves-at-once = 3

[[site]]
name = "east"

[[site.host]]
name = "e1"
cores = 8
memory = "16 GiB"

[[site.host]]
name = "e2"
cores = 4
memory = 1073741824
speed = 1.5

[[site]]
name = "west"
[[site.host]]
name = "w1"
cores = 8
memory = "1.5 GB"

[[link]]
between = ["east", "west"]
latency = 0.005
bandwidth = 1.25e8
window = "4 MiB"

[[guest]]
name = "g1"
cores = 2
memory = "1 GiB"
host = "w1"
"""


def written(path: Path, text: str) -> Path:
    file = path / "sites.toml"
    file.write_text(text)
    return file


def test_a_file_is_read(tmp_path: Path) -> None:
    """Sites, hosts with their memory in bytes, links, guests, and the manager's settings."""
    config = read_config(written(tmp_path, FILE))
    assert [(host.name, host.site, host.memory) for host in config.hosts] == [
        ("e1", "east", 16 << 30),
        ("e2", "east", 1 << 30),
        ("w1", "west", 1_500_000_000),
    ]
    assert config.links[0].window == 4 << 20
    assert [str(one) for one in config.listen] == ["unix:/run/t/api.sock", "unix:/run/t/other.sock"]
    assert config.state == f"sqlite:///{tmp_path}/sites.db"
    assert (config.act, config.policy, config.at_once) == (True, "inter-site-traffic", 3)
    assert config.guests[0].host == "w1"
    assert [(host.speed, host.speed_given) for host in config.hosts] == [
        (1.0, False),
        (1.5, True),
        (1.0, False),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("interval = 2", "interval = 0", 7, "interval must be a number from 0.05 to 3600, not 0"),
        ("interval = 2", "interval = true", 7, "not True"),
        ('state = "sites.db"', 'state = "mysql://x"', 4, "state is neither a file nor a URL"),
        (
            'host = "w1"',
            'host = "w1"\n[[guest]]\nname = "g1"\ncores = 1\nmemory = 1\nhost = "e1"',
            43,
            "'g1' is a guest",
        ),
        ('memory = "1.5 GB"', 'memory = 1\ndriver = "qmp"', 30, "'qmp' wants an address"),
        ("cores = 4", "cores = 0", 20, "from 1 to "),
        ("interval = 2", "pause = 2", 7, "pause is not known here; there are listen"),
        ('policy = "inter-site-traffic"', 'policy = "best"', 5, "'best' is not known; there are stay"),
        ('name = "e2"', 'name = "e1"', 19, "'e1' is a host already"),
        ('memory = "1.5 GB"', 'memory = "1.5 Gb"', 29, "not '1.5 Gb'"),
        ('memory = "1.5 GB"', "", 26, "memory is missing"),
        ("memory = 1073741824", "memory = 1073741824.5", 21, "not 1073741824.5"),
        ('between = ["east", "west"]', 'between = ["east", "south"]', 32, "two of the sites"),
        ("latency = 0.005", "latency = nan", 33, "not nan"),
        ('host = "w1"', 'host = "w2"', 41, "'w2' is no host of this file"),
        ("cores = 2", "cores = 9", 39, "of guest 'g1' are 9; host 'w1' has 8"),
        (
            'memory = "1 GiB"',
            'memory = "2 GiB"',
            40,
            "of guest 'g1' is 2147483648 bytes; host 'w1' has 1500000000",
        ),
        ("act = true", "keep = -1", 6, "keep must be a number from 0 to 36500, not -1"),
        ("speed = 1.5", "speed = 0", 22, "speed must be a number from 0.01 to 100, not 0"),
        ("speed = 1.5", "speed = -1.5", 22, "not -1.5"),
        ("speed = 1.5", "speed = 101", 22, "not 101"),
        ("speed = 1.5", "speed = nan", 22, "not nan"),
        ("speed = 1.5", "speed = inf", 22, "not inf"),
        ("speed = 1.5", 'speed = "fast"', 22, "not 'fast'"),
        ("cores = 4", 'cores = 4\ndriver = "xen"', 21, "'xen' is not known; there are"),
        ('"unix:/run/t/other.sock"', '"127.0.0.1"', 2, "'127.0.0.1' is no address"),
        ('"unix:/run/t/other.sock"', '"127.0.0.1:9762"', 2, "a TCP port; it needs a token-file"),
        ('"unix:/run/t/programs.sock"', '"127.0.0.1:9761"', 3, "a TCP port; it needs a report-token-file"),
        ("act = true", 'act = true\ntoken-file = "none"', 7, "No such file"),
        ("[[link]]", "[link]", 31, "must be tables [[link]]"),
        ("act = true", "act = = true", None, "line 6"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, line: int | None, said: str) -> None:
    """One thing changed at a time: the error names the file, its line, and the value or what there is."""
    assert old in FILE
    file = written(tmp_path, FILE.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        read_config(file)
    assert str(error.value).startswith(f"{file}:{line}: " if line else f"{file}: ")
    assert said in str(error.value)


def test_a_token_that_others_read_or_that_is_short_is_refused(tmp_path: Path) -> None:
    """A token file must be its owner's alone and hold 16 characters."""
    token = tmp_path / "token"
    file = written(tmp_path, FILE.replace("act = true", 'act = true\ntoken-file = "token"'))
    for text, mode, said in (("short", 0o600, "at least 16"), ("x" * 32, 0o644, "chmod 600")):
        token.write_text(text)
        token.chmod(mode)
        with pytest.raises(InputError, match=said):
            read_config(file)
    token.chmod(0o600)
    assert read_config(file).token == "x" * 32


@pytest.mark.parametrize("other", ["token-file", "report-token-file"])
def test_the_token_of_reads_is_one_of_its_own(tmp_path: Path, other: str) -> None:
    """The token that may only read is refused if another file holds it too: it would allow more."""
    for name in ("reads", "other"):
        (tmp_path / name).write_text("x" * 32)
        (tmp_path / name).chmod(0o600)
    both = f'act = true\nread-token-file = "reads"\n{other} = "other"'
    file = written(tmp_path, FILE.replace("act = true", both))
    with pytest.raises(InputError, match=":7: read-token-file holds a token that allows more"):
        read_config(file)
    (tmp_path / "reads").write_text("y" * 32)
    assert read_config(file).read_token == "y" * 32


def test_beyond_this_machine_token_and_certificate_are_needed(tmp_path: Path) -> None:
    """An address that others reach is refused with a token alone; with certificate and key it is taken."""
    token = tmp_path / "token"
    token.write_text("x" * 32)
    token.chmod(0o600)
    text = FILE.replace('"unix:/run/t/other.sock"', '"0.0.0.0:9762"').replace(
        "act", 'token-file = "token"\nact', 1
    )
    with pytest.raises(InputError, match="certificate and key are needed"):
        read_config(written(tmp_path, text))
    text = text.replace("act", 'certificate = "c.pem"\nkey = "k.pem"\nact', 1)
    assert read_config(written(tmp_path, text)).certificate == str(tmp_path / "c.pem")


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [("16 GiB", 16 << 30), ("1.5 GB", 1_500_000_000), (5, 5), ("7", 7), ("1 PiB", None), (0, None), (-1, None),
     (True, None), ("", None), ("1e3", None), ("99999999999999 TiB", None)],
)  # fmt: skip
def test_sizes(text: object, bytes_: int | None) -> None:
    """Bytes, with and without a unit."""
    assert size(text) == bytes_
