#!/usr/bin/env bash
# Builds the packages of the SDKs with your own host built in, so that apps need no base address.
#   release.sh HOST FOLDER [NAME...]
# HOST is the http or https address of your service without a path, FOLDER receives the packages. Without names, every SDK whose
# toolchain is installed is built, and the others are named. The checkout does not change.
set -euo pipefail

usage="usage: release.sh HOST FOLDER [NAME...], such as release.sh https://tributary.example.com packages"
host=${1:?$usage} folder=${2:?$usage}
shift 2
host=${host%/}
if [[ ! $host =~ ^https?://[A-Za-z0-9.-]+(:[0-9]+)?$ ]]; then
  echo "\"$host\" is no base address. Use https:// and a host, without a path." >&2
  exit 2
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
source=$(cd "$(dirname "$0")" && pwd)

# A copy, so that neither HOST nor a build of the checkout changes.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -C "$source" --exclude=node_modules --exclude=dist --exclude=target --exclude=.build -cf - . | tar -C "$copy" -xf -
printf '%s\n' "$host" >"$copy/HOST"

has_js() { command -v npm >/dev/null; }
build_js() {
  if [[ -d $source/js/node_modules ]]; then ln -s "$source/js/node_modules" "$copy/js/node_modules"; else (cd "$copy/js" && npm ci --no-audit --no-fund --silent); fi
  (cd "$copy/js" && npm run -s build)
  local package
  for package in "$copy"/js/*/package.json; do
    [[ $(node -p "require('$package').private === true") == true ]] && continue
    (cd "$(dirname "$package")" && npm pack --silent --pack-destination "$folder")
  done
}

all=(js)
names=("$@")
((${#names[@]} > 0)) || names=("${all[@]}")
left_out=()
for name in "${names[@]}"; do
  if [[ " ${all[*]} " != *" $name "* ]]; then
    echo "There is no SDK \"$name\". Choose from: ${all[*]}." >&2
    exit 2
  fi
  if "has_$name"; then "build_$name"; else left_out+=("$name"); fi
done
echo "Built with $host in $folder. Left out: ${left_out[*]-none}."
((${#left_out[@]} == 0)) || (($# == 0))
