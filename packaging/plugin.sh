#!/usr/bin/env bash
# Makes the plugin of Slurm for each processor, so that a site needs neither Rust nor the source of its Slurm:
#
#   plugin.sh DIRECTORY "PROCESSORS" SLURM_SOURCE...
#
# DIRECTORY gets topolane-slurm-plugin-VERSION-PROCESSOR.tar.gz for each processor (x86_64, aarch64). It has what
# `topolane slurm plugin build` makes: the engine, the plugins, and a build for each Slurm whose configured source is given.
#
# Environment:
#   TOPOLANE  the command of this clone (.venv/bin/topolane)
#   ZIG       zig, the compiler for all processors (that of the Python package ziglang, from .venv)
#   PROFILE   the Cargo profile of the engine (release)
#   ENGINES   a directory with PROCESSOR/libtopolane.so; by default cargo compiles them
#
# Wrong input ends with exit code 2, missing programs with 3.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/version.sh"
: "${TOPOLANE:=$ROOT/.venv/bin/topolane}" "${ZIG:=$ROOT/.venv/bin/python -m ziglang}" "${PROFILE:=release}"
GLIBC=2.28 # as the wheels

[ $# -ge 3 ] || die 2 "words are missing: plugin.sh DIRECTORY \"PROCESSORS\" SLURM_SOURCE..."
target=$(realpath -m "$1") processors=$2
shift 2
for given; do
    [ -f "$given/config.h" ] || die 2 "$given: there is no configured source of Slurm: run its ./configure"
done
$ZIG version >/dev/null || die 3 "zig is missing: the Python package ziglang has it"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$target"

# A compiler and linker for a processor. zig has libunwind in place of libgcc_s, which rustc names.
compiler() {
    cat >"$work/cc-$1" <<END
#!/bin/bash
words=()
for word; do
    [ "\$word" != -lgcc_s ] || word=-lunwind
    words+=("\$word")
done
exec $ZIG cc -target $1-linux-gnu.$GLIBC "\${words[@]}"
END
    chmod +x "$work/cc-$1"
    echo "$work/cc-$1"
}

# The path of the engine for a processor.
engine() {
    local cc=$1 triple=$2-unknown-linux-gnu cargo=${CARGO_HOME:-$HOME/.cargo} directory=${CARGO_TARGET_DIR:-$ROOT/target}
    local name=${triple//-/_}
    if [ -n "${ENGINES:-}" ]; then
        echo "$ENGINES/$2/libtopolane.so"
        return
    fi
    PACKAGES="" need cargo
    (cd "$ROOT" && export "CARGO_TARGET_${name^^}_LINKER=$cc" "CC_$name=$cc" &&
        RUSTFLAGS="--remap-path-prefix=$ROOT=topolane --remap-path-prefix=$cargo=cargo" \
            CFLAGS="-ffile-prefix-map=$cargo=cargo" CARGO_TARGET_DIR="$directory" \
            cargo build --quiet --locked --profile "$PROFILE" --target "$triple" -p topolane-capi) >&2
    echo "$directory/$triple/$PROFILE/libtopolane.so"
}

for processor in $processors; do
    name=topolane-slurm-plugin-$VERSION-$processor
    cc=$(compiler "$processor")
    library=$(engine "$cc" "$processor")
    [ -f "$library" ] || die 2 "$library: there is no engine for $processor"
    for given; do
        source=$(realpath "$given")
        $TOPOLANE slurm plugin build --slurm-source "$source" --engine "$library" --to "$work/$name" \
            --cc "$cc -ffile-prefix-map='$ROOT'=. -ffile-prefix-map='$source'=slurm" >/dev/null
    done
    cp "$ROOT"/{LICENSE,CHANGELOG.md} "$ROOT/packaging/topolane.conf" "$work/$name"
    tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -c "$name" |
        gzip -n >"$target/$name.tar.gz"
    echo "$target/$name.tar.gz"
done
