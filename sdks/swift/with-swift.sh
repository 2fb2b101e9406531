#!/usr/bin/env bash
# Runs a command with Swift, in this folder: `with-swift.sh swift build`. Uses the Swift of this machine, if there is one,
# otherwise the folder of install-toolchain.sh, which sees the repository at its own path and the network of this machine.
#   with-swift.sh --check   says why Swift can't run here and fails, with 77 if the process has no right to run it
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/toolchain.sh"
repository=$(cd "$here/../.." && pwd)
folder=$(toolchain_folder)

check() {
  command -v swift >/dev/null && return
  if ! can_mount; then
    echo "Swift is left out: this process has no right to mount its folder (needs root, in a container CAP_SYS_ADMIN)." >&2
    exit 77
  fi
  toolchain_is_complete "$folder" && return
  echo "Swift is not installed: run sdks/swift/install-toolchain.sh." >&2
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
    exec unshare --mount --propagation private "$here/with-swift.sh" --inside "$@"
    ;;
esac
