"""Each tool is listed as its snapshot says; scripts/docs writes the snapshots anew."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

from docs.generator.snapshots import snapshots, text

FOLDER = Path(__file__).parent / "snapshots"


async def test_every_tool_is_listed_as_its_snapshot_says():
    listed = await snapshots()
    kept = {
        str(path.relative_to(FOLDER).with_suffix("")): json.loads(path.read_text()) for path in FOLDER.glob("*/*.json")
    }
    assert kept.keys() == listed.keys(), "tools have come or gone; run scripts/docs and read what it changed"
    changed = [name for name in listed if listed[name] != kept[name]]
    assert not changed, "\n".join(
        ["run scripts/docs, if it is meant so", *(_diff(name, kept[name], listed[name]) for name in changed)]
    )


def _diff(name, kept, listed):
    before, after = text(kept).splitlines(), text(listed).splitlines()
    return "\n".join(difflib.unified_diff(before, after, f"{name} as kept", f"{name} as listed", lineterm=""))
