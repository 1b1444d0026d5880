#!/bin/bash
# What the guest of qemu.sh does first, as its first process: mounts, modules, and the drive as it appears. The steps follow.
export PATH=/usr/bin HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
cd /tmp || exit

step() {
    echo "== $*"
    "$@"
    echo "-- exit status $? ($(cut -d' ' -f1 /proc/uptime) s)"
}

cat /proc/version
while read -r module; do
    insmod "$module" 2> null
done < modules
until [ -b /dev/nvme0n1 ]; do sleep 0.1; done
echo "== attached ($(cut -d' ' -f1 /proc/uptime) s)"
disk=/dev/nvme0n1
controller=/dev/nvme0
