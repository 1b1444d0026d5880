# What the guest of qemu.sh does with a drive that places data by handle, after steps-begin.sh.
step grep -H . /sys/block/nvme0n1/queue/max_write_streams /sys/block/nvme0n1/queue/write_stream_granularity
step nvme fdp configs "$controller" --endgrp-id 1
step nvme fdp usage "$controller" --endgrp-id 1
step nvme fdp feature "$controller" --endgrp-id 1
step nvme dir-receive "$disk" --dir-type 0 --dir-oper 1 --human-readable
step nvme fdp set-events "$disk" --namespace-id 1 --placement-handle 3 --enable --event-types 0,3

# Writes that name a handle, and what is left of its unit.
head -c 131072 /dev/urandom > data
step nvme write "$disk" --start-block 0 --block-count 255 --data-size 131072 --data data --dir-type 2 --dir-spec 3
step nvme fdp status "$disk" --namespace-id 1
step nvme fdp update "$disk" --namespace-id 1 --pids 3
step nvme fdp status "$disk" --namespace-id 1
step nvme fdp events "$controller" --endgrp-id 1 --host-events
step nvme fdp stats "$controller" --endgrp-id 1

# Write hints of files reach handles: by fcntl(F_SET_RW_HINT), without a word of NVMe.
for hint in short medium long extreme; do
    step fio --filename="$disk" --ioengine=psync --direct=1 --thread --output=fio.txt --name=$hint --rw=write --bs=64k \
        --size=1m --offset=16m --write_hint=$hint
done
step nvme fdp status "$disk" --namespace-id 1
# Nothing was written with the first handle, whose unit is whole.
left() { nvme fdp status "$disk" --namespace-id 1 | grep -o 'RUAMW): [0-9]*'; }
whole=$(left | head -n 1)
echo "== $(left | grep -vcx "$whole") handles were written"
step nvme fdp stats "$controller" --endgrp-id 1
step nvme reset "$controller"
step nvme fdp status "$disk" --namespace-id 1
dmesg | grep -i nvme
echo o > /proc/sysrq-trigger
sleep 9
