#!/usr/bin/env bash
# Builds the packages of the SDKs with the address of your service built in, so that apps need no base address.
#   release.sh HOST FOLDER [NAME...]
# HOST is the https (or http) address of your service without a path; FOLDER receives the packages. Without names, every SDK whose
# toolchain is installed is built, and the others are named. The checkout does not change.
set -euo pipefail

usage="usage: release.sh HOST FOLDER [NAME...], such as release.sh https://tributary.example.com packages web node"
host=${1:?$usage}
folder=${2:?$usage}
shift 2
host=${host%/}
if [[ ! $host =~ ^https?://[A-Za-z0-9.-]+(:[0-9]+)?$ ]]; then
  echo "\"$host\" is no address of a service. Use https:// and a host, without a path." >&2
  exit 2
fi
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

all=(node web react-native kotlin swift)
has_node() { command -v npm >/dev/null; }
has_web() { has_node; }
has_react-native() { has_node; }
has_kotlin() { command -v mvn >/dev/null && command -v javac >/dev/null; }
has_swift() { true; }

# The packages that a folder needs: those of the checkout, if they are installed there.
install_packages() {
  if [[ -d $source/$1/node_modules ]]; then
    ln -s "$source/$1/node_modules" "$copy/$1/node_modules"
  else
    (cd "$copy/$1" && npm ci --no-audit --no-fund --silent)
  fi
}
build_js() {
  [[ -e $copy/js/node_modules ]] || install_packages js
  (cd "$copy/js" && node build.mjs "$1" && cd "$1" && npm pack --silent --pack-destination "$folder")
}
build_node() { build_js node; }
# tributary.js is for the script tag.
build_web() { build_js web && cp "$copy/js/web/dist/tributary.js" "$folder"; }
build_react-native() { install_packages js/react-native && build_js react-native; }
# A Maven repository in a folder, for Gradle: maven(url = ".../packages/maven").
build_kotlin() {
  (cd "$copy/kotlin" && mvn -B -q -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -DskipTests package)
  local version kotlin=$copy/kotlin
  version=$(cat "$copy/VERSION")
  put() {
    mkdir -p "$folder/maven/dev/tributary/$1/$version"
    cp "$kotlin/$2" "$folder/maven/dev/tributary/$1/$version/$1-$version.$3"
  }
  put tributary-kotlin pom.xml pom
  put tributary-core core/pom.xml pom
  put tributary-core "core/target/tributary-core-$version.jar" jar
  put tributary-android android/target/pom.xml pom
  put tributary-android "android/target/tributary-android-$version.aar" aar
}
# A folder that Xcode and Package.swift take as a local package.
build_swift() {
  rm -rf "$folder/tributary-swift"
  mkdir "$folder/tributary-swift"
  (cd "$copy/swift" && cp -R Package.swift README.md Sources Tests "$folder/tributary-swift")
  sed -i.bak "s|static let host = \".*\"|static let host = \"$host\"|" "$folder/tributary-swift/Sources/Tributary/Release.swift"
  rm "$folder/tributary-swift/Sources/Tributary/Release.swift.bak"
}

names=("$@")
for name in ${names[@]+"${names[@]}"}; do
  if [[ " ${all[*]} " != *" $name "* ]]; then
    echo "There is no SDK \"$name\". Choose from: ${all[*]}." >&2
    exit 2
  fi
  "has_$name" || { echo "The toolchain of the SDK \"$name\" is missing." >&2; exit 1; }
done
left_out=()
if ((${#names[@]} == 0)); then
  for name in "${all[@]}"; do
    if "has_$name"; then names+=("$name"); else left_out+=("$name"); fi
  done
fi

# A copy, so that neither HOST nor a build of the checkout changes.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -C "$source" --exclude=node_modules --exclude=dist --exclude=target --exclude=.build -cf - . | tar -C "$copy" -xf -
printf '%s\n' "$host" >"$copy/HOST"
for name in "${names[@]}"; do "build_$name"; done
echo "Built with $host in $folder: ${names[*]}. Left out: ${left_out[*]-none}."
