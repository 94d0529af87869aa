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
    files=$(git ls-files '*.go' | grep -v '/z[^/]*$' | xargs "$GO" tool -modfile=tools.mod goimports -local github.com/cudago/cudago -l)
    [ -z "$files" ] || { echo "$files"; return 1; }
}

# Versions of clang-format differ in what they make of the same rules, so pyproject.toml pins one.
c_formatted() {
    git ls-files 'pyext/*.[ch]' 'dlpack/*.[ch]' | grep -v '/z[^/]*$' | xargs "$(dirname "$PY")/clang-format" --dry-run -Werror
}

# All C of the module, compiled strictly. Off is what cgo's own files and the tables of Python types cannot avoid, and what
# later Pythons than the oldest replace by what that does not have. Not an error in #cgo lines, because a user's compiler or
# Python may know warnings that ours does not.
c_warnings() {
    off='-Wno-unused-parameter -Wno-unused-function -Wno-cast-function-type -Wno-missing-field-initializers'
    off="$off -Wno-deprecated-declarations"
    out=$(mktemp -d) || return 1
    CGO_CFLAGS="$CGO_CFLAGS -Wall -Wextra -Werror $off" "$GO" build -tags pyext -buildmode=c-shared -o "$out/strict.so" ./pyext
    result=$?
    rm -rf "$out"
    return $result
}

# What is known of the types of all public names, as a user's checker sees the package.
verify_types() {
    PYTHONPATH=python "$PY" -m pyright --pythonpath "$PY" --ignoreexternal --verifytypes cudago
}

# The stub is compared with the native module, and the annotations with what there is at run time.
stub() {
    PYTHONPATH=python "$PY" -m mypy.stubtest cudago --mypy-config-file pyproject.toml --ignore-disjoint-bases \
        --ignore-unused-allowlist --allowlist scripts/stubtest.txt
}

check 'go mod tidy' "$GO" mod tidy -diff
check gofmt formatted
check clang-format c_formatted
check 'go vet' "$GO" vet ./...
check 'go vet, the border' "$GO" vet -tags pyext ./pyext/...
check 'C warnings' c_warnings
check ruff "$PY" -m ruff check -q .
check mypy "$PY" -m mypy
check pyright "$PY" -m pyright --project pyproject.toml --pythonpath "$PY"
check 'pyright, what users see' verify_types
check stubtest stub
check 'use and misuse' "$PY" -m pytest -q tests_py/layout/test_typing.py
check golangci-lint "$GO" tool -modfile=golangci.mod golangci-lint run ./...
if [ "$failed" -gt 0 ]; then
    echo "lint: $failed checks failed"
    exit 1
fi
