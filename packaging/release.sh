#!/usr/bin/env bash
# Makes and checks all that is published, from the last commit, in a directory of its own:
#
#   release.sh [DIRECTORY]    DIRECTORY (dist) gets wheels, Debian packages, lists of parts and SHA256SUMS
#
# Environment:
#   PROFILE     the Cargo profile of the engine (release)
#   PROCESSORS  for which wheels and packages of the command line are made (x86_64 aarch64)
#   SUITES      of Debian, for packages of the command line (bookworm trixie)
#   REPEAT      yes: makes all a second time in another directory, and ends with exit code 1 unless the bytes are the same
#   CHECK       no: the files are not installed and run
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/version.sh"
: "${PROFILE:=release}" "${PROCESSORS:=x86_64 aarch64}" "${SUITES:=bookworm trixie}" "${REPEAT:=no}" "${CHECK:=yes}"

[ $# -le 1 ] || die 2 "at most one word is needed: release.sh [DIRECTORY]"
target=$(realpath -m "${1:-$ROOT/dist}")
PACKAGES="" need git make cargo
TOPOLANE_COMMIT=$(git -C "$ROOT" rev-parse HEAD)
maintainer
homepage
export TOPOLANE_COMMIT PROFILE MAINTAINER HOMEPAGE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The sources in $1, and in $1/dist what is made of them.
make_all() {
    local tree=$1 wheel native suite
    mkdir "$tree"
    git -C "$ROOT" archive HEAD | tar -x -C "$tree"
    make --silent -C "$tree" wheel PROFILE="$PROFILE" PROCESSORS="$PROCESSORS"
    native=$(echo "$tree"/dist/topolane-[0-9]*_"$(uname -m)".whl)
    [ -f "$native" ] || die 2 "PROCESSORS is '$PROCESSORS', without the processor of this machine"
    "$tree/.venv/bin/pip" install --quiet --no-deps --no-index "$native"
    for wheel in "$tree"/dist/topolane-[0-9]*.whl; do
        for suite in $SUITES; do "$tree/packaging/command-deb.sh" "$wheel" "$suite" "$tree/dist"; done
    done
    plugin "$tree"
    lists "$tree" "$native"
    (cd "$tree/dist" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
}

# The plugin of Slurm for all processors, and a package of it for this one with the same engine.
plugin() {
    local tree=$1 name sources
    name=topolane-slurm-plugin-$VERSION-$(uname -m)
    # A directory a line, without spaces in it: it is one of ours.
    mapfile -t sources < <("$tree/tests/slurm/slurm_sources.sh")
    [ ${#sources[@]} -gt 0 ] || die 3 "the source of no Slurm can be had"
    "$tree/packaging/plugin.sh" "$tree/dist" "$PROCESSORS" "${sources[@]}"
    tar -C "$tree" -xzf "$tree/dist/$name.tar.gz"
    ENGINE=$tree/$name/libtopolane.so "$tree/packaging/deb.sh" "$tree/dist" "${sources[@]}"
}

# What is in the files: the crates of the engine, the Python packages that are installed with it, and the packages of the page.
lists() {
    local tree=$1 name=$1/dist/topolane-$VERSION
    unzip -p "$2" '*/sboms/*.cyclonedx.json' >"$name-crates.cdx.json"
    "$tree/.venv/bin/uv" venv --quiet "$tree/installed"
    "$tree/.venv/bin/uv" pip install --quiet --python "$tree/installed" \
        --constraints "$tree/requirements/base.txt" --constraints "$tree/requirements/test.txt" \
        "topolane[kubernetes,serve,slurm] @ file://$2"
    "$tree/.venv/bin/cyclonedx-py" environment --output-reproducible "$tree/installed/bin/python" |
        sed "s|file://$tree/dist/|file:///|g" >"$name-python.cdx.json"
    (cd "$tree/web" && PATH="$tree/.venv/node/bin:$PATH" npm sbom --omit dev --sbom-format cyclonedx) |
        sed '/"serialNumber":/d; /"timestamp":/d' >"$name-page.cdx.json"
    "$tree/.venv/bin/python" "$tree/tools/licences.py" "$name"-{crates,python,page}.cdx.json >"$name-licences.txt"
}

make_all "$work/topolane"
if [ "$REPEAT" = yes ]; then
    make_all "$work/again"
    diff "$work/topolane/dist/SHA256SUMS" "$work/again/dist/SHA256SUMS" || die 1 "two builds differ"
    echo "two builds in two directories gave the same bytes"
fi
if [ "$CHECK" = yes ]; then
    (cd "$work/topolane" && TOPOLANE_DIST=$work/topolane/dist .venv/bin/python -m pytest -q -ra -p no:cacheprovider \
        --confcutdir tests/release tests/release)
fi
mkdir -p "$target"
cp "$work"/topolane/dist/* "$target"
ls -l "$target"
