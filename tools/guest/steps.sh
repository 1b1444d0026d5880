#!/bin/bash
# What the guest does, as its first process.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2> /tmp/null
for folder in /tmp /run /dev/shm; do
    mkdir -p $folder
    mount -t tmpfs none $folder
done
cd /tmp || exit
ip link set lo up
ip addr add 10.9.0.2/24 dev vec0
ip link set vec0 up
host=11111111-2222-4333-8444-555555555555
target=(-t tcp -a 10.9.0.1 -s 4420 "--hostnqn=nqn.2014-08.org.nvmexpress:uuid:$host" "--hostid=$host")

step() {
    echo "== $*"
    "$@"
    echo "-- exit status $? ($(cut -d' ' -f1 /proc/uptime) s)"
}

uname -srv
step nvme discover "${target[@]}"
step nvme connect-all "${target[@]}"
until disk=$(ls -d /dev/nvme*n1 2> null) && [ -b "$disk" ]; do sleep 0.1; done
controller=${disk%n1}
step nvme list
step nvme id-ctrl "$controller"
step nvme id-ns "$disk"
step nvme ns-descs "$disk"
step nvme cmdset-ind-id-ns "$controller" -n 1
for log in smart-log error-log effects-log fw-log supported-log-pages; do
    step nvme $log "$controller"
done
step nvme endurance-log "$controller" -g 1
step nvme get-log "$controller" -i 0xc0 -l 512
step nvme get-feature "$controller" -f 7 -H
step nvme get-feature "$controller" -f 6 -H
step nvme flush "$disk"
step nvme verify "$disk" -s 0 -c 7
step nvme write-zeroes "$disk" -s 0 -c 7
step nvme dsm "$disk" -d -s 0 -b 8
head -c 4096 /dev/urandom > data
step nvme write "$disk" -s 8 -c 7 -z 4096 -d data
step nvme compare "$disk" -s 8 -c 7 -z 4096 -d data
step nvme compare "$disk" -s 16 -c 7 -z 4096 -d data # other data: it has to fail
mkdir mnt
step mkfs.ext4 -q "$disk"
step mount "$disk" mnt
step dd if=/dev/urandom of=mnt/file bs=1M count=64 conv=fsync
sum=$(md5sum < mnt/file)
step umount mnt
step fsck.ext4 -fn "$disk"
step mount "$disk" mnt
[ "$(md5sum < mnt/file)" = "$sum" ] && echo "== the file is the same"
step fstrim -v mnt
step umount mnt
load() {
    step fio --filename="$disk" --ioengine=io_uring --direct=1 --thread --output=fio.txt --name="$@"
    grep IOPS= fio.txt
}
load small --rw=randwrite --bs=4k --iodepth=32 --size=64m --verify=crc32c
load reads --rw=randread --bs=4k --iodepth=32 --size=64m
load large --rw=write --bs=512k --iodepth=8 --size=256m --verify=crc32c
step nvme format "$disk" -l 1 --force
step nvme smart-log "$controller"

# Files are written and synced one after the other until the drive loses its power.
step mkfs.ext4 -q "$disk"
step mount "$disk" mnt
count=0
while head -c 65536 /dev/urandom > data && dd if=data of=mnt/$count bs=64k conv=fsync status=none 2> null; do
    md5sum < data >> sums
    count=$((count + 1))
    [ $count -eq 100 ] && echo "== ready for a power cut"
done
echo "== the drive is gone after $count files"
umount -l mnt
step nvme disconnect-all
until nvme connect-all "${target[@]}" > null 2>&1 && disk=$(ls -d /dev/nvme*n1 2> null) \
    && dd if="$disk" of=null bs=4k count=1 iflag=direct 2> null; do
    nvme disconnect-all > null
    sleep 0.5
done
controller=${disk%n1}
fsck.ext4 -p "$disk" # it replays the journal, which it may tell by its status
step fsck.ext4 -fn "$disk"
mkdir again
step mount "$disk" again
lost=0
for ((file = 0; file < count; file++)); do
    [ "$(md5sum < again/$file)" = "$(sed -n "$((file + 1))p" sums)" ] || lost=$((lost + 1))
done
echo "== of $count synced files $lost are lost"
step umount again
step nvme smart-log "$controller"
step nvme disconnect-all
dmesg | grep -i nvme
echo o > /proc/sysrq-trigger
sleep 9
