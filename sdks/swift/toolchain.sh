# Functions of the scripts beside this file.

# Prints where install-toolchain.sh puts Swift.
toolchain_folder() {
  echo "${TRIBUTARY_SWIFT:-$HOME/.cache/tributary/swift-6.0.3}"
}

# The folder gets its name when everything in it is installed.
toolchain_is_complete() {
  [[ -e $1/usr/bin/swift || -L $1/usr/bin/swift ]]
}

can_mount() {
  command -v unshare >/dev/null && unshare --mount --propagation private mount -t tmpfs none /tmp 2>/dev/null
}
