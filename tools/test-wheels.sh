#!/usr/bin/env bash
# Installs the wheels into empty roots of Debian, one for each Python and each processor, and plays a run in each, without a
# network. Nothing but bash, coreutils, Python and the C++ library that PyArrow and SciPy load is unpacked there. Needs root and mmdebstrap, and for another processor
# than this machine's qemu-user-static, registered with the kernel. ROOMS and PROCESSORS choose others; a room is a release
# of Debian with its Python, or a folder with a root that exists.
set -euo pipefail
folder=$(cd "${1:?the folder of the wheels}" && pwd)
python=${PYTHON:-python3}
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT

declare -A debian=([x86_64]=amd64 [aarch64]=arm64)
# The tags that pip of the host may take for a glibc of 2.36, which bookworm has.
tags() { # PROCESSOR
    printf -- '--platform manylinux2014_%s\n' "$1"
    for minor in $(seq 17 36); do printf -- '--platform manylinux_2_%s_%s\n' "$minor" "$1"; done
}

for processor in ${PROCESSORS:-x86_64 aarch64}; do
    for each in ${ROOMS:-bookworm=3.11 trixie=3.13 forky=3.14}; do
        suite=${each%=*} version=${each#*=} root=$room/root
        echo "$processor, $suite:"
        if [ -d "$suite" ]; then
            cp -a "$suite" "$root"
        else
            merged=()
            # Later releases have /bin and /lib as links in a package.
            [ "$suite" != bookworm ] || merged=(--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr)
            mmdebstrap --quiet --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' --architectures="${debian[$processor]}" "${merged[@]}" \
                --include="base-files,bash,coreutils,libstdc++6,python$version,python$version-venv" "$suite" "$root"
        fi
        # Debian's pip reads these before it looks at anything; a package of them would have to be configured.
        mkdir -p "$root/wheels" "$root/tmp" "$root/etc/ssl/certs"
        cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs"
        cp "$(dirname "$0")/check-wheels.sh" "$folder"/flashwright_papers-*.whl \
            "$folder"/flashwright-*manylinux*"$processor".whl "$root/wheels"
        # shellcheck disable=SC2046
        "$python" -m pip download --quiet --disable-pip-version-check --only-binary=:all: --python-version "$version" \
            $(tags "$processor") --dest "$root/wheels" "$root"/wheels/*.whl
        # A name space of its own for the network leaves none.
        unshare --net chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels \
            PYTHONS="python$version" /bin/bash /wheels/check-wheels.sh /wheels
        rm -rf "$root"
    done
done
