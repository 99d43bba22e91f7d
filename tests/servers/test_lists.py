"""What is listed wrongly is refused with a sentence that names the file and the fix."""

from __future__ import annotations

from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pytest

from quantdeck import servers
from quantdeck.core.errors import DeclarationError

TOOL = '''
from quantdeck.dialects.tradestream import tradestream

@tradestream.tool(errors=())
async def {name}() -> dict[str, int]:
    """Answer"""
    return {{}}
'''
SERVER = """
from quantdeck.core.server import Server

SERVER = Server(name="{name}", purpose="Nothing")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a server's files, and says what its package is called."""
    monkeypatch.syspath_prepend(tmp_path)

    def written(package: str, **files: str) -> str:
        place = tmp_path / package
        place.mkdir()
        (place / "__init__.py").touch()
        for name, text in files.items():
            (place / f"{name}.py").write_text(text)
        invalidate_caches()
        return package

    return written


def test_a_listed_file_is_a_tool_of_the_same_name(folder):
    (tool,) = servers.tools(folder("right_mcp", look=TOOL.format(name="look")), "look")
    assert tool.name == "look"


def test_a_typo_in_the_list_names_the_file_that_is_missing(folder):
    package = folder("typing_mcp", look=TOOL.format(name="look"))
    with pytest.raises(DeclarationError, match=r"'lok'; add the file typing_mcp/lok\.py, or mend the name"):
        servers.tools(package, "lok")


@pytest.mark.parametrize(
    "text", [TOOL.format(name="glance"), "async def look() -> None: ...\n", ""], ids=["misnamed", "bare", "empty"]
)
def test_a_file_without_its_tool_says_how_it_must_be_called(folder, request, text):
    package = folder(f"{request.node.callspec.id}_mcp", look=text)
    with pytest.raises(DeclarationError, match=r"look\.py must hold the tool look: a function named as its file"):
        servers.tools(package, "look")


def test_what_a_tool_itself_cannot_import_is_told_as_it_is(folder):
    with pytest.raises(ModuleNotFoundError, match="no_such_driver"):
        servers.tools(folder("wanting_mcp", look="import no_such_driver\n"), "look")


def test_a_server_without_a_folder_names_the_folder():
    with pytest.raises(DeclarationError, match="names 'no-such', so there must be a folder quantdeck/servers/no_such"):
        servers.load("no-such")


@pytest.mark.parametrize("text", ["", SERVER.format(name="another-mcp")], ids=["nothing", "misnamed"])
def test_a_folder_without_its_server_says_what_it_must_hold(tmp_path, monkeypatch, request, text):
    name = f"{request.node.callspec.id}-mcp"
    place = tmp_path / name.replace("-", "_")
    place.mkdir()
    (place / "__init__.py").write_text(text)
    monkeypatch.setattr(servers, "__path__", [*servers.__path__, str(tmp_path)])
    with pytest.raises(DeclarationError, match=f"must hold SERVER, a Server whose name is '{name}'"):
        servers.load(name)


@pytest.mark.parametrize("name", servers.NAMES)
def test_every_server_that_is_named_is_there(name):
    assert servers.load(name).name == name
