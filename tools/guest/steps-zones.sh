# What the guest of qemu.sh does with a drive that has zones, after steps-begin.sh.
step grep -H . /sys/block/nvme0n1/queue/{zoned,nr_zones,chunk_sectors,max_open_zones,max_active_zones,zone_append_max_bytes}
step nvme zns id-ctrl "$controller"
step nvme zns id-ns "$disk" --human-readable
step nvme list
step nvme effects-log "$controller" --csi=2

# Zones by nvme-cli, which counts in blocks.
size=$(($(cat /sys/block/nvme0n1/queue/chunk_sectors) * 512 / $(cat /sys/block/nvme0n1/queue/logical_block_size)))
step nvme zns report-zones "$disk" --descs=4
head -c 65536 /dev/urandom > data
step nvme zns open-zone "$disk" --start-lba=0
step nvme zns zone-append "$disk" --zslba=0 --data-size=65536 --data=data
step nvme zns zone-append "$disk" --zslba=0 --data-size=65536 --data=data
step nvme zns report-zones "$disk" --descs=1
step nvme zns close-zone "$disk" --start-lba=0
step nvme zns finish-zone "$disk" --start-lba="$size"
step nvme zns report-zones "$disk" --descs=2
step nvme read "$disk" --start-block=16 --block-count=15 --data-size=65536 --data=found
step cmp data found
# Off the write pointer: Zone Invalid Write.
step nvme write "$disk" --start-block=100 --block-count=15 --data-size=65536 --data=data
step blkzone report --count 3 "$disk"
step nvme zns reset-zone "$disk" --start-lba=0 --select-all
step nvme zns changed-zone-list "$disk"
step blkzone report --count 2 "$disk"

# fio, which knows zones and verifies what it wrote.
run() {
    step fio --filename="$disk" --direct=1 --thread --output=fio.txt --zonemode=zbd --max_open_zones=4 --verify=crc32c "$@"
    grep -E 'err=|BW=' fio.txt || cat fio.txt
}
run --name=in-order --ioengine=io_uring --rw=write --bs=128k --iodepth=1 --size=1z --io_size=64m
run --name=at-random --ioengine=io_uring --rw=randwrite --bs=16k --iodepth=4 --size=8z --io_size=16m
step blkzone reset "$disk"

# File systems for zones.
mkdir -p mounted
step mkzonefs -f "$disk"
step mount -t zonefs "$disk" mounted
step dd if=/dev/urandom of=mounted/seq/0 bs=64k count=16 oflag=direct conv=notrunc status=none
step dd if=mounted/seq/0 of=/dev/null bs=64k status=none
step umount mounted
step blkzone reset "$disk"
step mkfs.btrfs -q -f -O zoned "$disk"
step mount -t btrfs "$disk" mounted
step dd if=/dev/urandom of=mounted/file bs=1M count=16 conv=fsync status=none
md5sum < mounted/file > before
step umount mounted
step btrfs check "$disk"
step mount -t btrfs "$disk" mounted
[ "$(md5sum < mounted/file)" = "$(cat before)" ] && echo "== the file is the same"
step umount mounted
dmesg | grep -iE 'nvme|btrfs|zone'
echo o > /proc/sysrq-trigger
sleep 9
