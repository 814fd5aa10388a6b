#!/usr/bin/env bash
# Makes the RPM of the topology plugin, with a build for each Slurm whose configured source is given:
#
#   rpm.sh DIRECTORY SLURM_SOURCE...    DIRECTORY gets topolane-slurm-VERSION-RELEASE.ARCH.rpm
#
# Environment:
#   ENGINE             a libtopolane.so; by default cargo compiles it
#   SLURM_PACKAGE      the package that has topology_tree.so (slurm; on SUSE slurm-plugins)
#   SOURCE_DATE_EPOCH  the time that the package has (that of the last commit)
#
# Wrong input ends with exit code 2, missing programs with 3.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/version.sh"

[ $# -ge 2 ] || die 2 "the source of Slurm is missing: rpm.sh DIRECTORY SLURM_SOURCE..."
target=$1 sources=''
shift
for given; do
    [ -f "$given/config.h" ] || die 2 "$given: there is no configured source of Slurm: run its ./configure"
    sources+=" $(realpath "$given")"
done
homepage
PACKAGES="rpm (EL: rpm-build)" need rpmbuild
PACKAGES="" need gcc git tar
[ -n "${ENGINE:-}" ] || PACKAGES="" need cargo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/sources"
git -C "$ROOT" ls-files -z | tar -C "$ROOT" --null --files-from=- --sort=name --mtime="@$SOURCE_DATE_EPOCH" \
    --owner=0 --group=0 --numeric-owner --transform "flags=rSH;s,^,topolane-$VERSION/," -c |
    gzip -n >"$work/sources/topolane-$VERSION.tar.gz"

defines=("_topdir $work" "_sourcedir $work/sources" "topolane_version $VERSION" "slurm_sources $sources")
defines+=("use_source_date_epoch_as_buildtime 1" "clamp_mtime_to_source_date_epoch 1" "_buildhost localhost")
[ -z "${ENGINE:-}" ] || defines+=("engine $(realpath "$ENGINE")")
[ -z "$HOMEPAGE" ] || defines+=("homepage $HOMEPAGE")
[ -z "${SLURM_PACKAGE:-}" ] || defines+=("slurm_package $SLURM_PACKAGE")
options=()
for each in "${defines[@]}"; do options+=(--define "$each"); done
# What is needed has been looked for: it may be there without being a package.
if ! rpmbuild -bb --nodeps "${options[@]}" "$ROOT/packaging/rpm/topolane-slurm.spec" >"$work/log" 2>&1; then
    cat "$work/log" >&2
    die 1 "rpmbuild failed"
fi
mkdir -p "$target"
find "$work/RPMS" -name '*.rpm' | sort | while read -r made; do
    cp "$made" "$target"
    echo "$target/$(basename "$made")"
done
