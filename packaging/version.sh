# Sourced by deb.sh and rpm.sh: the version, from Cargo.toml, and the time of a build that can be repeated.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
umask 022

die() {
    echo "$(basename "$0"): $2" >&2
    exit "$1"
}

VERSION=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"$/\1/p' "$ROOT/Cargo.toml")
[ -n "$VERSION" ] || die 1 "$ROOT/Cargo.toml has no version"
# The time of the last commit, if none is given, so that the same sources give the same package.
: "${SOURCE_DATE_EPOCH:=$(git -C "$ROOT" log -1 --format=%ct 2>/dev/null || date +%s)}"
[[ $SOURCE_DATE_EPOCH =~ ^[0-9]+$ ]] || die 2 "SOURCE_DATE_EPOCH is '$SOURCE_DATE_EPOCH', not a number of seconds"
export SOURCE_DATE_EPOCH

# Sets MAINTAINER, which a Debian package must have: whoever makes it, as Debian's tools and git know them.
maintainer() {
    [ -z "${DEBEMAIL:-}" ] || : "${MAINTAINER:=${DEBFULLNAME:-Topolane} <$DEBEMAIL>}"
    : "${MAINTAINER:=$(git -C "$ROOT" log -1 --format='%cn <%ce>' 2>/dev/null || true)}"
    [[ $MAINTAINER == *"<"?*@?*">" ]] ||
        die 2 "MAINTAINER is '$MAINTAINER': it must be whoever makes the package, as \"Name <address>\""
}

# Sets HOMEPAGE: the address of the repository from which this clone comes; empty if it has none.
homepage() {
    : "${HOMEPAGE:=$(git -C "$ROOT" remote get-url origin 2>/dev/null |
        sed -nE 's,^(ssh://)?git@([^:/]+)[:/],https://\2/,; s,^(https?://)[^/@]*@,\1,; s,[.]git/?$,,; /^https?:/p')}"
}

# Exit code 3 names what is missing.
need() {
    local program
    for program; do
        command -v "$program" >/dev/null || die 3 "$program is missing${PACKAGES:+: on Debian it is in $PACKAGES}"
    done
}
