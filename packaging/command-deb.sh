#!/usr/bin/env bash
# Makes the Debian package of the command line from a wheel:
#
#   command-deb.sh WHEEL SUITE [DIRECTORY]    DIRECTORY (dist) gets topolane_VERSION-1~debN_ARCH.deb
#
# SUITE is bookworm or trixie. The package has a Python environment of its own in /usr/lib/topolane, for the suite's Python.
#
# Environment:
#   UV                 the command uv
#   MAINTAINER         "Name <address>" of whoever makes the package (DEBFULLNAME and DEBEMAIL, or the last committer)
#   SOURCE_DATE_EPOCH  the time that the package has (that of the last commit)
#
# Wrong input ends with exit code 2, missing programs with 3.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/version.sh"
: "${UV:=$ROOT/.venv/bin/uv}"
maintainer
EXTRAS=kubernetes,serve,slurm

[ $# -ge 2 ] && [ $# -le 3 ] || die 2 "two or three words are needed: command-deb.sh WHEEL SUITE [DIRECTORY]"
[ -f "$1" ] || die 2 "$1: there is no such wheel"
case $2 in
bookworm) number=12 minor=11 ;;
trixie) number=13 minor=13 ;;
*) die 2 "the suite is '$2', not bookworm or trixie" ;;
esac
case $1 in
*_x86_64.whl) processor=x86_64 architecture=amd64 ;;
*_aarch64.whl) processor=aarch64 architecture=arm64 ;;
*) die 2 "$1: the wheel is for neither x86_64 nor aarch64" ;;
esac
wheel=$(realpath "$1") target=$(realpath -m "${3:-$ROOT/dist}")
PACKAGES="dpkg-dev and debhelper" need dpkg-buildpackage dh
PACKAGES="" need "$UV"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/topolane
home=$stage/tree/usr/lib/topolane
packages=$home/lib/python3.$minor/site-packages

mkdir -p "$home/bin" "$stage/tree/usr/bin"
"$UV" pip install --quiet --target "$packages" --link-mode copy --python-version "3.$minor" \
    --python-platform "$processor-manylinux_2_28" --only-binary :all: \
    --constraints "$ROOT/requirements/base.txt" --constraints "$ROOT/requirements/test.txt" \
    "topolane[$EXTRAS] @ file://$wheel"

# What pip and uv note of where the wheel lay, and their commands, which name another Python.
rm -rf "$packages"/{bin,.lock} "$packages"/topolane-*.dist-info/{direct_url.json,uv_cache.json}
ln -s /usr/bin/python3 "$home/bin/python3"
printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.%s\n' "$minor" >"$home/pyvenv.cfg"
cat >"$home/bin/topolane" <<'END'
#!/usr/lib/topolane/bin/python3
from topolane.cli import main

if __name__ == "__main__":
    main()
END
chmod +x "$home/bin/topolane"
ln -s ../lib/topolane/bin/topolane "$stage/tree/usr/bin/topolane"
share=$stage/tree/usr/share
mv "$packages/share" "$share"
mkdir -p "$share/zsh/vendor-completions"
mv "$share/zsh/site-functions/_topolane" "$share/zsh/vendor-completions"
rmdir "$share/zsh/site-functions"
find "$stage/tree" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +

cp -r "$ROOT/packaging/debian-command" "$stage/debian"
cp "$ROOT/CHANGELOG.md" "$stage"
sed "s|@MAINTAINER@|$MAINTAINER|; s|@PYTHON@|3.$minor|; s|@NEXT_PYTHON@|3.$((minor + 1))|" "$stage/debian/control.in" \
    >"$stage/debian/control"
rm "$stage/debian/control.in"
cat >"$stage/debian/changelog" <<END
topolane ($VERSION-1~deb$number) $2; urgency=medium

  * Topolane $VERSION. See changelog.gz for what changed.

 -- $MAINTAINER  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END
if ! (cd "$stage" && dpkg-buildpackage --build=binary --host-arch "$architecture" --no-sign --no-check-builddeps) \
    >"$work/log" 2>&1; then
    cat "$work/log" >&2
    die 1 "dpkg-buildpackage failed"
fi
mkdir -p "$target"
cp "$work"/*.deb "$target"
for made in "$work"/*.deb; do echo "$target/$(basename "$made")"; done
