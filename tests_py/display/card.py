# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a card says, read from its markup, which must be whole and harmless."""

from __future__ import annotations

import re
from base64 import b64decode
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"path", "rect", "img"}  # written with a slash at their end


class Card(HTMLParser):
    """What a card says: its rows, its text, and that its markup is whole and harmless."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags, self.rows, self.text, self.open, self.label = [], {}, "", [], ""
        self.feed(markup)
        self.close()
        assert self.open == []
        assert not {"script", "link", "iframe", "style", "a"} & set(self.tags)
        assert re.findall(r"\b(?:src|href|on\w+)=", markup) == ["src="] * markup.count("<img ")
        assert set(re.findall(r"url\([^)]*\)", markup)) <= {
            "url(#cudago-end)",
            "url(#cudago-end-inside)",
        }
        assert set(re.findall(r"https?://\S+?(?=\")", markup)) <= {"http://www.w3.org/2000/svg"}
        markup.encode()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        assert tag in VOID
        if tag == "img":
            kind, _, drawn = dict(attrs)["src"].partition(",")
            assert kind == "data:image/svg+xml;base64"
            picture = b64decode(drawn, validate=True).decode()
            ElementTree.fromstring(picture)  # a browser shows nothing of an image that is not XML
            inside = Card(picture)
            self.tags += inside.tags
            self.text += inside.text

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open[-1:] == ["th"]:
            self.label = data
        elif self.open[-1:] == ["td"]:
            self.rows[self.label] = data


def card(thing) -> Card:
    """Return the card of an object."""
    return Card(thing._repr_html_())


def shown(tensor) -> list[list[str]]:
    """Return the elements on a tensor's card."""
    return [
        line.split()
        for line in re.findall(r"<pre.*?>(.*?)</pre>", tensor._repr_html_(), re.S)[0].split("\n")
    ]
