"""What doctor and /health say of the bars, wherever they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quantdeck.servers import load
from quantdeck.settings import InfluxDB
from tests.support import influxdb
from tests.support.over_http import served
from tests.support.program import quantdeck

DEAD = {"INFLUXDB_URL": "http://127.0.0.1:1", "INFLUXDB_BUCKET": "b", "QUANTDECK_INFLUXDB__PASSWORD": "hunter2"}


def doctor(home: Path, environment: dict[str, str]) -> tuple[int, dict[str, Any]]:
    done = quantdeck("doctor", "--json", home=home, environment=environment)
    assert "hunter2" not in done.stdout + done.stderr
    sources = {source.pop("source"): source for source in json.loads(done.stdout)["sources"]}
    return done.returncode, sources["candles"]


def test_an_empty_home_has_none_and_says_how_to_get_some(tmp_path):
    status, told = doctor(tmp_path, {})
    assert (status, told["kind"], told["status"]) == (0, "parquet", "disabled")
    assert "QUANTDECK_CANDLES" in told["advice"]
    assert "quantdeck import candles" in told["advice"]


def test_a_home_with_bars_is_healthy(tmp_path):
    quantdeck("collect", "demo", "--days", "1", "--symbols", "BTC/USD", home=tmp_path)
    assert doctor(tmp_path, {}) == (0, {"kind": "sqlite", "status": "healthy", "advice": ""})


def test_a_demo_world_is_healthy_and_says_what_it_is(tmp_path):
    (tmp_path / "demo.json").write_text('{"seed": 7, "days": 1}')
    _, told = doctor(tmp_path, {})
    assert told == {"kind": "demo", "status": "healthy", "advice": ""}


def test_the_demo_market_in_a_home_that_is_no_demo_world_is_disabled(tmp_path):
    status, told = doctor(tmp_path, {"QUANTDECK_CANDLES": "demo"})
    assert (status, told["kind"], told["status"]) == (0, "demo", "disabled")
    assert "quantdeck demo" in told["advice"]


@pytest.mark.parametrize(
    "said, setting",
    [
        (DEAD, "QUANTDECK_INFLUXDB__URL"),
        ({"QUANTDECK_CANDLES": "influxdb://me:hunter2@127.0.0.1:1/b"}, "QUANTDECK_CANDLES"),
    ],
    ids=["by its URL", "by the URL of candles"],
)
def test_a_dead_influxdb_is_unhealthy_and_the_setting_is_named(tmp_path, said, setting):
    status, told = doctor(tmp_path, said)
    assert (status, told["kind"], told["status"]) == (1, "influxdb", "unhealthy")
    assert f"{setting} says where it is" in told["advice"]


@pytest.mark.services
def test_a_live_influxdb_is_healthy_and_one_without_the_bucket_is_not(tmp_path):
    server = influxdb.available()
    there = {"INFLUXDB_URL": server.url, "INFLUXDB_BUCKET": server.new_bucket()}
    assert doctor(tmp_path, there) == (0, {"kind": "influxdb", "status": "healthy", "advice": ""})
    status, told = doctor(tmp_path, {**there, "INFLUXDB_BUCKET": "nowhere"})
    assert (status, told["status"]) == (1, "unhealthy")
    assert "no database of the configured name" in told["advice"]


@pytest.mark.services
async def test_over_http_health_says_the_same_and_recovers(tmp_path):
    server = influxdb.InfluxServer(influxdb.program())
    server.start()
    try:
        where = InfluxDB(url=server.url, bucket=server.new_bucket())
        async with served(tmp_path, make=lambda _: (load("market-data-mcp"),), influxdb=where) as web:
            told = (await web.http.get("/health")).json()
            assert told == {"status": "ok", "dependencies": {"candles": {"status": "healthy", "kind": "influxdb"}}}
        with server.stopped():
            async with served(tmp_path, make=lambda _: (load("market-data-mcp"),), influxdb=where) as web:
                answer = await web.http.get("/health")
                assert (answer.status_code, answer.json()["status"]) == (503, "degraded")
    finally:
        server.remove()
