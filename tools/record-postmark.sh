#!/bin/bash
# Runs Postmark on ext4 over a loop device and says what requests the file system made of it.
#
#   sudo ./record-postmark.sh [FOLDER]
#
# Needs root, postmark, blkparse (package blktrace), mkfs.ext4, and 3 GiB in FOLDER (default: a new one below /var/tmp).
# It makes a file, a loop device over it and a mount, and takes all of them away again, also when stopped. Caches of the
# whole machine are dropped. Settings by environment: FILES, BYTES, TRANSACTIONS, SEED, SUBDIRECTORIES; DIRTY, the bytes
# that may be dirty before writers wait (write-back begins at half; vm.dirty_bytes of the machine while it runs), without
# which small runs are deleted before anything of them is written; MEMORY, the bytes that the program and its cache may
# have (a control group), without which all reads are served from memory.
set -euo pipefail

files=${FILES:-50} bytes=${BYTES:-1048576} transactions=${TRANSACTIONS:-200} seed=${SEED:-712}
subdirectories=${SUBDIRECTORIES:-10} dirty=${DIRTY:-16777216} memory=${MEMORY:-50331648}
group=/sys/fs/cgroup/record-postmark
tracing=/sys/kernel/tracing
[ "$(id -u)" = 0 ] || { echo "record-postmark: found no root, expected to run as root (sudo)" >&2; exit 2; }
for tool in postmark blkparse mkfs.ext4 losetup awk; do
    command -v "$tool" >/dev/null || { echo "record-postmark: found no $tool, expected it to be installed" >&2; exit 2; }
done
[ -w "$tracing/current_tracer" ] || { echo "record-postmark: found no $tracing, expected tracefs mounted there" >&2; exit 2; }

folder=$(mktemp --directory "${1:-/var/tmp}/postmark.XXXXXX")
loop= reader= mounted= ratios=
clean() {
    # Setting the ratios again clears what was set in bytes.
    if [ -n "$ratios" ]; then
        echo "${ratios% *}" >/proc/sys/vm/dirty_background_ratio
        echo "${ratios#* }" >/proc/sys/vm/dirty_ratio
    fi
    if [ -n "$loop" ]; then echo 0 >"/sys/block/${loop#/dev/}/trace/enable" || true; fi
    echo nop >"$tracing/current_tracer" || true
    echo 0 >"$tracing/options/bin" || true
    echo 1 >"$tracing/options/context-info" || true
    if [ -n "$reader" ]; then kill "$reader" 2>/dev/null || true; fi
    if [ -n "$mounted" ]; then umount "$folder/mount" || true; fi
    if [ -n "$loop" ]; then losetup --detach "$loop" || true; fi
    [ ! -d "$group" ] || rmdir "$group" || true
    rm -rf "$folder"
}
trap clean EXIT

truncate --size 2G "$folder/disk"
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$folder/disk"
loop=$(losetup --find --show --direct-io=on "$folder/disk" 2>/dev/null || losetup --find --show "$folder/disk")
mkdir "$folder/mount"
mount "$loop" "$folder/mount"
mounted=yes

sync
echo 3 >/proc/sys/vm/drop_caches
echo blk >"$tracing/current_tracer"
echo 1 >"$tracing/options/bin"
echo 0 >"$tracing/options/context-info"
echo >"$tracing/trace"
cat "$tracing/trace_pipe" >"$folder/recorded" &
reader=$!
echo 1 >"/sys/block/${loop#/dev/}/trace/enable"

ratios="$(cat /proc/sys/vm/dirty_background_ratio) $(cat /proc/sys/vm/dirty_ratio)"
[ "${ratios#* }" != 0 ] || { ratios=; echo "record-postmark: found vm.dirty_bytes set, expected vm.dirty_ratio" >&2; exit 2; }
echo $((dirty / 2)) >/proc/sys/vm/dirty_background_bytes
echo "$dirty" >/proc/sys/vm/dirty_bytes
limited="no limit of memory (no control group)"
if grep -qs memory /sys/fs/cgroup/cgroup.controllers && mkdir "$group" && echo "$memory" >"$group/memory.max"; then
    limited="$memory bytes of memory"
fi
join() { [ "$limited" = "no limit of memory (no control group)" ] || echo "$BASHPID" >"$group/cgroup.procs"; }

(join && exec postmark) >"$folder/said" <<COMMANDS
set location $folder/mount
set size $bytes $bytes
set number $files
set subdirectories $subdirectories
set transactions $transactions
set seed $seed
set read 4096
set write 4096
run
quit
COMMANDS
sync -f "$folder/mount"
sleep 1
echo 0 >"/sys/block/${loop#/dev/}/trace/enable"
sleep 1
kill "$reader"
reader=

echo "kernel $(uname -r), $(postmark </dev/null 2>&1 | head -n 1), $dirty bytes dirty at most, $limited"
grep -E "seconds total|created|read|appended|deleted|written" "$folder/said" || true
# Q is a request as the file system hands it over, D as the driver gets it after merging.
blkparse -q -i - -f "%a %d %S %n\n" <"$folder/recorded" 2>/dev/null | awk '
    ($1 == "Q" || $1 == "D") && $4 > 0 {
        kind = ($2 ~ /R/ && $2 !~ /W/) ? "read" : ($2 ~ /W/ ? "write" : "other")
        key = $1 " " kind
        requests[key]++; sectors[key] += $4
        if (last[key] == $3) contiguous[key]++
        last[key] = $3 + $4
        size = $4 * 512
        step = size <= 4096 ? "4K" : size <= 32768 ? "32K" : size <= 131072 ? "128K" : size <= 524288 ? "512K" : "more"
        sizes[key " " step]++
        if ($2 ~ /M/) metadata[key]++
    }
    END {
        for (key in requests) {
            printf "%-8s %7d requests %11d bytes mean %8.0f contiguous %.3f metadata %5d", key, requests[key],
                sectors[key] * 512, sectors[key] * 512 / requests[key], contiguous[key] / requests[key], metadata[key]
            split("4K 32K 128K 512K more", steps, " ")
            for (i = 1; i <= 5; i++) printf "  <=%s %d", steps[i], sizes[key " " steps[i]]
            print ""
        }
    }' | sort
