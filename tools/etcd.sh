#!/bin/sh
# Puts Debian trixie's etcd into a directory. Where it cannot be had, Go compiles one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
"$here/debian_programs.sh" trixie etcd-server "$1" etcd || {
  cd "$here/../tests/kubernetes/components" && go build -ldflags="-s -w" -o "$1/etcd" go.etcd.io/etcd/server/v3
}
