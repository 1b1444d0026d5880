#!/usr/bin/env bash
# Builds Debian's kernel source, unmodified, as user-mode Linux that attaches drives over NVMe/TCP. It takes about a quarter of an
# hour of processor time once, needs root for `apt-get`, and puts the kernel into build/guest/linux.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=${1:-6.12}
apt-get install -y -q --no-install-recommends "linux-source-$version" flex bison bc libelf-dev xz-utils \
    nvme-cli fio e2fsprogs iproute2
mkdir -p build/guest
tree=build/guest/linux-source-$version
[ -d "$tree" ] || tar --extract --file "/usr/src/linux-source-$version.tar.xz" --directory build/guest
make -C "$tree" ARCH=um defconfig
cat >> "$tree/.config" <<'CONFIG'
CONFIG_NVME_CORE=y
CONFIG_NVME_TCP=y
CONFIG_NVME_VERBOSE_ERRORS=y
CONFIG_EXT4_FS=y
CONFIG_HOSTFS=y
CONFIG_UML_NET_VECTOR=y
CONFIG_IO_URING=y
CONFIG_DEVTMPFS=y
CONFIG_TMPFS=y
CONFIG_MODULES=n
CONFIG_DEBUG_INFO_NONE=y
CONFIG
make -C "$tree" ARCH=um olddefconfig
make -C "$tree" ARCH=um --jobs "$(nproc)" linux
cp "$tree/linux" build/guest/linux
build/guest/linux --version
