#!/bin/sh
# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0

# make fuzz runs this, with GO, PY and FUZZTIME set: every fuzz target, or those that the arguments name; FuzzGraphFile is
# in Python. Go fuzzes one target
# at a time, and without a limit spends most of a short time on making smaller what it found. What fails is written into
# the package's testdata, where every go test runs it.

[ $# -gt 0 ] || set -- FuzzGraphFile $(git grep -hoE '^func Fuzz[A-Za-z0-9]+' -- '*_test.go' | sort -u | cut -d ' ' -f 2)

# seconds TIME: of a time as Go writes it, such as 5s and 1m
seconds() {
    case $1 in
    *h) echo $((${1%h} * 3600)) ;;
    *m) echo $((${1%m} * 60)) ;;
    *) echo "${1%s}" ;;
    esac
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Go before 1.27 may fail a target when its time is over, without an input that failed: https://go.dev/issue/75804.
went_well() {
    [ "$(tail -n 1 "$log")" = "exit status: 0" ] && return 0
    grep -q '^ *context deadline exceeded$' "$log" && ! grep -q 'Failing input written' "$log"
}

for target in "$@"; do
    if [ "$target" = FuzzGraphFile ]; then
        echo "fuzz: $target in scripts"
        "$PY" scripts/fuzz_graph_file.py "$(seconds "$FUZZTIME")" "$(date +%s)" || exit 1
        continue
    fi
    files=$(git grep -lE "^func $target\(" -- '*_test.go')
    [ -n "$files" ] || { echo "fuzz: no target is called $target" >&2; exit 1; }
    for file in $files; do
        package=$(dirname "$file")
        echo "fuzz: $target in $package"
        {
            "$GO" test "./$package" -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 100x < /dev/null
            echo "exit status: $?"
        } 2>&1 | tee "$log"
        went_well || exit 1
    done
done
