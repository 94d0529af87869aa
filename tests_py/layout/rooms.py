# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The rooms of pyext, and what in the sources violates their order.

A room is a folder: a package of Go, with C and a header. The order is that of ARCHITECTURE.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .c_source import INCLUDE, Program

ROOT = Path(__file__).resolve().parents[2]
PYEXT = ROOT / "pyext"
KEYWORDS = {"struct", "union"}  # of members without a name of their own
GENERATED = {"zcalls.h", "zdocs.h", "ztrampoline.go"}
ROW = re.compile(r"^\| `(\w+)` \| ((?:`\w+`,? ?)+) \|", re.M)
VARIABLES = re.compile(r"^extern (?!\w+ \()([^;()]*);", re.M)
LAST_NAME = re.compile(r"(\w+)(?:\[\w*\])?$")
IMPORT = re.compile(r'"github\.com/cudago/cudago/pyext/(\w+)"')
DLPACK = '"github.com/cudago/cudago/dlpack"'
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


@cache
def rooms() -> dict[str, list[str]]:
    """Return the nouns of each room, in the order of ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = text.split("## The rooms of pyext\n")[1].split("\n## ")[0]
    return {room: re.findall(r"`(\w+)`", nouns) for room, nouns in ROW.findall(section)}


def read(*kinds: str) -> dict[str, str]:
    files = (f for room in rooms() for f in sorted((PYEXT / room).iterdir()))
    return {
        f"{f.parent.name}/{f.name}": f.read_text()
        for f in files
        if f.suffix in kinds and f.name not in GENERATED
    }


@cache
def texts() -> dict[str, str]:
    """Return the C files and headers by ROOM/NAME."""
    return read(".c", ".h")


@cache
def go_texts() -> dict[str, str]:
    """Return the Go files by ROOM/NAME."""
    return read(".go")


class Arrows:
    """What the files of each room name of other rooms."""

    def __init__(self, c: dict[str, str], go: dict[str, str]) -> None:
        self.c, self.go = c, go
        self.order = {room: i for i, room in enumerate(rooms())}
        self.program = Program(c)
        self.home = self.homes()

    def homes(self) -> dict[str, str]:
        """Return the room that each name of C is defined in."""
        home: dict[str, str] = {}
        for s in self.program.sources.values():
            room = s.file.split("/")[0]
            home |= {f.name: room for f in s.functions if f.body and not f.static}
            if s.file.endswith(".h"):
                home |= {f.name: room for f in s.functions if f.body}  # inline
                home |= dict.fromkeys(set(s.members) - KEYWORDS, room)
                home |= dict.fromkeys(declared(self.c[s.file]), room)
        for file, text in self.go.items():
            home |= dict.fromkeys(re.findall(r"^//export (\w+)$", text, re.M), file.split("/")[0])
        return home

    def against(self) -> Iterator[str]:
        """Yield each include and each name of a later room."""
        for file, room, name in self.edges():
            if self.order[room] > self.order[file.split("/")[0]]:
                yield f"{file}: {name} is of the later room {room}"

    def edges(self) -> Iterator[tuple[str, str, str]]:
        """Yield file, other room and name, once each."""
        for s in self.program.sources.values():
            named = {t for t in s.t if t in self.home}
            own = {f.name for f in s.functions if f.static}
            yield from self.others(s.file, {n: self.home[n] for n in named - own}, self.c[s.file])
        for file, text in self.go.items():
            code = COMMENT.sub("", text)
            named = {n for n in re.findall(r"\bC\.(\w+)", code) if n in self.home}
            yield from self.others(file, {n: self.home[n] for n in named}, text)
            yield from self.others(file, {f"package {r}": r for r in IMPORT.findall(text)}, "")

    def others(self, file: str, named: dict[str, str], text: str) -> Iterator[tuple[str, str, str]]:
        included = {h: room_of(h, file) for h in INCLUDE.findall(text)}
        for name, room in sorted((named | included).items()):
            if room in self.order and room != file.split("/")[0]:
                yield file, room, name

    def unknown_to_go(self) -> Iterator[str]:
        """Yield headers that a room includes, and Go does not know that it depends on."""
        for room in self.order:
            files = [t for f, t in {**self.c, **self.go}.items() if f.startswith(f"{room}/")]
            imported = set(IMPORT.findall("".join(files)))
            if DLPACK in "".join(files):
                imported.add("dlpack")
            for other in sorted(self.reached(room) - {room} - imported):
                yield f"{room} includes headers of {other}, and does not import it"

    def reached(self, room: str) -> set[str]:
        """Return the rooms whose headers a room includes, also through others; and dlpack."""
        found, new = set(), {room}
        while new:
            found |= new
            new = {
                other
                for file, text in {**self.c, **self.go}.items()
                if file.split("/")[0] in new
                for other in (room_of(h, file) for h in INCLUDE.findall(text))
                if (other in self.order or other == "dlpack") and other not in found
            }
        return found


def room_of(header: str, file: str) -> str:
    """Return the folder of an included header; one without is in the file's own."""
    return header.split("/")[-2] if "/" in header else file.split("/")[0]


def declared(header: str) -> Iterator[str]:
    """Yield the variables that a header declares."""
    for names in VARIABLES.findall(COMMENT.sub("", header)):
        for name in names.split(","):
            if m := LAST_NAME.search(name.strip()):
                yield m[1]
