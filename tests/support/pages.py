"""A page of docs/how-to as what it tells its reader to do.

A block is read by its language, and by the path that the text since the last block names last:

    diff             changes that file
    python and such  is that file, or is added to the end of one that is there
    no language      commands, a line each
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FOLDER", "Block", "blocks"]

FOLDER = Path(__file__).parents[2] / "docs" / "how-to"

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"`([\w.-]+/[\w./-]+\.\w+)`")


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str
    path: str

    @property
    def commands(self) -> list[str]:
        """Its lines, a continued one in one piece."""
        return self.text.replace("\\\n", "").splitlines()

    def changed(self, before: str) -> str:
        """The file as this block leaves it."""
        if self.language != "diff":
            return f"{before}\n{self.text}" if before else self.text
        old, new = (_side(self.text, sign) for sign in "-+")
        assert before.count(old) == 1, f"{self.path} has this {before.count(old)} times, not once:\n{old}"
        return before.replace(old, new)


def blocks(page: str) -> Iterator[Block]:
    """What a page says to do, in its order."""
    text, end = (FOLDER / f"{page}.md").read_text(), 0
    for found in _FENCED.finditer(text):
        named = _PATH.findall(text[end : found.start()])
        yield Block(found[1], found[2], named[-1] if named else "")
        end = found.end()


def _side(diff: str, sign: str) -> str:
    """What a diff takes away, or puts there, with what stays around it."""
    return "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[:1] in ("", " ", sign))
