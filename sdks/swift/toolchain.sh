# Functions of the scripts beside this file.

# Prints where install-toolchain.sh puts Swift.
toolchain_folder() {
  echo "${TRIBUTARY_SWIFT:-$HOME/.cache/tributary/swift-6.0.3}"
}

# The folder gets its name when everything in it is installed.
toolchain_is_complete() {
  [[ -e $1/usr/bin/swift || -L $1/usr/bin/swift ]]
}

# Without the right to mount, PRoot enters the folder: a few times slower, and without any rights.
has_proot() {
  command -v proot >/dev/null
}

# Whether this process may mount. TRIBUTARY_SWIFT_PROOT=1 acts as if it might not.
can_mount() {
  [[ -z ${TRIBUTARY_SWIFT_PROOT:-} ]] || return 1
  command -v unshare >/dev/null && unshare --mount --propagation private mount -t tmpfs none /tmp 2>/dev/null
}
