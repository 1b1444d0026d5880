#!/usr/bin/env bash
# Serves a drive, boots the kernel of build.sh beside it in a network of their own, and attaches the drive there: nvme-cli, ext4
# with a check, fio with verification, a change of format; then the power is cut while files are written, and those that were
# synced have to be there. Needs root. Prints each step with its exit status; half a minute.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "${1:-}" != inside ]; then
    exec unshare --net --mount "$0" inside
fi
ip link set lo up
ip tuntap add dev tap0 mode tap
ip addr add 10.9.0.1/24 dev tap0
ip link set tap0 up
rm -f build/guest/attached.txt build/guest/ctl.sock
.venv/bin/flashwright serve default --set recovery.mount-by=scan --nvme-tcp 10.9.0.1:4420 --listen-anywhere \
    --ctl unix:build/guest/ctl.sock > build/guest/served.txt 2>&1 &
server=$!
until grep -q 'nqn\.' build/guest/served.txt; do
    kill -0 "$server"
    sleep 0.1
done
# Commands for the drive, when the guest is ready for them.
(
    for wait_and_do in 'ready for a power cut:cut' 'the drive is gone:mount'; do
        until grep -qs "^== ${wait_and_do%:*}" build/guest/attached.txt; do sleep 0.1; done
        .venv/bin/flashwright ctl unix:build/guest/ctl.sock "${wait_and_do#*:}" > build/guest/ctl.txt
    done
) &
# Without `gro=1` frames are lost.
timeout 300 build/guest/linux mem=512M root=/dev/root rootfstype=hostfs rootflags=/ ro init="$PWD/tools/guest/steps.sh" \
    vec0:transport=tap,ifname=tap0,depth=128,gro=1 con=null con0=null,fd:1 quiet < /dev/null | tee build/guest/attached.txt
kill -TERM "$server" # a shell makes its background commands deaf to SIGINT
wait "$server" || true
cat build/guest/served.txt
# One comparison is with other data, and has to fail.
failed=$(grep -c -- '^-- exit status [1-9]' build/guest/attached.txt || true)
grep -q '^== the file is the same' build/guest/attached.txt
grep '^== of .* synced files 0 are lost' build/guest/attached.txt
[ "$failed" -eq 1 ] || { echo "error: $failed steps failed, expected 1" >&2; exit 1; }
