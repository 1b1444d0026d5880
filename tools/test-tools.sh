#!/usr/bin/env bash
# Installs what checks and tests call beyond Python, a C compiler and cargo. As root on Debian and its like it does so by
# apt-get; elsewhere it says in one line what to install, and fails where CI=true.
set -euo pipefail

# program, package
needed='
make          make
git           git
losetup       mount
mount         mount
umount        mount
swapon        mount
swapoff       mount
blkdiscard    util-linux
mkswap        util-linux
mkfs.ext4     e2fsprogs
dumpe2fs      e2fsprogs
dmsetup       dmsetup
zstd          zstd
fio           fio
valgrind      valgrind
nbdinfo       libnbd-bin
nbdcopy       libnbd-bin
nbdfuse       libnbd-bin
nbdsh         python3-libnbd
fusermount3   fuse3
qemu-io       qemu-utils
qemu-img      qemu-utils
nbd-server    nbd-server
nbd-trplay    nbd-server
chromium      chromium
'

PATH=$PATH:/usr/sbin:/sbin

lacking() {
    while read -r program package; do
        [ -z "$program" ] || command -v "$program" >/dev/null || echo "$package"
    done <<<"$needed"
    "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    "${CARGO:-cargo}" fmt --version >/dev/null 2>&1 || echo rustfmt
    "${CARGO:-cargo}" clippy --version >/dev/null 2>&1 || echo rust-clippy
}

if command -v rustup >/dev/null && lacking | grep -q '^rust'; then
    rustup component add rustfmt clippy
fi
packages=$(lacking | sort -u | paste -sd ' ')
if [ -n "$packages" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    # shellcheck disable=SC2086 # a list of packages
    apt-get -qq -o Dpkg::Use-Pty=0 install --yes --no-install-recommends $packages >/dev/null
    packages=$(lacking | sort -u | paste -sd ' ')
fi
if [ -n "$packages" ]; then
    echo "not installed, and some tests need them (Debian's names of the packages): $packages" >&2
    [ "${CI:-}" != true ]
fi
