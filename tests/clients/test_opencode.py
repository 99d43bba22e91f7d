"""OpenCode itself, without a model: does it connect?"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.node import environment, opencode
from tests.support.serving import QUANTDECK

pytestmark = [pytest.mark.services, pytest.mark.timeout(400)]  # the first run installs the clients

QUIET = {
    "NO_COLOR": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
}


def mcp_list(place: Path, servers: dict[str, Any]) -> dict[str, str]:
    """What `opencode mcp list` says of each server. It exits with 0 whatever it says."""
    (place / "opencode.json").write_text(json.dumps({"autoupdate": False, "share": "disabled", "mcp": servers}))
    said = subprocess.run(
        [opencode(), "mcp", "list"],
        env=environment(place, **QUIET),
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    plain = re.sub(r"\x1b\[\d*m", "", said.stdout + said.stderr)
    found = re.findall(r"[✓✗○⚠] (\S+) (connected|failed|disabled|needs \w+)", plain)
    assert len(found) == len(servers), plain
    return dict(found)


def test_opencode_connects_over_stdio_and_over_http(tmp_path: Path, demo: dict[str, str], url: str):
    settings = {name: value for name, value in demo.items() if name.startswith("QUANTDECK_")}
    command = [QUANTDECK, "serve", "strategy-mcp"]
    servers = {
        "stdio": {"type": "local", "command": command, "environment": settings},
        "http": {"type": "remote", "url": url, "oauth": False},
        "alone": {"type": "remote", "url": f"{url}/strategy-mcp", "oauth": False},
        "absent": {"type": "local", "command": [QUANTDECK, "serve", "no-such-server"], "environment": settings},
    }
    assert mcp_list(tmp_path, servers) == {
        "stdio": "connected",
        "http": "connected",
        "alone": "connected",
        "absent": "failed",
    }
