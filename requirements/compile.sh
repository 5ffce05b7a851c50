#!/usr/bin/env bash
# Re-create the locked requirements from the *.in files: `make lock`. Takes one minute.
# Nothing of the machine that runs it may reach the result: no index, no folder, no command line with options.
set -euo pipefail
cd "$(dirname "$0")"
unset PIP_FIND_LINKS PIP_INDEX_URL PIP_EXTRA_INDEX_URL
export CUSTOM_COMPILE_COMMAND="make lock"
for name in runtime build dev bench bench-duckdb mutations; do
    "${LOCK_TOOL:-pip-compile}" --quiet --strip-extras --generate-hashes --allow-unsafe \
        --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options \
        "$@" --output-file "$name.txt" "$name.in"
done
