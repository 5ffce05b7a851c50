# Sourced by the scripts of this folder: `step NAME COMMAND...` names a step, runs it and notes what it cost.
#
# Each step and each test program is one line of $HEADRACE_TIMES (target/times.tsv): kind, name, seconds on the clock,
# seconds of CPU. `tests/times.py` turns the lines into docs/contributing/test-times.md.

: "${HEADRACE_TIMES:=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")/target/times.tsv}"
export HEADRACE_TIMES
mkdir -p "$(dirname "$HEADRACE_TIMES")"
started=$SECONDS

# `timed KIND NAME COMMAND...`: runs the command; if it succeeds, notes its times.
timed() {
    local kind=$1 name=$2 measured wall user system TIMEFORMAT='%R %U %S'
    shift 2
    measured=$HEADRACE_TIMES.$BASHPID
    { time "$@" 2>&3; } 3>&2 2>"$measured"
    read -r wall user system <"$measured"
    rm -f "$measured"
    printf '%s\t%s\t%s\t%s\n' "$kind" "$name" "$wall" "$(awk "BEGIN { print $user + $system }")" >>"$HEADRACE_TIMES"
}

step() {
    printf '\n== %s (at %d s)\n' "$1" $((SECONDS - started))
    timed step "$@"
}
