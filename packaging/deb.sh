#!/usr/bin/env bash
# Makes the Debian package of the topology plugin, for the Slurm whose configured source is in a directory:
#
#   deb.sh SLURM_SOURCE [DIRECTORY]    DIRECTORY (dist) gets topolane-slurm_VERSION_ARCH.deb and its debug symbols
#
# Environment:
#   TOPOLANE           the command of this clone (.venv/bin/topolane)
#   ENGINE             a libtopolane.so; by default it is compiled
#   MAINTAINER         "Name <address>" of whoever makes the package
#   SOURCE_DATE_EPOCH  the time that the package has (that of the last commit)
#
# Wrong input ends with exit code 2, missing programs with 3.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/version.sh"
: "${TOPOLANE:=$ROOT/.venv/bin/topolane}" "${MAINTAINER:=Topolane <topolane@example.org>}"

[ -n "${1:-}" ] && [ $# -le 2 ] || die 2 "the source of Slurm is missing: deb.sh SLURM_SOURCE [DIRECTORY]"
[ -d "$1" ] || die 2 "$1: there is no source of Slurm"
source=$(realpath "$1") target=$(realpath -m "${2:-$ROOT/dist}")
[ -z "${ENGINE:-}" ] || ENGINE=$(realpath "$ENGINE")
PACKAGES="dpkg-dev and debhelper" need dpkg-buildpackage dh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/topolane-slurm

# Debian's options for compilers, with names of files that do not depend on where the clone is.
cd "$ROOT"
flags="$(dpkg-buildflags --get CPPFLAGS) $(dpkg-buildflags --get CFLAGS) -ffile-prefix-map='$source'=slurm"
$TOPOLANE slurm plugin build --slurm-source "$source" ${ENGINE:+--engine "$ENGINE"} --to "$stage" \
    --cc "${CC:-cc} $flags" >/dev/null
# Slurm loads a topology plugin only if it was compiled for exactly its release.
SLURM_RELEASE=$(<"$stage/topolane-slurm-release")
SLURM_NEXT=${SLURM_RELEASE%.*}.$((10#${SLURM_RELEASE##*.} + 1))
export SLURM_RELEASE SLURM_NEXT

cp -r "$ROOT/packaging/debian" "$stage/debian"
cp "$ROOT"/packaging/{slurm-conf,topolane.conf} "$ROOT/CHANGELOG.md" "$stage"
sed "s|@MAINTAINER@|$MAINTAINER|" "$stage/debian/control.in" >"$stage/debian/control"
rm "$stage/debian/control.in"
cat >"$stage/debian/changelog" <<END
topolane-slurm ($VERSION+slurm$SLURM_RELEASE-1) unstable; urgency=medium

  * Topolane $VERSION for Slurm $SLURM_RELEASE. See changelog.gz for what changed.

 -- $MAINTAINER  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END

if ! (cd "$stage" && dpkg-buildpackage --build=binary --no-sign --no-check-builddeps) >"$work/log" 2>&1; then
    cat "$work/log" >&2
    die 1 "dpkg-buildpackage failed"
fi
mkdir -p "$target"
cp "$work"/*.deb "$target"
for made in "$work"/*.deb; do echo "$target/$(basename "$made")"; done
