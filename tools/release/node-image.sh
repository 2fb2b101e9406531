#!/usr/bin/env bash
# node-image.sh NAME: makes the base image NAME, such as node:24.21.0-bookworm-slim, with buildah, on a machine that reaches no registry of
# images: Debian's packages, the Node and npm of the npm registry, and the user "node" of the official image. A release that is
# published has the official image as its base. Needs root, buildah and debootstrap.
set -euo pipefail
name=${1:?usage: node-image.sh NAME, such as node:24.21.0-bookworm-slim}
version=${name#*:}
version=${version%%-*}
suite=${name#*-}
suite=${suite%-slim}
case "$(uname -m)" in x86_64) platform=x64 ;; *) platform=arm64 ;; esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
debootstrap --variant=minbase "$suite" "$work/system" >"$work/log" || { tail -n 20 "$work/log" >&2; exit 1; }
rm -rf "$work/system/var/cache/apt"/* "$work/system/var/lib/apt/lists"/*
# npm checks the SHA-512 of what it packs.
pack() { (cd "$work" && tar -xf "$(npm pack --silent "$1")" && mv package "$2"); }
pack "node-linux-$platform@$version" node
pack npm@11.6.2 npm
cp "$work/node/bin/node" "$work/system/usr/local/bin/node"
mkdir -p "$work/system/usr/local/lib/node_modules"
mv "$work/npm" "$work/system/usr/local/lib/node_modules/npm"
for command in npm npx; do
  chmod +x "$work/system/usr/local/lib/node_modules/npm/bin/$command-cli.js"
  ln -s "../lib/node_modules/npm/bin/$command-cli.js" "$work/system/usr/local/bin/$command"
done
chroot "$work/system" useradd --create-home --uid 1000 --shell /bin/bash node
[ "$(chroot "$work/system" /usr/local/bin/node --version)" = "v$version" ]

container=$(buildah from scratch)
buildah copy --quiet "$container" "$work/system" / >/dev/null
buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --env "NODE_VERSION=$version" --cmd node "$container"
buildah commit --quiet --rm "$container" "localhost/$name"
