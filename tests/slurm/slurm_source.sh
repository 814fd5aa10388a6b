#!/usr/bin/env bash
# The source of a Debian suite's Slurm, configured so that a plugin compiles against its headers:
#
#   slurm_source.sh SUITE            prints the directory, which is made once, as a component (tools/components.py)
#   slurm_source.sh SUITE TARGET     makes it there
#
# The original archive comes from the mirror that apt is configured with. Nothing is installed and nothing of Slurm is
# compiled. Exit code 2 for a wrong name, 3 if it cannot be had.
set -euo pipefail

die() {
    echo "slurm_source.sh: $2" >&2
    exit "$1"
}

suite=${1:-}
[[ $suite =~ ^[a-z]+$ ]] || die 2 "the suite is '$suite', not a name such as trixie"
if [ $# -lt 2 ]; then
    exec "$(dirname "$0")/../../tools/components.py" --path "slurm-source-$suite"
fi
target=$2
for program in apt-get gcc make tar; do
    command -v $program >/dev/null || die 3 "the source of Slurm needs $program"
done
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
[ -n "$mirror" ] || die 3 "apt is configured with no mirror of Debian"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Lists and caches of its own: those of this machine stay as they are.
mkdir -p "$work"/{lists,cache/archives}/partial "$work/parts" "$target"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb-src [signed-by=$keys] $mirror $suite main" >"$work/list"
options=(-qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$work/list" -o Dir::Etc::SourceParts="$work/parts"
    -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache")
apt-get "${options[@]}" update >&2 || die 3 "the list of sources of $suite cannot be had from $mirror"
# Debian's own files for the package are not needed: the headers are those of the original archive.
read -r address file checksum < <(apt-get "${options[@]}" --print-uris source --download-only slurm-wlm |
    awk '/orig\.tar/ { gsub("\047", "", $1); print $1, $2, $4; exit }') || die 3 "$suite has no source of slurm-wlm"
/usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "$address" "$work/$file" "$checksum" >&2 ||
    die 3 "$file cannot be had from $mirror"
tar -C "$target" --strip-components=1 -xf "$work/$file"
(cd "$target" && ./configure --disable-dependency-tracking --without-munge >configure.out 2>&1) ||
    die 1 "Slurm's configure failed: $(tail -n 1 "$target/configure.out")"
