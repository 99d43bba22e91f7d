"""Write what is made from the contracts: docs/tools, docs/settings.md, tests/snapshots, and the code of .proto files.

docs/generate.py           write it
docs/generate.py --check   only say what would change; exit 1 if anything would
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from generator import protobuf, settings_page, snapshots, tool_pages

from quantdeck import servers

ROOT = Path(__file__).resolve().parents[1]
OWNED = ("docs/tools/*.md", "tests/snapshots/*/*.json", *protobuf.OWNED)
"""Everything in these places is made here, so what is not made any more goes."""


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    wanted = made()
    drifted = [path for path, text in wanted.items() if not path.is_file() or path.read_text() != text]
    gone = [path for pattern in OWNED for path in ROOT.glob(pattern) if path not in wanted]
    if check:
        for path in (*drifted, *gone):
            print(f"{path.relative_to(ROOT)} is not what the contracts say; run scripts/docs", file=sys.stderr)
        return int(bool(drifted or gone))
    for path in drifted:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path])
    for path in gone:
        path.unlink()
    print(f"{len(drifted)} written, {len(gone)} removed, {len(wanted) - len(drifted)} as they were")
    return 0


def made() -> dict[Path, str]:
    """Every file and what it should hold."""
    loaded = [servers.load(name) for name in servers.NAMES]
    files = {"docs/settings.md": settings_page.page(), "docs/tools/README.md": tool_pages.index(loaded)}
    files |= {f"docs/tools/{server.name}.md": tool_pages.page(server) for server in loaded}
    entries = asyncio.run(snapshots.snapshots())
    files |= {f"tests/snapshots/{name}.json": snapshots.text(entry) for name, entry in entries.items()}
    files |= protobuf.made(ROOT)
    return {ROOT / name: text for name, text in files.items()}


if __name__ == "__main__":
    sys.exit(main())
