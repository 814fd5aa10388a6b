#!/usr/bin/env bash
# Runs a command, by default the tests of the scheduler's plugin, with another release of Nova:
#
#   other_release.sh VERSION [COMMAND...]
#   other_release.sh 31.3.1 python -m pytest -q tests/nova/test_nova_groups.py
#   other_release.sh 31.3.1 wheel dist/topolane_nova-*.whl
#
# The last one installs a wheel next to that Nova, as an operator does, whose constraints are the versions that are there: it
# fails if the wheel wants another version of any package, or if the plugin cannot be imported.
#
# Nova and the Placement of its series go into an environment of their own, /tmp/topolane-nova-VERSION (500 MB,
# kept for the next time), with all they need as it was on the day of the series' release; Topolane is that of this
# clone, as `make build` leaves it. Needs an index of packages that says when each was uploaded.
# PYTHON: one that this Nova and Topolane both run on, 3.11 for all of these; the wheel topolane-nova also runs on 3.10.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
UV="uv==0.13.9"

die() {
    echo "other_release.sh: $2" >&2
    exit "$1"
}

# The day before which all packages were uploaded but Nova and Placement themselves.
released() {
    case $1 in
        27) echo 2023-03-23 ;;
        28) echo 2023-10-05 ;;
        29) echo 2024-04-04 ;;
        30) echo 2024-10-03 ;;
        31) echo 2025-04-03 ;;
        32) echo 2025-10-02 ;;
        33) echo 2026-04-02 ;;
        34) echo 2026-10-01 ;;
        *) die 2 "Nova $VERSION is of no series from 27 to 34" ;;
    esac
}

install() {
    local series=${VERSION%%.*} day
    day=$(released "$series")
    rm -rf "$TREE"
    "${PYTHON:-python3}" -m venv "$TREE"
    "$TREE/bin/pip" install --quiet "$UV"
    # setuptools brings pkg_resources, which older libraries import without naming it.
    "$TREE/bin/uv" pip install --quiet --python "$TREE/bin/python" --exclude-newer "$day" \
        --exclude-newer-package nova=false --exclude-newer-package openstack-placement=false \
        "nova==$VERSION" "openstack-placement==$((series - 18)).*" setuptools \
        ddt oslotest requests-mock testtools wsgi-intercept
    "$TREE/bin/uv" pip freeze --quiet --python "$TREE/bin/python" >"$TREE/constraints.txt"
    touch "$TREE/installed"
}

install_what_tests_need() {
    "$ROOT/.venv/bin/python" "$ROOT/tools/requirements.py" test | grep -Ev '^(maturin|evalys|selenium)' |
        "$TREE/bin/uv" pip install --quiet --python "$TREE/bin/python" -r /dev/stdin
    touch "$TREE/for-tests"
}

# Nova finds what checks extra specs by the entry points of a package that is installed.
write_entry_points() {
    mkdir -p "$1"
    "$ROOT/.venv/bin/python" - "$ROOT/pyproject.toml" >"$1/entry_points.txt" <<'END'
import sys, tomllib
with open(sys.argv[1], "rb") as file:
    groups = tomllib.load(file)["project"]["entry-points"]
for group, points in groups.items():
    print(f"[{group}]", *(f"{name} = {value}" for name, value in points.items()), sep="\n")
END
}

# In a copy of the environment, so that the other uses of it are of the clone.
install_wheel() {
    local copy=$TREE-wheel
    rm -rf "$copy"
    "${PYTHON:-python3}" -m venv "$copy"
    "$TREE/bin/uv" pip install --quiet --python "$copy/bin/python" -r "$TREE/constraints.txt"
    "$TREE/bin/uv" pip install --quiet --python "$copy/bin/python" -c "$TREE/constraints.txt" "$1"
    (cd "$copy" && bin/python -W ignore -c 'import topolane.nova.filter, topolane.nova.weigher, topolane.nova.measured_sources')
    "$TREE/bin/uv" pip freeze --python "$copy/bin/python" 2>/dev/null |
        grep -vxFf "$TREE/constraints.txt" | sed "s|^|Nova $VERSION, $("$copy/bin/python" -V): added |; s| @ .*/| |"
}

VERSION=${1:-}
[[ $VERSION =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die 2 "the version is '$VERSION', not one such as 31.3.1"
shift
compgen -G "$ROOT/python/topolane/_engine*.so" >/dev/null || die 3 "Topolane is not built here: make build"
TREE=/tmp/topolane-nova-$VERSION
cd "$ROOT"
[ -e "$TREE/installed" ] || install
if [ "${1:-}" = wheel ]; then
    install_wheel "$(realpath "${2:?names no wheel}")"
    exit
fi
[ -e "$TREE/for-tests" ] || install_what_tests_need
# `topolane nova` wants its own openstacksdk, not the one that this Nova has.
[ $# -gt 0 ] || set -- python -m pytest -q tests/nova/test_nova_*.py --deselect tests/nova/test_nova_commands.py
write_entry_points "$TREE/topolane-0.dist-info"
PYTHONPATH=$ROOT/python:$TREE PATH=$TREE/bin:$PATH exec "$@"
