#!/usr/bin/env bash
# Installs Swift 6.0 into a folder outside the repository: a small Debian 13, which has it as a package.
#   install-toolchain.sh [FOLDER]   the default is ~/.cache/tributary/swift-6.0.3
# Needs Debian or Ubuntu, 5 GB and about three minutes. Does nothing if the folder is complete.
# Without root or the right to mount it only unpacks the packages; debootstrap and PRoot must then be installed, or installable.
set -euo pipefail
source "$(dirname "$0")/toolchain.sh"
folder=${1:-$(toolchain_folder)}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
partial=$folder.partial

fail() {
  echo "Swift is not installed: $*" >&2
  exit 1
}

include=swiftlang,libc6-dev,gcc,g++,git,ca-certificates

# Installs what this script needs itself.
require() {
  command -v "$1" >/dev/null && return
  command -v apt-get >/dev/null || fail "$1 is missing, and this machine has no apt-get to install it."
  echo "$1 is missing: installing it"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" || fail "apt-get can't install $1."
}

# Unpacks the packages and runs none of their scripts, which Swift does not need.
unpack() {
  echo "1/3 the packages of Debian 13 into $partial"
  debootstrap --download-only --variant=minbase --include="$include" trixie "$partial" "$mirror" ||
    fail "debootstrap failed; $partial/debootstrap/debootstrap.log says why. An unknown key means that debian-archive-keyring is too old."
  echo "2/3 unpack"
  local package
  for package in "$partial"/var/cache/apt/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -C "$partial" -x --no-same-owner --keep-directory-symlink \
      --exclude=./usr/share/doc --exclude=./usr/share/man || fail "$package can't be unpacked."
  done
  rm -rf "$partial/var/cache/apt/archives"
  mkdir -p "$partial/root"
  # A script of the package makes this link.
  ln -sf /usr/libexec/swift/bin/swift "$partial/usr/bin/swift"
  : >>"$partial/etc/resolv.conf"
  echo "3/3 check"
  proot -r "$partial" -b /proc -b /dev /usr/bin/env -u TMPDIR HOME=/root PATH=/usr/bin:/bin swift --version ||
    fail "swift doesn't start in $partial."
}

# Runs in a mount namespace of its own: whatever is mounted here disappears with it.
install() {
  echo "1/3 Debian 13 into $partial"
  debootstrap --variant=minbase trixie "$partial" "$mirror" ||
    fail "debootstrap failed; $partial/debootstrap/debootstrap.log says why. An unknown key means that debian-archive-keyring is too old."
  mount --bind /proc "$partial/proc" || fail "/proc can't be mounted."
  cp /etc/resolv.conf "$partial/etc/resolv.conf"
  # The documentation is a third of the packages.
  printf 'path-exclude=/usr/share/doc/*\npath-exclude=/usr/share/man/*\n' >"$partial/etc/dpkg/dpkg.cfg.d/small"
  echo "2/3 Swift and what it needs"
  chroot "$partial" apt-get update -qq || fail "the packages of $mirror can't be listed."
  DEBIAN_FRONTEND=noninteractive chroot "$partial" apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends \
    ${include//,/ } || fail "apt-get failed in $partial."
  chroot "$partial" apt-get clean
  echo "3/3 check"
  chroot "$partial" swift --version || fail "swift doesn't start in $partial."
}

if [[ ${2:-} == --inside ]]; then
  install
  exit
fi

if toolchain_is_complete "$folder"; then
  can_mount || require proot
  echo "Swift is installed in $folder."
  exit
fi
[[ $(uname) == Linux ]] || fail "this script is for Linux; on a Mac use Xcode 16."
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9
toolchain_is_complete "$folder" && exit
free=$(df --output=avail -k "$(dirname "$folder")" | tail -1)
((free > 5 * 1024 * 1024)) || fail "$(dirname "$folder") has less than 5 GB."
require debootstrap
rm -rf --one-file-system "$partial"
if can_mount; then
  unshare --mount --propagation private "$0" "$folder" --inside
else
  echo "This process has no right to mount: Swift runs by PRoot."
  require proot
  unpack
fi
rm -rf "$folder"
mv "$partial" "$folder"
echo "Swift is installed in $folder ($(du -sh "$folder" | cut -f1))."
