# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of graphs."""

from __future__ import annotations

import random
import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

import cudago as cu

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def graph(device):
    """An empty graph."""
    with cu.Graph(device) as graph:
        yield graph


@pytest.fixture
def a(device, stream):
    """64 bytes of device memory."""
    with device.allocate(64, stream=stream) as buffer:
        yield buffer


class Picture:
    """A picture's boxes by title, as (left, top, right, bottom), and the ends of its lines."""

    def __init__(self, text: str) -> None:
        root = ElementTree.fromstring(text)
        self.size = float(root.get("width")), float(root.get("height"))
        self.texts, self.boxes = [], {}
        rect = None
        for element in root.iter():
            if element.tag == f"{SVG}rect" and element.get("class") != "stack":
                rect = element
            if element.tag == f"{SVG}text":
                self.texts.append([t.text for t in element])
                if rect is not None:  # otherwise it says which of the graphs inside follows
                    sides = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
                    x, y, width, height = sides
                    self.boxes[self.texts[-1][0]] = (x, y, x + width, y + height)
                rect = None
        lines = [p for p in root.iter(f"{SVG}path") if p.get("marker-end")]
        self.lines = set()
        for line in lines:
            begin = re.match(r"M(\S+) (\S+?)V", line.get("d"))
            end = re.search(r"(\S+) (\S+)$", line.get("d"))
            self.lines.add((self.at(*begin.groups(), 3), self.at(*end.groups(), 1)))

    def inside(self, box: str) -> set[str]:
        """Return the titles of the boxes in a box."""
        a = self.boxes[box]
        return {
            title
            for title, b in self.boxes.items()
            if title != box and a[0] < b[0] and a[1] < b[1] and a[2] > b[2] and a[3] > b[3]
        }

    def at(self, x: str, y: str, edge: int) -> str:
        """Return the title of the box that has a point in the middle of its upper or lower edge."""
        (found,) = [
            title
            for title, box in self.boxes.items()
            if abs((box[0] + box[2]) / 2 - float(x)) < 0.2 and abs(box[edge] - float(y)) < 0.2
        ]
        return found

    def overlap(self) -> list[tuple[str, str]]:
        """Return the pairs of boxes that cover each other."""
        return [
            (a, b)
            for (a, p), (b, q) in combinations(self.boxes.items(), 2)
            if p[0] < q[2] and q[0] < p[2] and p[1] < q[3] and q[1] < p[3]
        ]


def test_nodes_and_lines(graph, a):
    first = graph.memset(a, 0, name="first")
    left, right = first.memset(a[:4], 1, name="left"), first.memset(a[4:8], 2, name="right")
    right.memset(a[8:12], 3, name="far").memset(a, 4, name="farther")
    graph.join(left, first).memset(a[12:], 5, name="last")
    picture = Picture(graph.to_svg())
    assert picture.lines == {(x.name, y.name) for x, y in graph.edges}
    assert set(picture.boxes) == {n.name for n in graph.nodes}
    assert picture.overlap() == []
    for upper, lower in picture.lines:
        assert picture.boxes[upper][3] < picture.boxes[lower][1]
    assert ["left", "memset", "4 bytes of 0x1", "keeps dst (4 bytes)"] in picture.texts


def test_many_nodes_side_by_side(graph, a):
    joined = graph.join(*(graph.memset(a[i : i + 1], i, name=f"set {i}") for i in range(40)))
    for i in range(40):
        joined.memset(a[i : i + 1], 0, name=f"clear {i}")
    picture = Picture(graph.to_svg())
    assert (len(picture.boxes), len(picture.lines)) == (81, 80)
    assert picture.overlap() == []


def test_what_is_inside_of_a_node(graph, a, device):
    flag = graph.condition()
    node = graph.if_else(flag)
    yes, no = node.bodies
    yes.memset(a, 1, name="one").memset(a, 2, name="two")
    no.memset(a, 3, name="three")
    with cu.Graph(device) as inner:
        inner.memset(a, 4, name="four")
        graph.embed(inner, name="child")
    picture = Picture(graph.to_svg())
    assert picture.lines == {("one", "two")}
    assert picture.inside(node.name) == {"one", "two", "three"}
    assert picture.inside("child") == {"four"}
    assert picture.boxes["one"][2] < picture.boxes["three"][0]  # the bodies are side by side
    assert [text for text in picture.texts if text[0] in ("[0]", "[1]")] == [["[0]"], ["[1]"]]
    assert {pair for pair in picture.overlap() if not {node.name, "child"} & {*pair}} == set()


def test_nodes_of_a_kind_fold(graph, a):
    first = graph.join(name="first")
    rows = [first.memset(a[i % 64 :][:1], 7, name=f"set {i}") for i in range(1000)]
    graph.join(*rows, name="all").callback(print, name="a").callback(print, name="b")
    assert len(Picture(graph.to_svg(fold=None)).boxes) == 1004
    picture = Picture(graph.to_svg(fold=10))
    assert picture.lines == {
        ("first", "set 0 … set 999"),
        ("set 0 … set 999", "all"),
        ("all", "a … b"),
    }
    assert ["set 0 … set 999", "1,000 nodes", "1,000 memset"] in picture.texts
    assert max(picture.size) < 400
    assert Picture(graph.to_svg(fold=1004)).boxes == Picture(graph.to_svg(fold=None)).boxes
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"fold must be 1 or more, or None, got {wrong}"):
            graph.to_svg(fold=wrong)
    with pytest.raises(TypeError):
        graph.to_svg(fold="2")


@pytest.mark.parametrize("seed", range(5))
def test_any_graph_folds_without_a_circle(seed, graph, a):
    chosen = random.Random(seed)
    nodes = []
    for _ in range(400):
        waits = chosen.sample(nodes[-30:], min(len(nodes), chosen.choice([0, 1, 1, 2, 3])))
        node = graph.join(*waits)
        nodes.append(node.memset(a, 0) if chosen.random() < 0.3 else node)
    text = graph.to_svg(fold=40)
    picture = Picture(text)
    assert 0 < len(picture.boxes) <= 40
    assert picture.overlap() == []
    count = sum(int(n.replace(",", "")) for n in re.findall(r">([\d,]+) nodes<", text))
    alone = sum(len(text) < 2 or not text[1].endswith(" nodes") for text in picture.texts)
    assert count + alone == len(graph.nodes)
    for upper, lower in picture.lines:
        assert picture.boxes[upper][3] < picture.boxes[lower][1]


def test_any_name_can_be_drawn(graph, a):
    graph.memset(a, 0, name='<&> "quoted" \\n\x01\nsecond line')
    (texts,) = Picture(graph.to_svg()).texts
    assert texts[:2] == ['<&> "quoted" \\n\ufffd', "second line"]


def test_no_name_ends_a_line_or_reaches_a_terminal(graph, a):
    graph.memset(a, 0, name="a\x1b[31m\x85b\u2028\0c\nd")
    shown = ["a\ufffd[31m\ufffdb\ufffd\ufffdc", "d"]
    assert "\\n".join(shown) in graph.to_dot()
    assert str(graph).split("\n")[1].startswith(" ".join(shown))
    (texts,) = Picture(graph.to_svg()).texts
    assert texts[:2] == shown


def nested(graph, depth):
    """Return the innermost of graphs inside graphs."""
    inner = graph
    for level in range(depth):
        inner = inner.if_then(graph.condition(), name=f"level {level}").body
    return inner


def test_what_is_nested_too_deep_is_counted(graph, a):
    nested(graph, 400).memset(a, 0, name="deep")
    (texts,) = [t for t in Picture(graph.to_svg()).texts if "level 63" in t]
    assert texts[-1] == "337 nodes inside, not shown"
    assert str(graph).endswith(", 337 nodes inside, not shown")


def titles(picture: str) -> dict[str, str]:
    """Return the titles of the boxes, by the first lines in them."""
    groups = ElementTree.fromstring(picture).iter(f"{SVG}g")
    return {
        group.find(f"{SVG}text")[0].text: group.find(f"{SVG}title").text
        for group in groups
        if group.find(f"{SVG}title") is not None
    }


def test_a_title_says_the_line_that_made_a_node(graph, a):
    node = graph.memset(a, 0, name="outside").if_then(graph.condition(), name="maybe")
    node.body.memset(a, 1, name="inside")
    with cu.debug.record_origins(False):
        graph.memset(a, 0, name="unknown")
    assert titles(graph.to_svg()) == {
        "outside": f"made at {graph['outside'].made_at}",
        "maybe": f"made at {node.made_at}",
        "inside": f"made at {node.body['inside'].made_at}",
    }


def test_a_folded_box_has_the_lines_of_its_nodes(graph, a):
    for _ in range(10):
        graph.memset(a, 1)
    (line,) = {node.made_at for node in graph.nodes}
    assert list(titles(graph.to_svg(fold=1)).values()) == [f"made at {line}"]
    for i in range(12):
        exec(compile("graph.memset(a, 1)", f"{i}.py", "exec"), {"graph": graph, "a": a})
    (title,) = titles(graph.to_svg(fold=1)).values()
    assert title.split("\n") == [
        *(f"made at {line}", *(f"{i}.py:1" for i in range(7)), "and 5 lines more"),
    ]


@pytest.mark.parametrize("name", ['<&>"\\.py', "a\0b\n\x01.py", "\udcff.py"])
def test_any_line_can_be_in_a_title(graph, a, name):
    exec(compile("graph.memset(a, 1)", "plain.py", "exec"), {"graph": graph, "a": a})
    code = compile("graph.memset(a, 1)", "plain.py", "exec").replace(co_filename=name)
    exec(code, {"graph": graph, "a": a})
    shown = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in name)
    expected = [] if "\udcff" in name else [f"made at {shown}:1"]
    assert list(titles(graph.to_svg()).values()) == ["made at plain.py:1", *expected]
    str(graph)


def test_what_is_inside_of_a_box_has_its_own_colors(graph, a):
    node = graph.if_then(graph.condition(), name="maybe")
    node.body.memset(a, 1, name="one").memset(a, 2, name="two")
    graph.join(node, name="last")
    root = ElementTree.fromstring(graph.to_svg())
    ends = {e.get("marker-end"): e for e in root.iter(f"{SVG}path") if e.get("marker-end")}
    assert set(ends) == {"url(#cudago-end)", "url(#cudago-end-inside)"}
    assert {m.get("id") for m in root.iter(f"{SVG}marker")} == {name[5:-1] for name in ends}
    assert {text.get("fill") for text in root.iter(f"{SVG}text")} == {"#111"}
    (group,) = [g for g in root.iter(f"{SVG}g") if g.get("color")]
    assert ends["url(#cudago-end-inside)"] in list(group.iter())
    assert not any(rect.get("fill-opacity") for rect in root.iter(f"{SVG}rect"))


def test_a_card_is_the_same_wherever_the_program_is(graph, a):
    source = "graph.memset(a, 1, name='fill')"
    cards = []
    for file in ("one.py", "/another/two.py"):
        exec(compile(source, file, "exec"), {"graph": graph, "a": a})
        cards.append(graph._repr_html_())
        assert file in graph._repr_svg_()
        graph.remove(graph["fill"])
    assert cards[0] == cards[1]


def test_an_empty_graph(graph):
    assert Picture(graph.to_svg()).boxes == {}


def test_a_notebook_shows_it(graph, a):
    graph.memset(a, 0)
    assert graph._repr_svg_() == graph.to_svg()
    graph.close()
    assert graph._repr_svg_() is None
    with pytest.raises(cu.ClosedError):
        graph.to_svg()


def test_a_long_chain_of_several_kinds_stays_a_chain(graph, a):
    node = graph
    for _ in range(700):
        node = node.memset(a, 0)
        node = node.callback(print)
        node = graph.join(node)
    picture = Picture(graph.to_svg())
    assert 50 < len(picture.boxes) <= 100
    assert len(picture.lines) == len(picture.boxes) - 1
