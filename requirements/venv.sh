#!/usr/bin/env bash
# Make a virtual environment and install locked requirements into it:
#
#   requirements/venv.sh FOLDER requirements/runtime.txt ...
#
# Uses $PYTHON, or the first Python >= 3.11 that it finds. Every file is checked against its hash.
set -euo pipefail

folder=$1
shift

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local name
    for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if command -v "$name" >/dev/null && is_new_enough "$name"; then
            command -v "$name"
            return
        fi
    done
    {
        echo "error: no Python 3.11 or newer found"
        echo "  found: $( (${PYTHON:-python3} --version 2>&1 || true) | head -1 | sed 's/.*: line [0-9]*: //')"
        echo
        echo "hint: Install one, or name it: make PYTHON=/path/to/python3.12"
    } >&2
    exit 1
}

if ! { [ -x "$folder/bin/python" ] && is_new_enough "$folder/bin/python" && "$folder/bin/python" -m pip --version; } \
    >/dev/null 2>&1; then
    python=$(find_python)
    echo "$folder: $("$python" --version)"
    rm -rf "$folder"
    # Some systems ship Python without the parts that put pip into a new environment, but with pip itself.
    if ! "$python" -m venv "$folder" >/dev/null 2>&1; then
        rm -rf "$folder"
        "$python" -m venv --without-pip "$folder"
        "$python" -m pip --python "$folder/bin/python" install --quiet pip
    fi
fi

arguments=()
for file in "$@"; do arguments+=(--requirement "$file"); done
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes "${arguments[@]}"
