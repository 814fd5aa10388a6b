"""Makes the wheel topolane-nova from a wheel of topolane: the engine and the code that runs inside Nova's
services.

    python tools/nova_wheel.py dist/topolane-0.1.0-cp310-abi3-manylinux_2_28_x86_64.whl

The new wheel is written to the same folder. Its requirements can be met under the constraints of OpenStack's
releases.
"""

import base64
import configparser
import hashlib
import io
import pathlib
import sys
import zipfile

ELSEWHERE = (
    "baseline",
    "calibrate",
    "cli",
    "kubernetes",
    "live",
    "mapping",
    "mpi/native",
    "report",
    "slurm",
)
"""Parts of the package that the code inside Nova does not use."""
GROUPS = ("nova.api.extra_spec_validators", "oslo.config.opts")
METADATA = """\
Metadata-Version: 2.4
Name: topolane-nova
Version: {version}
Summary: Topolane's filter and weigher for nova-scheduler
License-Expression: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.10
Requires-Dist: numpy>=2.0,<3
Requires-Dist: tomli>=2.0,<3; python_version < "3.11"
"""


def main(source: pathlib.Path) -> pathlib.Path:
    """Writes the wheel and returns its path."""
    _, version, *tags = source.name.removesuffix(".whl").split("-")
    old, new = f"topolane-{version}.dist-info", f"topolane_nova-{version}.dist-info"
    target = source.with_name("-".join(["topolane_nova", version, *tags]) + ".whl")
    with zipfile.ZipFile(source) as whole:
        kept = {name: whole.read(name) for name in whole.namelist() if belongs(name)}
        kept |= {
            name.replace(old, new): whole.read(name) for name in (f"{old}/WHEEL", f"{old}/licenses/LICENSE")
        }
        points = entry_points(whole.read(f"{old}/entry_points.txt").decode())
    kept[f"{new}/METADATA"] = METADATA.format(version=version).encode()
    kept[f"{new}/entry_points.txt"] = points.encode()
    rows = [f"{name},sha256={digest(content)},{len(content)}\n" for name, content in kept.items()]
    kept[f"{new}/RECORD"] = "".join([*rows, f"{new}/RECORD,,\n"]).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as slim:
        for name, content in kept.items():
            slim.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return target


def belongs(name: str) -> bool:
    """Whether a file of the wheel belongs to the engine or to the code that runs in Nova."""
    return name.startswith("topolane/") and not name.startswith(
        tuple(f"topolane/{part}/" for part in ELSEWHERE)
    )


def entry_points(text: str) -> str:
    """The entry points of Nova's services."""
    read = configparser.ConfigParser()
    read.read_string(text)
    for group in set(read.sections()) - set(GROUPS):
        read.remove_section(group)
    written = io.StringIO()
    read.write(written)
    return written.getvalue()


def digest(content: bytes) -> str:
    """The digest of some content in the form of a wheel's RECORD."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    print(main(pathlib.Path(sys.argv[1])))
