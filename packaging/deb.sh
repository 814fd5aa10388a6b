#!/usr/bin/env bash
# Makes the Debian package of the topology plugin, with a build for each Slurm whose configured source is given:
#
#   deb.sh DIRECTORY SLURM_SOURCE...    DIRECTORY gets topolane-slurm_VERSION_ARCH.deb and its debug symbols
#
# Environment:
#   TOPOLANE           the command of this clone (.venv/bin/topolane)
#   ENGINE             a libtopolane.so; by default it is compiled
#   MAINTAINER         "Name <address>" of whoever makes the package (DEBFULLNAME and DEBEMAIL, or the last committer)
#   SOURCE_DATE_EPOCH  the time that the package has (that of the last commit)
#
# Wrong input ends with exit code 2, missing programs with 3.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/version.sh"
: "${TOPOLANE:=$ROOT/.venv/bin/topolane}"
maintainer

[ $# -ge 2 ] || die 2 "the source of Slurm is missing: deb.sh DIRECTORY SLURM_SOURCE..."
target=$(realpath -m "$1")
shift
[ -z "${ENGINE:-}" ] || ENGINE=$(realpath "$ENGINE")
PACKAGES="dpkg-dev and debhelper" need dpkg-buildpackage dh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/topolane-slurm

# Debian's options for compilers, with names of files that do not depend on where the clone is.
flags="$(cd "$ROOT" && dpkg-buildflags --get CPPFLAGS) $(cd "$ROOT" && dpkg-buildflags --get CFLAGS)"
for given; do
    [ -f "$given/config.h" ] || die 2 "$given: there is no configured source of Slurm: run its ./configure"
    source=$(realpath "$given")
    (cd "$ROOT" && $TOPOLANE slurm plugin build --slurm-source "$source" ${ENGINE:+--engine "$ENGINE"} --to "$stage" \
        --cc "${CC:-cc} $flags -ffile-prefix-map='$ROOT'=. -ffile-prefix-map='$source'=slurm") >/dev/null
    [ -n "${ENGINE:-}" ] || ENGINE=$stage/libtopolane.so
done
releases=$(cd "$stage/topolane" && printf '%s\n' *.so | sed 's/[.]so$//' | sort -V | paste -sd' ' | sed 's/ /, /g')

# Copies with the names of Slurm's plugins, for PluginDir: the loader makes one library of links to one file.
mkdir "$stage/copies"
for name in topolane tree block flat; do
    install -m 755 "$stage/topology_topolane.so" "$stage/copies/topology_$name.so"
done
cp -r "$ROOT/packaging/debian" "$stage/debian"
cp "$ROOT"/packaging/{slurm-conf,topolane.conf} "$ROOT/CHANGELOG.md" "$stage"
homepage
sed "s|@MAINTAINER@|$MAINTAINER|; s|@RELEASES@|$releases|; ${HOMEPAGE:+s|@HOMEPAGE@|$HOMEPAGE|;} /@HOMEPAGE@/d" \
    "$stage/debian/control.in" >"$stage/debian/control"
rm "$stage/debian/control.in"
cat >"$stage/debian/changelog" <<END
topolane-slurm ($VERSION-1) unstable; urgency=medium

  * Topolane $VERSION for Slurm $releases. See changelog.gz for what changed.

 -- $MAINTAINER  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END

if ! (cd "$stage" && dpkg-buildpackage --build=binary --no-sign --no-check-builddeps) >"$work/log" 2>&1; then
    cat "$work/log" >&2
    die 1 "dpkg-buildpackage failed"
fi
mkdir -p "$target"
cp "$work"/*.deb "$target"
for made in "$work"/*.deb; do echo "$target/$(basename "$made")"; done
