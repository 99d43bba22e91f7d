"""The nine resources, through a client."""

from __future__ import annotations

import re

import orjson
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceTemplateReference

from quantdeck.app import open_app
from quantdeck.servers import load
from quantdeck.settings import Settings
from quantdeck.transports.mcp import mcp_server
from quantdeck.transports.watchers import Watchers
from tests.support.contracts import contract_of
from tests.support.pyth_stub import FEEDS, KEY, PythStub

SPEC = contract_of("pyth")
PAGES = {
    "pyth://docs/integration-guide": ("PYTH_PRO_ACCESS_TOKEN", "npm install @pythnetwork/pyth-lazer-sdk"),
    "pyth://docs/chains": ("0xACeA761c27A909d4D3895128EBe6370FDE2dF481", "leEcdsa", "solana"),
    "pyth://schema/streaming_payload": ("asyncapi", "feedUpdateTimestamp", "10^exponent", "461928307"),
    "pyth://schema/errors": ("401", "403", "404", "429", "min_channel", "Retry-After"),
}  # fmt: skip


async def read(ask, uri):
    (contents,) = (await ask.client.read_resource(uri)).contents
    return contents.text


async def test_all_nine_are_listed_with_the_specs_descriptions(pyth):
    ask = await pyth()
    listed = {str(one.uri): one.description for one in (await ask.client.list_resources()).resources}
    found = (await ask.client.list_resource_templates()).resource_templates
    assert listed | {one.uri_template: one.description for one in found} == SPEC["resources"]


@pytest.mark.parametrize("uri", PAGES)
async def test_a_page_says_what_it_is_for_with_every_service_down(pyth, uri):
    ask = await pyth(stub=PythStub(failing=[(500, b"")] * 9))
    text = await read(ask, uri)
    assert [words for words in PAGES[uri] if words not in text] == []
    assert ask.stub.asked == []
    named = set(re.findall(r"pyth://[\w/{}-]+\w", text))
    assert named <= SPEC["resources"].keys()


async def test_the_list_of_feeds_is_fetched_once_and_has_them_all(pyth):
    ask = await pyth()
    told = orjson.loads(await read(ask, "pyth://feeds"))
    assert (told["count"], len(told["feeds"])) == (len(FEEDS), len(FEEDS))
    assert set(next(t for t in SPEC["tools"] if t["name"] == "get_symbols")["item_fields"]) <= told["feeds"][0].keys()
    kinds = {kind: orjson.loads(await read(ask, f"pyth://feeds/{kind}"))["count"] for kind in told["asset_types"]}
    assert sum(kinds.values()) == len(FEEDS)
    assert ask.stub.asked == ["/v1/symbols"]
    await read(ask, "pyth://feeds")
    assert ask.events[-1]["cached"]


async def test_an_asset_type_that_there_is_none_of_is_not_found_and_the_others_are_named(pyth):
    ask = await pyth()
    with pytest.raises(MCPError, match=r"stonks.*There are: commodity, crypto"):
        await read(ask, "pyth://feeds/stonks")


@pytest.mark.parametrize("uri", ["pyth://feeds/", "pyth://feeds/%20", f"pyth://feeds/{'x' * 500}"])
async def test_no_asset_type_is_none_that_feeds_have(pyth, uri):
    ask = await pyth()
    with pytest.raises(MCPError, match="No feed has the asset type") as refused:
        await read(ask, uri)
    assert len(str(refused.value)) < 300


async def test_asset_types_are_completed(pyth):
    ask = await pyth()
    ref = ResourceTemplateReference(uri="pyth://feeds/{asset_type}")
    told = await ask.client.complete(ref, {"name": "asset_type", "value": "crypto"})
    assert told.completion.values == ["crypto", "crypto-index"]
    assert ask.stub.asked == ["/v1/symbols"]
    assert ask.events[-1]["mcp_method"] == "completion/complete"


async def test_what_the_services_say_of_themselves_is_passed_on(pyth):
    ask = await pyth()
    assert orjson.loads(await read(ask, "pyth://schema/openapi/rest"))["openapi"] == "3.1.0"
    assert orjson.loads(await read(ask, "pyth://schema/openapi/history"))["info"]["title"] == "/docs/v1/openapi.json"
    assert all(event["api_latency_ms"] > 0 for event in ask.events)
    config = orjson.loads(await read(ask, "pyth://tradingview/config"))
    assert config["supports_search"] is True
    assert ask.stub.asked[-1] == "/v1/fixed_rate@200ms/config"
    for uri in ("pyth://schema/openapi/rest", "pyth://tradingview/config"):
        await read(ask, uri)
    assert len(ask.stub.asked) == 3


@pytest.mark.parametrize(
    "uri",
    ["pyth://feeds", "pyth://feeds/crypto", "pyth://schema/openapi/rest", "pyth://schema/openapi/history",
     "pyth://tradingview/config"],
)  # fmt: skip
async def test_what_is_out_of_reach_is_unavailable_for_now_and_not_kept(pyth, uri):
    ask = await pyth(KEY, stub=PythStub(failing=[(500, KEY.encode())]), catalog_s=0)
    with pytest.raises(MCPError, match=r"Unavailable: .* Read this resource again in 30 seconds") as failed:
        await read(ask, uri)
    assert KEY not in str(failed.value)
    if "feeds" not in uri:  # whose outage is remembered for a moment
        assert await read(ask, uri)


async def test_what_a_demo_world_has_not_it_does_not_promise_for_later(tmp_path):
    servers, settings = (load("pyth-pro"),), Settings(home=tmp_path)
    settings.demo_mark.write_text('{"seed": 7}')
    async with (
        open_app(settings, servers) as app,
        Client(mcp_server(app, servers, Watchers()), mode="auto", raise_exceptions=True) as client,
    ):
        with pytest.raises(MCPError, match="The demo world has no rest service to describe") as refused:
            await client.read_resource("pyth://schema/openapi/rest")
    assert "again" not in str(refused.value)
