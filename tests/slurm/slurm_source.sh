#!/usr/bin/env bash
# The source of a suite's Slurm, configured so that a plugin compiles against its headers:
#
#   slurm_source.sh SUITE            prints the directory, which is made once, as a component (tools/components.py);
#                                    SUITE may be a release of Slurm, such as 26.05
#   slurm_source.sh SUITE TARGET     makes it there
#
# The original archive comes from the mirror that releases.sh finds. Nothing is installed and nothing of Slurm is
# compiled. Exit code 2 for a wrong name, 3 if it cannot be had.
set -euo pipefail

die() {
    echo "slurm_source.sh: $2" >&2
    exit "$1"
}

. "$(dirname "$0")/releases.sh"
suite=$(suite_of "${1:-}")
[[ $suite =~ ^[a-z]+$ ]] || die 2 "'$suite' is neither a suite nor a release of Slurm with packages (releases.txt)"
if [ $# -lt 2 ]; then
    exec "$(dirname "$0")/../../tools/components.py" --path "slurm-source-$suite"
fi
target=$2
for program in apt-get gcc make tar; do
    command -v $program >/dev/null || die 3 "the source of Slurm needs $program"
done
distribution_of "$suite"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Lists and caches of its own: those of this machine stay as they are.
mkdir -p "$work"/{lists,cache/archives}/partial "$work/parts" "$target"
echo "deb-src [signed-by=$KEYS] $MIRROR $suite ${AREAS//,/ }" >"$work/list"
options=(-qq -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$work/list" -o Dir::Etc::SourceParts="$work/parts"
    -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache")
apt-get "${options[@]}" update >&2 || die 3 "the list of sources of $suite cannot be had from $MIRROR"
# Debian's own files for the package are not needed: the headers are those of the original archive.
read -r address file checksum < <(apt-get "${options[@]}" --print-uris source --download-only slurm-wlm |
    awk '/orig\.tar/ { gsub("\047", "", $1); print $1, $2, $4; exit }') || die 3 "$suite has no source of slurm-wlm"
/usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "$address" "$work/$file" "$checksum" >&2 ||
    die 3 "$file cannot be had from $MIRROR"
tar -C "$target" --strip-components=1 -xf "$work/$file"
(cd "$target" && ./configure --disable-dependency-tracking --without-munge >configure.out 2>&1) ||
    die 1 "Slurm's configure failed: $(tail -n 1 "$target/configure.out")"
