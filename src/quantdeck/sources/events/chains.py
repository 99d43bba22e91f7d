"""Chains of events by their parents. A chain is a tree, told flat; depth 1 is the root alone."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from quantdeck.domain.event_chains import PLACED, missing
from quantdeck.domain.event_state import told as properties_of
from quantdeck.domain.event_types import EventType
from quantdeck.sources.events import Chain, Event, Slice
from quantdeck.sources.events.layout import Layout
from quantdeck.sources.events.pages import COLUMNS, events_by_id, told

__all__ = ["chain", "chains"]

_ONE = f"SELECT {COLUMNS} FROM events e WHERE e.run = ? AND e.event_id = ?"  # noqa: S608 - literals of this module
_CHILDREN = "SELECT id, event_id FROM events WHERE run = ? AND parent = ?"
_LINKS = "SELECT at, id, type, event_id, parent FROM events WHERE run = ? AND parent IS NOT NULL"
_OF_TYPE = "SELECT id, event_id FROM events WHERE run = ? AND type = ? ORDER BY at, id"
_PLACED = """
    SELECT id, event_id FROM events WHERE run = ? AND order_status = 'Placed' AND +type = {StateChange} ORDER BY at, id
"""
_INNER = """
    SELECT c.id FROM events c WHERE c.run = ? AND c.parent IS NOT NULL AND +c.type = ?
    AND EXISTS (SELECT 1 FROM events p WHERE p.run = c.run AND p.event_id = c.parent)
"""
# Who has a child and no parent; and who has a parent that is not there.
_ROOTS = """
    SELECT p.id, p.event_id, p.at FROM
        (SELECT DISTINCT parent AS of FROM events WHERE run = ?1 AND parent IS NOT NULL)
        CROSS JOIN events p ON p.run = ?1 AND p.event_id = of WHERE p.parent IS NULL
    UNION ALL
    SELECT c.id, c.event_id, c.at FROM events c WHERE c.run = ?1 AND c.parent IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM events p WHERE p.run = ?1 AND p.event_id = c.parent)
    ORDER BY 3, 1
"""

Link = tuple[int, int, Any, Any, Any]
"""An event as somebody's child: time, row, type, key, the parent's key. They sort by time and row."""

Root = tuple[int, Any]
"""Row and key."""


def chain(
    connection: sqlite3.Connection, layout: Layout, run: Any, root: str, pattern: Sequence[str], depth: int
) -> Chain | None:
    for key in layout.ids_stored(root):
        if (row := connection.execute(_ONE, (run, key)).fetchone()) is not None:
            break
    else:
        return None
    events = _events(connection, layout, run, (row[0], key), depth)
    own = told(layout, row)
    rest = [_words(event) for event in events if event.id != own.id]
    return Chain(own.event_id, events, missing(pattern, _words(own), rest))


def chains(
    connection: sqlite3.Connection,
    layout: Layout,
    run: Any,
    pattern: Sequence[str],
    depth: int,
    page: Slice,
    incomplete: bool,
) -> tuple[list[Chain], int]:
    found: list[tuple[Root, Sequence[str]]]
    if pattern:
        judged = _judged(connection, layout, run, pattern, depth)
        found = [(root, lacking) for root, lacking in judged if bool(lacking) is incomplete]
    else:
        found = [((row, key), ()) for row, key, _ in connection.execute(_ROOTS, (run,))]
    wanted = found[page.offset : page.offset + page.limit]
    return [_told(connection, layout, run, root, lacking, depth) for root, lacking in wanted], len(found)


def _told(
    connection: sqlite3.Connection, layout: Layout, run: Any, root: Root, lacking: Sequence[str], depth: int
) -> Chain:
    return Chain(layout.id_told(root[1]), _events(connection, layout, run, root, depth), list(lacking))


def _events(connection: sqlite3.Connection, layout: Layout, run: Any, root: Root, depth: int) -> list[Event]:
    """The root and its descendants, generation by generation. One that is met again, in a circle, is not followed."""
    seen, generation = {root[0]}, [root[1]]
    for _ in range(depth - 1):
        children = [row for parent in generation for row in connection.execute(_CHILDREN, (run, parent))]
        generation = []
        for event, key in children:
            if event not in seen:
                seen.add(event)
                generation.append(key)
        if not generation:
            break
    return events_by_id(connection, layout, seen)


def _words(event: Event) -> tuple[str, ...]:
    """The words of patterns that it answers to: its type, and `OrderPlaced` where it places an order."""
    placed = event.kind == "StateChange" and properties_of(event.properties).get("OrderStatus") == "Placed"
    return (event.kind, PLACED) if placed else (event.kind,)


def _judged(
    connection: sqlite3.Connection, layout: Layout, run: Any, pattern: Sequence[str], depth: int
) -> list[tuple[Root, tuple[str, ...]]]:
    """Every root of the pattern's first word in the order of time, with what its chain lacks."""
    placed = list(connection.execute(_PLACED.format(**layout.words), (run,))) if PLACED in pattern else []
    first: EventType = "StateChange" if pattern[0] == PLACED else pattern[0]  # type: ignore[assignment]
    kind = layout.types[first]
    roots = placed if pattern[0] == PLACED else connection.execute(_OF_TYPE, (run, kind))
    inner = {row for (row,) in connection.execute(_INNER, (run, kind))}
    forest = _Forest(connection.execute(_LINKS, (run,)), layout, {row for row, _ in placed}, pattern, depth)
    return [((row, key), forest.lacking(key)) for row, key in roots if row not in inner]


class _Forest:
    """Who is below whom in a run, and what their chains lack of a pattern whose first word is their root's."""

    def __init__(
        self, links: Iterable[Link], layout: Layout, placed: set[int], pattern: Sequence[str], depth: int
    ) -> None:
        # Most have one child. A list for each would cost more than all else, for the collector walks through lists.
        self._child: dict[Any, Link] = {}
        self._more: defaultdict[Any, list[Link]] = defaultdict(list)
        child = self._child
        for link in links:
            if child.setdefault(link[4], link) is not link:
                self._more[link[4]].append(link)
        self._words: dict[Any, tuple[str, ...]] = {stored: (word,) for word, stored in layout.types.items()}
        self._words[PLACED] = ("StateChange", PLACED)
        self._placed, self._pattern, self._depth = placed, pattern, depth
        self._known: dict[tuple[Any, ...], tuple[str, ...]] = {}

    def lacking(self, root: Any) -> tuple[str, ...]:
        """Chains of one shape lack the same, so each shape is looked at once."""
        below, placed = self._line(root), self._placed
        if below is None:
            below = self._tree(root)
        shape = tuple([PLACED if link[1] in placed else link[2] for link in below])
        known = self._known.get(shape)
        if known is None:
            rest = [self._words.get(kind, ()) for kind in shape]
            known = self._known[shape] = tuple(missing(self._pattern, self._pattern[:1], rest))
        return known

    def _line(self, root: Any) -> list[Link] | None:
        """The descendants in the order of time where each has one child, later than itself; else None."""
        child, more = self._child, self._more
        found: list[Link] = []
        for _ in range(self._depth - 1):
            if root in more:
                return None
            link = child.get(root)
            if link is None:
                break
            if found and link < found[-1]:
                return None
            found.append(link)
            root = link[3]
        return found

    def _tree(self, root: Any) -> list[Link]:
        """The descendants in the order of time. No circle can be met: it has no way in from a root."""
        found, generation = list[Link](), [root]
        for _ in range(self._depth - 1):
            links = [link for above in generation if above in self._child for link in self._children(above)]
            if not links:
                break
            found += links
            generation = [link[3] for link in links]
        found.sort()
        return found

    def _children(self, parent: Any) -> list[Link]:
        return [self._child[parent], *self._more.get(parent, ())]
