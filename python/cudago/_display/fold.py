# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Folding of large graphs, so that a picture of thousands of nodes can be read."""

from __future__ import annotations

from collections import Counter

from .dot import Drawing, Drawn

_WIDEST = 20  # boxes side by side, of a graph that is folded
_BAND_BOXES = 6  # that a band of layers has at most, when nothing else is left to fold


def fold(graph: Drawing, most: int) -> Drawing:
    """Return the graph with at most some `most` boxes, and those of graphs inside.

    Folded first are nodes of one kind that wait for the same and are waited for by the same, and
    nodes of one kind in a row; if that is not enough, any nodes in a row, as many to a box as there
    have to be; then whole layers.
    """
    if graph.size <= most:
        return graph
    room = max(most // 4, _BAND_BOXES)
    for node in graph.nodes:
        node.inside = [(label, fold(inner, room)) for label, inner in node.inside]
    for mixed in (False, True):
        folded = 0
        while _is_large(graph, most) and folded != len(graph.nodes):
            folded = len(graph.nodes)
            graph = _joined(graph, _twins(graph))
            longest = max(2, -(-len(graph.nodes) // most)) if mixed else len(graph.nodes)
            graph = _joined(graph, _parts(_rows(graph, mixed), longest))
    return _bands(graph, most) if _is_large(graph, most) else graph


def _is_large(graph: Drawing, most: int) -> bool:
    return len(graph.nodes) > most or max(map(len, layers(graph)), default=0) > _WIDEST


def layers(graph: Drawing) -> list[list[Drawn]]:
    """Return the nodes in layers: each one layer below the lowest that it waits for."""
    after, waits = graph.after(), {node: len(them) for node, them in graph.before().items()}
    depth = dict.fromkeys(graph.nodes, 0)
    ready = [node for node in graph.nodes if not waits[node]]
    for node in ready:  # grows during the loop
        for later in after[node]:
            depth[later] = max(depth[later], depth[node] + 1)
            waits[later] -= 1
            ready += [later] * (not waits[later])
    found: list[list[Drawn]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in graph.nodes:
        found[depth[node]].append(node)
    return found


def _twins(graph: Drawing) -> list[list[Drawn]]:
    """Find nodes of one kind that wait for the same, and for which the same waits."""
    before, after = graph.before(), graph.after()
    alike: dict[object, list[Drawn]] = {}
    for node in graph.nodes:
        if not node.inside:
            key = (_mix(node), frozenset(before[node]), frozenset(after[node]))
            alike.setdefault(key, []).append(node)
    return [them for them in alike.values() if len(them) > 1]


def _mix(node: Drawn) -> frozenset[str]:
    return frozenset(node.kinds)


def _rows(graph: Drawing, mixed: bool) -> list[list[Drawn]]:
    """Find nodes of which each waits for the one before it alone; of one kind, or `mixed`."""
    before, after = graph.before(), graph.after()

    def follows(a: Drawn, b: Drawn) -> bool:
        alone = len(after[a]) == 1 == len(before[b])
        return alone and (mixed or _mix(a) == _mix(b)) and not a.inside and not b.inside

    rows: list[list[Drawn]] = []
    for node in graph.nodes:
        if len(before[node]) == 1 and follows(before[node][0], node):
            continue  # not the first of its row
        row = [node]
        while len(after[row[-1]]) == 1 and follows(row[-1], after[row[-1]][0]):
            row.append(after[row[-1]][0])
        rows += [row] * (len(row) > 1)
    return rows


def _parts(rows: list[list[Drawn]], longest: int) -> list[list[Drawn]]:
    """Cut rows, so that one row of everything does not become one box."""
    return [row[at : at + longest] for row in rows for at in range(0, len(row), longest)]


def _joined(graph: Drawing, groups: list[list[Drawn]]) -> Drawing:
    """Return the graph with each group as one box, where its first node was."""
    box = {node: node for node in graph.nodes}
    for group in groups:
        if len(group) == 1:
            continue
        one = _box(group)
        box.update(dict.fromkeys(group, one))
    nodes = list(dict.fromkeys(box.values()))
    edges: dict[tuple[Drawn, Drawn], set[str]] = {}
    for a, b in graph.edges:
        if box[a] is not box[b]:
            edges.setdefault((box[a], box[b]), set()).add(graph.data.get((a, b), ""))
    data = {
        ends: next(iter(them)) for ends, them in edges.items() if len(them) == 1 and them != {""}
    }
    return Drawing(nodes, list(edges), data)


def _box(group: list[Drawn]) -> Drawn:
    first, last = group[0], group[-1]
    kinds = sum((node.kinds for node in group), Counter[str]())
    ends = (first.lines[0].split(" … ")[0], last.lines[0].split(" … ")[-1])
    told = [f"{n:,} {kind}" for kind, n in kinds.most_common()]
    fill = first.fill if len(kinds) == 1 else "#eeeeee"
    times = [node.microseconds for node in group if node.microseconds is not None]
    took = [f"{sum(times):.2f} µs"] * bool(times)
    return Drawn(
        [" … ".join(ends), f"{kinds.total():,} nodes", *told, *took],
        kinds,
        fill,
        list(dict.fromkeys(origin for node in group for origin in node.origins)),
        sum(times) if times else None,
    )


def _bands(graph: Drawing, most: int) -> Drawing:
    """Fold layers that follow each other, until few enough boxes are left."""
    rows = layers(graph)
    tall = -(-len(rows) // max(1, most // _BAND_BOXES))  # layers of a band
    groups: list[list[Drawn]] = []
    for top in range(0, len(rows), tall):
        band = [node for row in rows[top : top + tall] for node in row]
        if tall == 1 and len(band) <= _BAND_BOXES:
            continue
        if tall > 1:
            groups.append(band)
            continue
        kinds: dict[frozenset[str], list[Drawn]] = {}
        for node in band:
            kinds.setdefault(_mix(node), []).append(node)
        groups += kinds.values() if len(kinds) <= _BAND_BOXES else [band]
    return _joined(graph, groups)
