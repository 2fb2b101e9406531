#!/usr/bin/env bash
# with-node.sh VERSION COMMAND…: runs a command with another Node, such as `tools/with-node.sh 22.23.3 npm cit`. Fetches it from the npm
# registry once, which checks its SHA-512. Linux only.
set -euo pipefail
version=${1:?usage: with-node.sh VERSION COMMAND…, such as with-node.sh 22.23.3 npm cit}
shift
case "$(uname -m)" in x86_64) platform=x64 ;; *) platform=arm64 ;; esac
folder=${XDG_CACHE_HOME:-$HOME/.cache}/tributary/node-$version
if [ ! -x "$folder/bin/node" ]; then
  mkdir -p "$folder"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && tar -xf "$(npm pack --silent "node-linux-$platform@$version")")
  mv "$work/package/bin" "$folder/bin"
  rm -r "$work"
fi
PATH=$folder/bin:$PATH exec "$@"
