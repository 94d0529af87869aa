#!/bin/sh
# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0

# make lint runs this, with GO, CC, CGO_CFLAGS and PY set. Every check runs; the last line says how many failed.

failed=0
check() {
    name=$1
    shift
    if "$@"; then
        echo "lint: $name: ok"
    else
        echo "lint: $name: FAILED"
        failed=$((failed + 1))
    fi
}

formatted() {
    files=$(git ls-files '*.go' | grep -v '/z[^/]*$' | xargs "$GO" tool goimports -local github.com/cudago/cudago -l)
    [ -z "$files" ] || { echo "$files"; return 1; }
}

# cgo's own files do not bear -Wextra, so our C files are compiled once more by themselves, against the header that cgo
# makes of the //export comments.
c_warnings() {
    out=$(mktemp -d) || return 1
    result=0
    for package in $(git ls-files '*.c' | grep -v '/z[^/]*$' | xargs -n 1 dirname | sort -u); do
        : > "$out/_cgo_export.h"
        exports=$(grep -l '^//export ' "$package"/*.go 2> /dev/null)
        if [ -n "$exports" ]; then
            # shellcheck disable=SC2086 # several files
            (cd "$package" && "$GO" tool cgo -objdir "$out" -exportheader "$out/_cgo_export.h" -- \
                -I"$out" -I../include -I../../dlpack $CGO_CFLAGS $(echo "$exports" | xargs -n 1 basename)) || result=1
        fi
        for source in "$package"/*.c; do
            case $source in */z*) continue ;; esac
            # shellcheck disable=SC2086 # several words
            $CC -std=gnu11 -O1 -Wall -Wextra -Werror -fsyntax-only -I"$out" -Ipyext/include -Idlpack -I"$package" \
                $CGO_CFLAGS "$source" || result=1
        done
    done
    rm -rf "$out"
    return $result
}

check gofmt formatted
check 'go vet' "$GO" vet ./...
check 'go vet, the border' "$GO" vet -tags pyext ./pyext ./pyext/native
check 'C warnings' c_warnings
check ruff "$PY" -m ruff check -q .
check mypy "$PY" -m mypy
if command -v golangci-lint > /dev/null; then
    check golangci-lint golangci-lint run ./...
else
    echo 'lint: golangci-lint: not installed, skipped'
fi
if [ "$failed" -gt 0 ]; then
    echo "lint: $failed checks failed"
    exit 1
fi
