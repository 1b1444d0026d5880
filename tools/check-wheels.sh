#!/usr/bin/env bash
# Installs the wheel of this machine's processor into an empty environment of each Python from 3.11 on that is here, and plays
# a run with it; PYTHONS names others. With BUILD_SOURCES=1 the sources too, which takes cargo and minutes.
set -euo pipefail
folder=$(cd "${1:?the folder of the wheels}" && pwd)
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT

check() { # PYTHON PACKAGE...
    local python=$1 began
    shift
    "$python" -m venv "$room/env"
    "$room/env/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
    began=$(date +%s%N)
    (cd "$room" && env -i "$room/env/bin/flashwright" simulate default --requests 1000 --precondition empty --quiet --json result.json)
    echo "$("$python" --version): $(basename "$1"), first result after $((($(date +%s%N) - began) / 1000000)) ms"
    (cd "$room" && env -i "$room/env/bin/flashwright" rerun result.json --quiet)
    (cd "$room" && env -i "$room/env/bin/flashwright" reproduce --list > claims.txt)
    rm -rf "$room/env"
}

wheel=("$folder"/flashwright-*-"manylinux"*"$(uname -m)".whl)
papers=("$folder"/flashwright_papers-*.whl)
for python in ${PYTHONS:-python3.11 python3.12 python3.13 python3.14}; do
    if "$python" --version > /dev/null 2>&1; then # a shim of pyenv is there without its Python
        check "$python" "${wheel[0]}" "${papers[0]}"
    else
        echo "$python: not on this machine, not checked"
    fi
done
if [ -n "${BUILD_SOURCES:-}" ]; then
    sources=("$folder"/flashwright-*.tar.gz)
    check "${PYTHON:-python3}" "${sources[0]}" "${papers[0]}"
fi
