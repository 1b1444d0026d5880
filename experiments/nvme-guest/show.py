"""What `flashwright watch` and `probe` read of emulated NVMe drives, and that nothing is written without consent.

    python experiments/nvme-guest/show.py

It starts the guest of `guest.py` twice: first to read everything without consent, after which the drives must be what
they were, byte by byte; then to watch the drive with data placement while fio writes to it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import guest

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("plain", "zoned", "placed")
# For bash: the controller with a serial number, and its namespace.
FIND = """
find_drive() {
    for each in /sys/class/nvme/nvme*; do
        if [ "$(tr -d ' ' < $each/serial)" = "$1" ]; then basename $each; fi
    done
}
flashwright() { "$PYTHON" -m flashwright "$@"; }
"""
WITHOUT_CONSENT = """
for name in plain zoned placed; do
    drive=$(find_drive $name)
    echo "== $name"
    flashwright watch /dev/$drive --count 1 --interval 1s --json /tmp/$name.json
    echo "status $?"
    echo "JSON $name $(tr -d '\\n' < /tmp/$name.json)"
    flashwright probe /dev/${drive}n1 --only plausible --json /tmp/probe.json 2>&1 | tail -4
done
echo "== nobody"
chmod a+r /dev/nvme*
setpriv --reuid 65534 --regid 65534 --clear-groups "$PYTHON" -m flashwright watch /dev/nvme0 --count 1
echo "status $?"
"""
UNDER_FIO = """
drive=$(find_drive placed)
fio --name=writes --filename=/dev/${drive}n1 --rw=randwrite --bs=64k --direct=1 --time_based --runtime=40 \\
    --ioengine=psync --rate=4m --output=/tmp/fio.txt &
sleep 8
flashwright watch /dev/$drive --count 4 --interval 5s --json /tmp/placed.json
echo "status $?"
echo "JSON placed $(tr -d '\\n' < /tmp/placed.json)"
kill %1
wait
"""


def digests(folder: Path) -> dict[str, str]:
    """Of each drive."""
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in NAMES}


def played(job: str, folder: Path) -> str:
    """What a job printed in the guest."""
    settings = (
        f"cd {ROOT}; export PYTHON={sys.executable} PYTHONPATH={ROOT / 'python'}\n"
        "export PYTHONDONTWRITEBYTECODE=1 COLUMNS=160\n"
    )
    status, output = guest.run(settings + FIND + job, folder)
    assert status == 0, output
    return output


def documents(output: str) -> dict[str, dict[str, Any]]:
    """The figures that `watch` wrote, by drive."""
    return {name: json.loads(text) for name, text in re.findall(r"^JSON (\w+) (.*)$", output, re.M)}


def main() -> int:
    """Run both parts, check, and print what was read."""
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        for name in NAMES:
            (folder / name).write_bytes(os.urandom(guest.DRIVE_BYTES))
        before = digests(folder)
        output = played(WITHOUT_CONSENT, folder)
        print(re.sub(r"^JSON.*\n", "", output, flags=re.M))
        found = documents(output)
        assert output.count("status 0") == 3, "watch reads all three drives"
        assert "status 2" in output, "without the right to ask, watch says so"
        zoned = found["zoned"]["identity"]["namespaces"][0]
        assert zoned["zoning"] == {"zone_bytes": 16 << 20, "open_max": 8, "active_max": 12}, zoned
        assert len(zoned["zones"]) == guest.DRIVE_BYTES // (16 << 20)
        placed = found["placed"]["identity"]
        assert placed["placements"][0]["handles"] == 8
        assert placed["media_counter"] == "data placement"
        assert all(each["readings"][0]["health"]["temperature_c"] == 50 for each in found.values())
        same = digests(folder) == before
        print(f"without consent: {'nothing' if same else 'SOMETHING'} was written, byte by byte\n")
        output = played(UNDER_FIO, folder)
        print(re.sub(r"^JSON.*\n", "", output, flags=re.M))
        whole = documents(output)["placed"]["whole"]
        rate = whole["host_written_bytes"] / whole["seconds"]
        print(f"fio was held to 4.19 MB/s, watch saw {rate / 1e6:.2f} MB/s to the drive")
        assert 1.0 <= whole["write_amplification"] < 1.02, whole
        assert abs(rate / (4 << 20) - 1) < 0.25
        return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
