"""Every private touch of the SDK is named, and the installed SDK still has it."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import Any

import pytest

from quantdeck.transports.sdk_import import ERAS, HTTP_SIDE
from quantdeck.transports.sdk_seams import SEAMS

LOOK = """
import json, sys
from quantdeck.transports.sdk_import import lean
lean(http={http})
import quantdeck.transports.{module}
print(json.dumps(sorted(name for name in sys.modules if name.startswith(("mcp", "starlette", "uvicorn", "sse")))))
"""


def resolve(dotted: str) -> Any:
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            fields = getattr(found, "__dataclass_fields__", {})
            found = fields[part] if part in fields and not hasattr(found, part) else getattr(found, part)
        return found
    raise AssertionError(f"no module in {dotted}")


@pytest.mark.parametrize("dotted", SEAMS)
def test_the_installed_sdk_has_it(dotted):
    resolve(dotted)


def imported(*, http: bool, module: str) -> list[str]:
    code = LOOK.format(http=http, module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    names: list[str] = json.loads(done.stdout)
    return names


def test_a_stdio_process_has_nothing_of_the_sdks_http_side():
    names = imported(http=False, module="process")
    assert "mcp.server.lowlevel.server" in names
    unwanted = ("mcp.client.", "mcp.server.mcpserver", "mcp.server.auth.", "uvicorn", "sse_starlette", *HTTP_SIDE)
    assert [name for name in names if name.startswith(unwanted)] == []


def test_an_http_process_has_nothing_of_the_sdks_client():
    names = imported(http=True, module="http")
    assert "mcp.server.streamable_http_manager" in names
    assert [name for name in names if name.startswith(("mcp.client.", "mcp.server.mcpserver"))] == []


@pytest.mark.parametrize("http", [False, True])
def test_neither_eras_wire_models_are_loaded_before_a_client_has_spoken(http):
    names = imported(http=http, module="http" if http else "process")
    assert [name for name in names if name in ERAS] == []


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_wire_models_that_are_loaded_late_check_as_ever(version):
    code = f"""
from quantdeck.transports.sdk_import import lean
lean(http=False)
from mcp_types.methods import CLIENT_REQUESTS, CLIENT_RESULTS, validate_client_request, validate_client_result
from pydantic import TypeAdapter, ValidationError
import sys
assert {ERAS!r}[{int(version > "2026")}] not in sys.modules
for wrong in ({{"arguments": {{}}}}, {{"name": 7}}):
    try:
        validate_client_request("tools/call", "{version}", wrong)
    except ValidationError as error:
        print(error.error_count() > 0)
for table in (CLIENT_REQUESTS, CLIENT_RESULTS):
    for (method, spoken), model in table.items():
        if spoken == "{version}":
            TypeAdapter(model).json_schema()
print({ERAS!r}[{int(version > "2026")}] in sys.modules, {ERAS!r}[{int(version < "2026")}] in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["True", "True", "True", "False"], done.stderr
