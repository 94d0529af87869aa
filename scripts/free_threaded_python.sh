#!/usr/bin/env bash
# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0

# Builds a free-threaded CPython into a folder: scripts/free_threaded_python.sh FOLDER SOURCES [REVISION]
# SOURCES is an unpacked CPython 3.13 or newer, or a Git repository of it, of which REVISION is taken. Debian has no such
# interpreter. A folder of ~/.cache/cudago whose name begins with free-threaded is where tests_py/project/test_free_threaded.py
# looks for one. It is there to be refused, so nothing about it is fast. A folder that is there stays as it is.

set -euo pipefail

folder=$(mkdir -p "$(dirname "$1")" && cd "$(dirname "$1")" && pwd)/$(basename "$1")
[ -e "$folder/made" ] && exit 0
sources=$(cd "$2" && pwd)
rm -rf "$folder"
mkdir -p "$folder/build" "$folder/sources"
exec 3> "$folder/log" # of configure and make, shown where they fail
trap 'status=$?; [ $status = 0 ] || tail -n 20 "$folder/log" >&2; exit $status' EXIT

if [ -e "$sources/configure" ]; then
    cp -r "$sources/." "$folder/sources"
else
    # Without a list that only readers of history need: copies of the repository leave out its largest file.
    git -C "$sources" archive "${3:-HEAD}" . ":!Misc/svnmap.txt" 2>&3 | tar -x -C "$folder/sources"
fi

cd "$folder/build"
CFLAGS=-O1 ../sources/configure -q --disable-gil --prefix="$folder" --with-ensurepip=no --disable-test-modules >&3 2>&1
nice -n 10 make -j "$(nproc)" >&3 2>&1
# The library, its modules and the interpreter, without manuals and tests.
nice -n 10 make altbininstall libinstall inclinstall sharedinstall >&3 2>&1
cd "$folder"
rm -rf build sources
python=$(ls "$folder"/bin/python3.*t)
"$python" -c 'import sysconfig; assert sysconfig.get_config_var("Py_GIL_DISABLED")'
touch "$folder/made"
