#!/usr/bin/env bash
# Runs a command with Swift, in this folder: `with-swift.sh swift build`. Uses the Swift of this machine, if there is one,
# otherwise the folder of install-toolchain.sh, which sees the repository at its own path and the network of this machine.
#   with-swift.sh --check   says why Swift can't run here and fails
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/toolchain.sh"
repository=$(cd "$here/../.." && pwd)
folder=$(toolchain_folder)

check() {
  command -v swift >/dev/null && return
  if ! toolchain_is_complete "$folder"; then
    echo "Swift is not installed: run sdks/swift/install-toolchain.sh." >&2
    exit 1
  fi
  can_mount || has_proot && return
  echo "This process has no right to mount the folder of Swift. Install PRoot, which needs no rights: apt-get install proot." >&2
  exit 1
}

case ${1:-} in
  --check) check ;;
  --inside)
    shift
    # These mounts disappear with the namespace of this process.
    mount --bind /proc "$folder/proc"
    mount --rbind /dev "$folder/dev"
    mkdir -p "$folder$repository"
    mount --bind "$repository" "$folder$repository"
    cd /
    exec chroot "$folder" /usr/bin/env -u TMPDIR HOME=/root PATH=/usr/bin:/bin \
      /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$here" "$@"
    ;;
  *)
    check
    cd "$here"
    if command -v swift >/dev/null; then exec "$@"; fi
    if can_mount; then exec unshare --mount --propagation private "$here/with-swift.sh" --inside "$@"; fi
    exec proot -r "$folder" -b /proc -b /dev -b /etc/resolv.conf -b "$repository" -w "$here" \
      /usr/bin/env -u TMPDIR HOME=/root PATH=/usr/bin:/bin "$@"
    ;;
esac
