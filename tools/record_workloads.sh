#!/usr/bin/env bash
# Records real software at work on ext4 over a loop device; the bundled traces come from here.
#
#   sudo tools/record_workloads.sh [--out DIR] [--scratch DIR] [--loop-size SIZE]
#                                  [--scale X] [--python PYTHON] [NAME ...]
#
#   NAME         pgbench, rocksdb, sqlite or postmark; all four when none is named
#   --out        where NAME.blktrace and NAME.json go (default: ./recordings)
#   --scratch    where the loop device's file lies, on a disk with room (default: /var/tmp)
#   --loop-size  size of the loop device (default: 4G)
#   --scale      how long to run, 1 for what is bundled (default: 1)
#   --python     a Python 3.11 or newer with numpy (default: python3)
#
# It installs nothing, and says which packages are missing. The loop device's file, the mount and
# the database server are its own, and are gone when it ends, however it ends.
# The file system is unmounted and mounted again before each recording, so that the page cache holds
# nothing of it. A recording ends with sync and fstrim, so that what was written is all in it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
package_dir=$here/../python
if [[ ${1-} != --run ]]; then # the recorded command has its settings from the one that records
    out=recordings scratch=/var/tmp loop_size=4G scale=1 python=python3
    workloads=()
fi

say() { printf 'record_workloads: %s\n' "$*" >&2; }
die() { say "$@"; exit 2; }

# --- What runs while recording; each is called by this script itself, as the recorded command -----

# scaled N: N times --scale, at least 1.
scaled() { awk -v n="$1" -v x="$scale" 'BEGIN { v = int(n * x); print (v < 1 ? 1 : v) }'; }

finish() { sync -f "$mnt"; fstrim "$mnt"; }

as_postgres() { runuser -u postgres -- "$@"; }

start_postgres() {
    as_postgres "$pg_bin/pg_ctl" -D "$mnt/pg" -w -s -l "$work/postgres.log" \
        -o "-k $work -p 54329 -c listen_addresses=''" start
}

stop_postgres() { as_postgres "$pg_bin/pg_ctl" -D "$mnt/pg" -w -s -m fast stop; }

prepare_pgbench() {
    chown postgres "$work"
    install -d -o postgres -m 700 "$mnt/pg"
    as_postgres "$pg_bin/initdb" -D "$mnt/pg" --locale=C >"$work/initdb.log"
    cat >>"$mnt/pg/postgresql.conf" <<'CONF'
shared_buffers = 128MB
max_wal_size = 256MB
checkpoint_timeout = 30s
CONF
    start_postgres
    as_postgres createdb -h "$work" -p 54329 bench
    as_postgres "$pg_bin/pgbench" -h "$work" -p 54329 -i -q -s 100 bench 2>"$work/pgbench-init.log"
    stop_postgres
}

run_pgbench() {
    start_postgres
    as_postgres "$pg_bin/pgbench" -h "$work" -p 54329 -c 8 -j 2 -T "$(scaled 25)" bench
    stop_postgres
    finish
}

prepare_rocksdb() { mkdir "$mnt/db"; }

run_rocksdb() {
    local keys
    keys=$(scaled 1000000)
    db_bench --benchmarks=fillrandom,overwrite,readrandom --db="$mnt/db" --num="$keys" \
        --reads=$((keys / 20)) --key_size=16 --value_size=400 --compression_type=none \
        --write_buffer_size=16777216 --target_file_size_base=16777216 \
        --max_bytes_for_level_base=67108864 --cache_size=33554432 --threads=2 \
        --use_direct_reads=true --use_direct_io_for_flush_and_compaction=true --seed=7 --stats_interval_seconds=60
    finish
}

prepare_sqlite() { "$python" - "$mnt/app.db" load 600000 <<<"$sqlite_program"; }

run_sqlite() {
    "$python" - "$mnt/app.db" wal "$(scaled 10000)" <<<"$sqlite_program"
    "$python" - "$mnt/app.db" delete "$(scaled 4000)" <<<"$sqlite_program"
    finish
}

# Orders of customers: each transaction inserts one, updates one and reads two at random.
sqlite_program='
import random, sqlite3, sys

path, mode, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
draw = random.Random(7)
base = sqlite3.connect(path, isolation_level=None)
if mode == "load":
    base.execute("create table orders (id integer primary key, customer int, state int, body text)")
    base.execute("create index by_customer on orders (customer)")
    base.execute("begin")
    rows = ((draw.randrange(50_000), 0, draw.randbytes(100).hex()) for _ in range(count))
    base.executemany("insert into orders (customer, state, body) values (?, ?, ?)", rows)
    base.execute("commit")
else:
    base.execute(f"pragma journal_mode = {mode}").fetchall()
    base.execute("pragma synchronous = full")
    most = base.execute("select max(id) from orders").fetchone()[0]
    for _ in range(count):
        base.execute("begin immediate")
        base.execute(
            "insert into orders (customer, state, body) values (?, 0, ?)",
            (draw.randrange(50_000), draw.randbytes(100).hex()),
        )
        base.execute("update orders set state = state + 1 where id = ?", (draw.randint(1, most),))
        base.execute("commit")
        for _ in range(2):
            base.execute("select * from orders where id = ?", (draw.randint(1, most),)).fetchall()
base.close()
'

prepare_postmark() { mkdir "$mnt/files"; }

run_postmark() {
    postmark <<CONF
set location $mnt/files
set number 2000
set subdirectories 20
set transactions $(scaled 4000)
set size 512 32768
set read 4096
set write 4096
set buffering false
set seed 7
run
quit
CONF
    finish
}

if [[ ${1-} == --run ]]; then # the recorded command: --run NAME
    "run_$2"
    exit
fi

# --- Everything around it --------------------------------------------------------------------------

while (($#)); do
    case $1 in
    --out | --scratch | --loop-size | --scale | --python) (($# > 1)) || die "$1 lacks its value" ;;&
    --out) out=$2; shift 2 ;;
    --scratch) scratch=$2; shift 2 ;;
    --loop-size) loop_size=$2; shift 2 ;;
    --scale) scale=$2; shift 2 ;;
    --python) python=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit ;;
    pgbench | rocksdb | sqlite | postmark) workloads+=("$1"); shift ;;
    *) die "unknown argument $1; --help lists them" ;;
    esac
done
((${#workloads[@]})) || workloads=(pgbench rocksdb sqlite postmark)

[[ $EUID == 0 ]] || die "recording and mounting need root; run it with sudo"
pg_bin=$(find /usr/lib/postgresql /usr/pgsql-* -path '*/bin/pg_ctl' 2>/dev/null | sort -V | tail -1) ||
    true # a folder that is not there
pg_bin=${pg_bin%/pg_ctl}

missing=()
need() { command -v "$1" >/dev/null || missing+=("$2"); }
need mkfs.ext4 e2fsprogs
need losetup mount
need fstrim util-linux
"$python" -c 'import numpy, sqlite3' 2>/dev/null || missing+=("python3-numpy")
for name in "${workloads[@]}"; do
    case $name in
    pgbench) [[ -n $pg_bin ]] || missing+=(postgresql postgresql-contrib) ;;
    rocksdb) need db_bench rocksdb-tools ;;
    postmark) need postmark postmark ;;
    esac
done
((${#missing[@]} == 0)) || die "missing; with Debian's names: apt-get install ${missing[*]}"

mkdir -p "$out"
out=$(realpath "$out")
work=$(mktemp -d "$scratch/record-workloads.XXXXXX")
chmod 755 "$work"
mnt=$work/mnt image=$work/disk.img loop=
mkdir "$mnt"

clean() {
    local status=$?
    trap - EXIT
    if [[ -f $mnt/pg/postmaster.pid ]]; then stop_postgres || true; fi
    if mountpoint -q "$mnt"; then umount "$mnt" || umount -l "$mnt" || true; fi
    if [[ -n $loop ]]; then losetup --detach "$loop" || true; fi
    rm -rf --one-file-system "$work"
    exit "$status"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Trims travel with deletes where the software deletes files as it goes; elsewhere only at the end.
# PostMark stands for a mail server, which makes each message durable before it says so.
mount_options() {
    case $1 in
    rocksdb) echo discard ;;
    postmark) echo discard,sync,dirsync ;;
    *) echo defaults ;;
    esac
}

for name in "${workloads[@]}"; do
    say "$name: preparing"
    truncate -s "$loop_size" "$image"
    loop=$(losetup --find --show --direct-io=on "$image")
    mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
    mount -o "$(mount_options "$name")" "$loop" "$mnt"
    "prepare_$name"
    umount "$mnt"
    mount -o "$(mount_options "$name")" "$loop" "$mnt"

    say "$name: recording"
    export mnt work pg_bin python scale
    "$python" - "$package_dir" "$loop" "$out/$name" "${BASH_SOURCE[0]}" "$name" <<'PYTHON'
import dataclasses
import json
import sys
from pathlib import Path

folder, device, stem, script, name = sys.argv[1:]
sys.path.insert(0, folder)  # the sources: the package's compiled part is not needed
from flashwright.traces import record

try:
    summary = record.record(device, f"{stem}.blktrace", command=["bash", script, "--run", name])
except record.RecordError as error:
    sys.exit(f"record_workloads: {error}" + (f"; {error.hint}" if error.hint else ""))
found = dataclasses.asdict(summary) | {"read_share": summary.read_share}
Path(f"{stem}.json").write_text(json.dumps(found, indent=1, default=str) + "\n")
print(
    f"record_workloads: {name}: {summary.requests} requests, {summary.reads} reads, "
    f"{summary.writes} writes, {summary.trims} trims, {summary.flushes} flushes, "
    f"{summary.span_ns / 1e9:.1f} s, {summary.events_lost} events lost",
    file=sys.stderr,
)
if summary.command_status != 0 or not summary.complete:
    sys.exit(f"record_workloads: {name}: the recording is not sound: {summary}")
PYTHON
    umount "$mnt"
    losetup --detach "$loop"
    loop=
    rm "$image"
done
