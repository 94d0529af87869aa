#!/usr/bin/env bash
# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0

# make test-gpu: everything that needs a GPU, with the cudago that $PYTHON has installed. It needs neither Go nor a
# network, so it also runs on a machine to which only this tree and a wheel were carried:
#
#     python3 -m pip install --no-deps dist/*.whl && scripts/gpu.sh
#
# Go tests run if their binaries were carried too (make go-test-binaries puts them into build/gotest). A missing GPU is
# a failure here. Every part runs, even after a failure; the summary comes last. With $OUT set, logs go there.

set -uo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
OUT=${OUT:-$(mktemp -d)}
export CUDAGO_REQUIRE_GPU=1 CUDAGO_DRIVER=nvidia

summary=()
failed=0
part() {
    local name=$1 log="$OUT/$2.log" start=$SECONDS
    shift 2
    echo "=== $name"
    "$@" < /dev/null 2>&1 | tee "$log" | tail -n 40
    if [ "${PIPESTATUS[0]}" -eq 0 ]; then
        summary+=("ok      $name ($((SECONDS - start)) s)")
    else
        summary+=("FAILED  $name ($((SECONDS - start)) s), log: $log")
        failed=1
    fi
}
skip() {
    summary+=("skipped $1: $2")
}

go_tests() {
    local binary package result=0
    for binary in build/gotest/*.test; do
        # The binary of cuda/internal/driver/nvidia is cuda+internal+driver+nvidia.test. It runs where go test runs it.
        package=$(basename "$binary" .test)
        (cd "${package//+//}" && "$OLDPWD/$binary" -test.v) || result=1
    done
    return $result
}

part 'python -m cudago info' info "$PYTHON" -m cudago info
part 'Python tests on the GPU' pytest "$PYTHON" -m pytest -q --ignore tests_py/interop/kernels tests_py
if compgen -G 'build/gotest/*.test' > /dev/null; then
    part 'Go tests on the GPU' go go_tests
else
    skip 'Go tests on the GPU' 'no binaries in build/gotest (make go-test-binaries)'
fi
part 'examples/digits.py' digits "$PYTHON" examples/digits.py
if command -v compute-sanitizer > /dev/null; then
    # Calls that the driver is meant to refuse are part of the tests, so only what kernels and copies do counts.
    part 'graph tests under memcheck' memcheck compute-sanitizer --tool memcheck --target-processes all \
        --report-api-errors no \
        --error-exitcode 99 "$PYTHON" -m pytest -q -m gpu -k graph tests_py
else
    skip 'graph tests under memcheck' 'compute-sanitizer is not on PATH'
fi
# Most of the time goes into the compilers, as far as the machine has them.
part 'kernels of other compilers' kernels "$PYTHON" -m pytest -q tests_py/interop/kernels

echo "=== summary ($OUT)"
printf '%s\n' "${summary[@]}"
exit $failed
