#!/usr/bin/env bash
# Serves a drive over vfio-user and boots a stock kernel in a stock QEMU that attaches it as an NVMe controller on PCI: nvme-cli,
# fio with verification, ext4 with a check, a reset, and the time of each step. Needs root, no KVM. The first time, it puts Debian
# trixie with QEMU, a kernel, nvme-cli and fio into build/guest/tree, by mmdebstrap: three minutes and 0.6 GB. A session takes half a
# minute, most of it in the emulation. With the argument "placement" the drive places data by handle, and the session is that of
# steps-placement.sh: data placement by nvme-cli, and write hints of files that the kernel turns into handles. With "zones" it has zones,
# and the session is that of steps-zones.sh: zones by nvme-cli and blkzone, fio with verification, zonefs and btrfs.
set -euo pipefail
cd "$(dirname "$0")/../.."
what=${1:-pci}
drive=(default)
modules=
case $what in
placement) drive=(enterprise-tlc --set placement.policy=fdp) ;;
zones) drive=(wd-zn540) modules='zonefs btrfs' ;;
esac
tree=$PWD/build/guest/tree
mkdir -p build/guest
if [ ! -x "$tree/usr/bin/qemu-system-x86_64" ] || [ ! -x "$tree/usr/sbin/mkfs.btrfs" ]; then
    rm -rf "$tree"
    command -v mmdebstrap > /dev/null || apt-get install -y -q mmdebstrap
    mirror=http://deb.debian.org/debian
    pin='Package: qemu* seabios ipxe-qemu linux-*\nPin: release n=trixie-backports\nPin-Priority: 900\n'
    mmdebstrap --mode=root --variant=minbase \
        --include=qemu-system-x86,linux-image-amd64,nvme-cli,fio,e2fsprogs,btrfs-progs,zonefs-tools,kmod,bash,coreutils,cpio,zstd \
        --setup-hook="mkdir -p \"\$1/etc/apt/preferences.d\"; printf '$pin' > \"\$1/etc/apt/preferences.d/backports\"" \
        trixie "$tree" "deb $mirror trixie main" "deb $mirror trixie-backports main"
fi
kernel=$(basename "$(ls -d "$tree"/lib/modules/* | tail -1)")

# The guest's root is an initial RAM disk with the programs that the steps call, what these need, and the modules.
root=$tree/tmp/root
rm -rf "$root"
mkdir -p "$root"/{proc,sys,dev,tmp,run,etc}
cat tools/guest/steps-begin.sh "tools/guest/steps-$what.sh" > "$tree/tmp/steps"
chroot "$tree" bash -euc '
    root=/tmp/root
    programs=(bash blkzone btrfs cat cmp cut dd dmesg fio fsck.ext4 fstrim grep head insmod md5sum mkdir mkfs.btrfs mkfs.ext4 mkzonefs mount nvme sleep umount)
    for program in "${programs[@]}"; do
        file=$(PATH=/usr/sbin:/usr/bin:/sbin:/bin command -v "$program")
        mkdir -p "$root/usr/bin"
        cp -L "$file" "$root/usr/bin/$program"
        ldd "$file" | grep -o "/[^ ]*" || true
    done | sort -u | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
    ln -s usr/bin "$root/bin"
    ln -s usr/bin "$root/sbin"
    cp /etc/mke2fs.conf "$root/etc"
    cp /tmp/steps "$root/init"
    chmod +x "$root/init"
    for module in nvme ext4 crc32c-cryptoapi '"$modules"'; do
        modprobe --show-depends --set-version '"$kernel"' "$module" 2> /dev/null || true
    done | grep "^insmod" | sed "s/^insmod //; s/ .*//" | cat -n | sort -uk2 | sort -n | cut -f2 | while read -r module; do
        cp "$module" "$root/tmp"
        echo "${module##*/}" >> "$root/tmp/modules"
    done
    cd "$root"
    find . | cpio --quiet -o -H newc > /tmp/initrd
'
rm -f build/guest/served-pci.txt "$tree/tmp/drive.sock"
.venv/bin/flashwright serve "${drive[@]}" --vfio-user "$tree/tmp/drive.sock" --json build/guest/served-pci.json \
    > build/guest/served-pci.txt 2>&1 &
server=$!
until grep -q 'vfio-user:' build/guest/served-pci.txt; do
    kill -0 "$server"
    sleep 0.1
done
begun=$SECONDS
timeout 900 chroot "$tree" qemu-system-x86_64 -nodefaults -no-user-config -display none -serial stdio -no-reboot \
    -object memory-backend-memfd,id=mem,size=1G,share=on -machine pc,memory-backend=mem -smp 2 -m 1G \
    -device '{"driver":"vfio-user-pci","socket":{"type":"unix","path":"/tmp/drive.sock"}}' \
    -kernel "/boot/vmlinuz-$kernel" -initrd /tmp/initrd -append 'console=ttyS0 quiet panic=-1' \
    < /dev/null | tr -d '\r' | tee build/guest/attached-pci.txt
echo "== the session took $((SECONDS - begun)) s"
kill -TERM "$server" # a shell makes its background commands deaf to SIGINT
wait "$server" || true
cat build/guest/served-pci.txt
failed=$(grep -c -- '^-- exit status [1-9]' build/guest/attached-pci.txt || true)
if [ "$what" = placement ]; then
    grep '^== 4 handles were written' build/guest/attached-pci.txt
    [ "$failed" -eq 0 ] || { echo "error: $failed steps failed, expected none" >&2; exit 1; }
    exit
fi
# One comparison is with other data, or one write is off the write pointer, and has to fail.
grep '^== the file is the same' build/guest/attached-pci.txt
[ "$failed" -eq 1 ] || { echo "error: $failed steps failed, expected 1" >&2; exit 1; }
