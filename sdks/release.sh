#!/usr/bin/env bash
# Builds the packages of the SDKs with the address of your service built in, so that apps need no base address.
#   release.sh HOST FOLDER [NAME...]
# HOST is the https (or http) address of your service without a path, or "none": apps then give it as their base address. FOLDER receives
# the packages. Without names, every SDK whose toolchain is installed is built, and the others are named. The checkout does not change.
set -euo pipefail

usage="usage: release.sh HOST FOLDER [NAME...], such as release.sh https://tributary.example.com packages web node"
host=${1:?$usage}
folder=${2:?$usage}
shift 2
host=${host%/}
if [[ $host == none ]]; then
  host=
elif [[ ! $host =~ ^https?://[A-Za-z0-9.-]+(:[0-9]+)?$ ]]; then
  echo "\"$host\" is no address of a service. Use https:// and a host, without a path." >&2
  exit 2
fi
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

all=(node web react-native kotlin swift flutter)
has_node() { command -v npm >/dev/null; }
has_web() { has_node; }
has_react-native() { has_node; }
has_kotlin() { has_node && command -v mvn >/dev/null && command -v javac >/dev/null; }
# SwiftPM fetches packages from git.
has_swift() { command -v git >/dev/null; }
has_flutter() { true; }

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
  # The other documents of the repository are not in the package: the text of a link to them stays.
  sed -i.bak 's|\[\([^]]*\)\](\.\.[^)]*)|\1|g' "$copy/js/$1/README.md"
  rm "$copy/js/$1/README.md.bak"
  (cd "$copy/js" && node build.mjs "$1" && cd "$1" && npm pack --silent --pack-destination "$folder")
}
build_node() { build_js node; }
# tributary.js is for the script tag, and loads tributary-debug.js when the debug state is asked for. The snippets are pasted into tag
# managers and site builders.
build_web() {
  build_js web && rm -rf "$folder/snippets" && cp -r "$copy/js/web/dist/"tributary{,-debug}.js "$copy/js/web/snippets" "$folder"
}
build_react-native() { install_packages js/react-native && build_js react-native; }
# Copies the page, the licence and the changelog of a package. A package has no other pages of the repository to link to.
put_pages() {
  sed -E 's/\[([^]]*)\]\(\.\.\/[^)]*\)/\1/g' "$1" >"$2/README.md"
  cp "$copy/LICENSE" "$copy/CHANGELOG.md" "$2"
}
# A Maven repository in a folder, for Gradle: maven(url = ".../packages/maven"). Like Maven Central it has sources, documentation and
# checksums; the documentation is the page of the SDK.
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
  put_jar() {
    local jar=$folder/maven/dev/tributary/$1/$version/$1-$version-$2.jar
    rm -f "$jar"
    jar --create --no-manifest --file "$jar" "${@:3}"
  }
  put_jar tributary-core sources -C "$kotlin/core/src/main/kotlin" . -C "$kotlin/core/target/generated" Release.kt
  put_jar tributary-android sources -C "$kotlin/android/src/main/kotlin" .
  mkdir -p "$kotlin/target/core" "$kotlin/target/android"
  put_pages "$kotlin/JVM.md" "$kotlin/target/core"
  put_pages "$kotlin/README.md" "$kotlin/target/android"
  put_jar tributary-core javadoc -C "$kotlin/target/core" .
  put_jar tributary-android javadoc -C "$kotlin/target/android" .
  node - "$folder/maven/dev/tributary"/tributary-*/"$version"/*.{pom,jar,aar} <<'SCRIPT'
const { createHash } = require('node:crypto');
const { readFileSync, writeFileSync } = require('node:fs');
for (const file of process.argv.slice(2))
  for (const name of ['md5', 'sha1'])
    writeFileSync(`${file}.${name}`, createHash(name).update(readFileSync(file)).digest('hex'));
SCRIPT
}
# The sources of the Swift SDK with the host.
put_swift_sources() {
  cp -R "$copy/swift/Sources/Tributary" "$1"
  sed -i.bak "s|static let host = \".*\"|static let host = \"$host\"|" "$1/Tributary/Release.swift"
  rm "$1/Tributary/Release.swift.bak"
}
# A git repository with the version as its tag: SwiftPM fetches it by its URL after a push, and Xcode takes the folder as a local
# package. A later release adds a commit and a tag to it.
build_swift() {
  local package=$folder/tributary-swift version
  version=$(cat "$copy/VERSION")
  in_package() { git -C "$package" -c user.name=Tributary -c user.email=release@localhost -c core.hooksPath=/dev/null "$@"; }
  mkdir -p "$package"
  [[ -d $package/.git ]] || { git init --quiet "$package" && in_package symbolic-ref HEAD refs/heads/main; }
  find "$package" -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +
  mkdir "$package/Sources"
  put_swift_sources "$package/Sources"
  put_pages "$copy/swift/README.md" "$package"
  # The tests stay in the repository of Tributary: they need its service.
  grep -v testTarget "$copy/swift/Package.swift" >"$package/Package.swift"
  printf '.build/\n.swiftpm/\n' >"$package/.gitignore"
  in_package add --all
  if in_package rev-parse --quiet --verify "refs/tags/$version" >/dev/null; then
    in_package diff --cached --quiet "$version" && return
    in_package reset --quiet --hard
    echo "$package has the version $version with another content, which SwiftPM would refuse. Raise sdks/VERSION, or delete this folder if the version was not published." >&2
    exit 1
  fi
  in_package commit --quiet --no-gpg-sign --message "Release $version"
  in_package -c tag.gpgSign=false tag "$version"
}
# The folder that pub would publish. Its iOS side contains the Swift SDK; its Android side needs the Maven repository of "kotlin".
build_flutter() {
  local package=$folder/tributary_flutter
  rm -rf "$package"
  mkdir "$package"
  (cd "$copy/flutter" && cp -R pubspec.yaml lib android ios example "$package")
  put_pages "$copy/flutter/README.md" "$package"
  local ios=$package/ios/tributary_flutter
  put_swift_sources "$ios/Sources"
  cat >"$ios/Package.swift" <<'MANIFEST'
// swift-tools-version: 6.0
import PackageDescription

let package = Package(
    name: "tributary_flutter",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [.library(name: "tributary-flutter", targets: ["tributary_flutter"])],
    targets: [
        .target(
            name: "Tributary",
            resources: [.copy("PrivacyInfo.xcprivacy")],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        .target(
            name: "tributary_flutter",
            dependencies: ["Tributary"],
            // Flutter's classes have no annotations for the checks of Swift 6.
            swiftSettings: [.swiftLanguageMode(.v5)]
        ),
    ]
)
MANIFEST
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
cp "$source/../LICENSE" "$copy/LICENSE"
for name in "${names[@]}"; do "build_$name"; done
echo "Built with ${host:-no address} in $folder: ${names[*]}. Left out: ${left_out[*]-none}."
