# What the guest of qemu.sh does with a drive after steps-begin.sh.
step nvme list
step nvme id-ctrl "$controller"
step nvme id-ns "$disk"
step nvme smart-log "$controller"
step nvme error-log "$controller" -e 2
step nvme get-log "$controller" -i 5 -l 512
step nvme get-feature "$controller" -f 7 -H
step grep -H nvme /proc/interrupts
step nvme flush "$disk"
step nvme write-zeroes "$disk" -s 0 -c 7
step nvme dsm "$disk" -d -s 0 -b 8
head -c 4096 /dev/urandom > data
step nvme write "$disk" -s 8 -c 7 -z 4096 -d data
step nvme compare "$disk" -s 8 -c 7 -z 4096 -d data
step nvme compare "$disk" -s 16 -c 7 -z 4096 -d data # other data: it has to fail
load() {
    step fio --filename="$disk" --ioengine=io_uring --direct=1 --thread --output=fio.txt --name="$@"
    grep IOPS= fio.txt
}
load small --rw=randwrite --bs=4k --iodepth=32 --size=16m --verify=crc32c
load reads --rw=randread --bs=4k --iodepth=32 --size=32m
load large --rw=write --bs=512k --iodepth=8 --size=128m --verify=crc32c
load both --rw=randrw --bs=8k --iodepth=16 --numjobs=2 --size=16m --group_reporting
mkdir mnt
step mkfs.ext4 -q "$disk"
step mount "$disk" mnt
step dd if=/dev/urandom of=mnt/file bs=1M count=16 conv=fsync
sum=$(md5sum < mnt/file)
step umount mnt
step nvme reset "$controller"
step fsck.ext4 -fn "$disk"
step mount "$disk" mnt
[ "$(md5sum < mnt/file)" = "$sum" ] && echo "== the file is the same"
step fstrim -v mnt
step umount mnt
step nvme smart-log "$controller"
step nvme error-log "$controller" -e 2
dmesg | grep -i nvme
echo o > /proc/sysrq-trigger
sleep 9
