#!/usr/bin/env bash
# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0

# Puts Debian's newest Pythons into a folder, beside those of the system: scripts/debian_pythons.sh FOLDER
# They run from there as they are: nothing is installed, nothing asks for root or for a chroot. A folder that is there stays
# as it is; remove it to get newer ones. DEBIAN_MIRROR names another mirror.
#
# With an architecture, as Debian calls it, it is the Python of Debian's stable for that machine, with its C library:
# scripts/debian_pythons.sh FOLDER arm64. An emulator runs it: qemu-aarch64 -L FOLDER/system FOLDER/system/usr/bin/python3

set -euo pipefail

folder=$(mkdir -p "$(dirname "$1")" && cd "$(dirname "$1")" && pwd)/$(basename "$1")
architecture=${2:-}
[ -e "$folder/made" ] && exit 0
for tool in apt-get apt-cache dpkg-deb; do
    command -v "$tool" > /dev/null || { echo "Debian's Pythons need $tool, which this machine lacks" >&2; exit 1; }
done
rm -rf "$folder"
mkdir -p "$folder"/{lists,archives}/partial "$folder/system"
exec 3> "$folder/log" # of apt, shown where it fails
trap 'status=$?; [ $status = 0 ] || tail -n 20 "$folder/log" >&2; exit $status' EXIT

# apt with lists and packages of its own. To it nothing is installed, so it brings all that the Pythons need.
: > "$folder/status"
cat > "$folder/apt.conf" << END
Dir::State::lists "$folder/lists";
Dir::State::status "$folder/status";
Dir::Cache "$folder";
Dir::Etc::sourcelist "$folder/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Debug::NoLocking "true";
APT::Install-Recommends "false";
APT::Sandbox::User "$(id -un)";
Acquire::Retries "3";
END
[ -z "$architecture" ] || cat >> "$folder/apt.conf" << END
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
END
export APT_CONFIG=$folder/apt.conf
keys=/usr/share/keyrings/debian-archive-keyring
[ -e "$keys.gpg" ] || keys=$keys.pgp
[ -e "$keys.gpg" ] && keys=$keys.gpg

# Prints the packages of the newest Pythons of the suite.
newest() { apt-cache pkgnames python3. | grep -E '^python3\.(1[4-9]|[2-9][0-9])-(venv|dev)$' && echo patchelf; }

# The newest that Debian has are in sid, which at times cannot be installed: then those before them.
get() {
    echo "deb [signed-by=$keys] ${DEBIAN_MIRROR:-http://deb.debian.org/debian} $1 main" > "$folder/sources.list"
    apt-get update >&3 2>&1 || return 1
    local wanted=python3-venv
    [ -n "$architecture" ] || wanted=$(newest) || return 1
    # shellcheck disable=SC2086 # one word for each package
    apt-get install -y --download-only $wanted libstdc++6 >&3 2>&1
}
if [ -n "$architecture" ]; then get stable; else get sid || get testing; fi
for package in "$folder"/archives/*.deb; do
    dpkg-deb -x "$package" "$folder/system"
done
rm -rf "$folder"/{archives,lists}
if [ -n "$architecture" ]; then
    # Of Debian's package of folders, which nothing asks for: the loader's path begins so.
    [ -e "$folder/system/lib" ] || ln -s usr/lib "$folder/system/lib"
    touch "$folder/made"
    exit
fi

# Their C library is newer than this machine's: the interpreters name it and its loader by path, and modules find the rest
# through the interpreter. Programs that they start are as they were.
libraries=$(dirname "$(find "$folder/system" -name libc.so.6)")
loader=$(find "$libraries" -maxdepth 1 -name 'ld-linux-*.so.*')
patch() { "$loader" --library-path "$libraries" "$folder/system/usr/bin/patchelf" "$@"; }
for python in "$folder"/system/usr/bin/python3.[0-9]*; do
    [[ $python =~ /python3\.[0-9]+$ ]] || continue
    # One by one, in this order: patchelf 0.18 breaks the program otherwise.
    patch --force-rpath --set-rpath "$libraries" "$python"
    patch --set-interpreter "$loader" "$python"
    "$python" -c 'import ctypes, ssl, sqlite3'
done
# Their pyconfig.h includes one of /usr/include.
machine=$(basename "$libraries")
for headers in "$folder"/system/usr/include/python3.*; do
    ln -s "../$machine" "$headers/$machine"
done
# Where venv finds pip.
sed -i --follow-symlinks "s|'/usr/share/python-wheels|'$folder/system/usr/share/python-wheels|" "$folder"/system/usr/lib/python3.*/_sysconfigdata_*.py
touch "$folder/made"
