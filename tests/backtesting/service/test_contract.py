"""The three methods, asked as tradestream's programs ask, through a service of its own process."""

from __future__ import annotations

import math
from importlib.resources import files

import numpy as np
import orjson
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from quantdeck.backtesting import service
from quantdeck.backtesting.engine import Terms, run, score
from quantdeck.backtesting.engine.walk_forward import Windows, walk_forward
from quantdeck.backtesting.messages.candles import MOST, as_candles
from quantdeck.backtesting.messages.results import of_ours
from quantdeck.backtesting.messages.strategies import named
from quantdeck.backtesting.protocol import backtesting_pb2 as protocol
from quantdeck.backtesting.protocol import marketdata_pb2, strategies_pb2
from quantdeck.backtesting.service.asked import MOST_STRATEGIES, names
from quantdeck.domain.calendars import NYSE
from quantdeck.domain.spec_reader import read
from tests.backtesting.made import of_closes
from tests.backtesting.service.asking import client, refused, request
from tests.support.backtester import BEGINS, begun, minutes
from tests.support.bars import every, walk
from tests.support.program import quantdeck

BUILTIN = {one["name"]: one for one in orjson.loads(files(service).joinpath("strategies.json").read_bytes())}
CROSSOVER = {"shortEmaPeriod": 5, "longEmaPeriod": 20}


def of_engine(name, bars, terms=None, **numbers):
    spec = read(**BUILTIN[name]).spec
    assert spec is not None
    return run(spec.instantiate(numbers), bars, terms or Terms()).metrics


@pytest.mark.parametrize("name", BUILTIN)
async def test_each_of_the_nine_strategies_is_known_by_name(asking, name):
    bars = minutes(2000)
    told = await asking.ask(request(bars, name))
    assert of_ours(told) == of_engine(name, bars)


async def test_the_numbers_come_in_the_message_of_the_strategy(asking):
    bars = minutes(2000)
    told = await asking.ask(request(bars, "DOUBLE_EMA_CROSSOVER", **CROSSOVER))
    wanted = of_engine("DOUBLE_EMA_CROSSOVER", bars, **CROSSOVER)
    assert of_ours(told) == wanted != of_engine("DOUBLE_EMA_CROSSOVER", bars)
    assert told.cumulative_return == wanted.total_return
    assert told.number_of_trades == wanted.trades > 20
    assert told.average_trade_duration == pytest.approx(wanted.average_trade_duration_s / 60)
    assert told.strategy_score == score(wanted)
    assert told.timeframe == "1m"


async def test_the_generic_message_does_as_well(asking):
    bars = minutes(2000)
    generic = strategies_pb2.ConfigurableStrategyParameters(intValues=CROSSOVER)
    strategy = strategies_pb2.Strategy(strategy_name="DOUBLE_EMA_CROSSOVER")
    strategy.parameters.Pack(generic)
    told = await asking.ask(protocol.BacktestRequest(candles=as_candles(bars, "BTC/USD"), strategy=strategy))
    assert of_ours(told) == of_engine("DOUBLE_EMA_CROSSOVER", bars, **CROSSOVER)


async def test_what_cannot_be_computed_is_left_out(asking):
    told = await asking.ask(request(minutes(5)))
    assert not told.HasField("win_rate")
    assert not told.HasField("sharpe_ratio")
    assert told.HasField("cumulative_return")


async def test_a_factor_without_a_loss_is_infinite(asking):
    once = np.concatenate((np.linspace(120, 100, 60), np.linspace(100, 200, 300), np.linspace(200, 150, 60)))
    bars = of_closes(list(once))
    told = await asking.ask(request(bars, "DOUBLE_EMA_CROSSOVER", **CROSSOVER))
    wanted = of_engine("DOUBLE_EMA_CROSSOVER", bars, **CROSSOVER)
    assert (wanted.trades, wanted.win_rate, wanted.profit_factor) == (1, 1.0, None)
    assert told.profit_factor == math.inf
    assert of_ours(told) == wanted


async def test_years_are_those_of_what_is_traded(asking):
    bars = walk(every(3600, BEGINS, 900))
    asked = request(bars, "DOUBLE_EMA_CROSSOVER", **CROSSOVER)
    for candle in asked.candles:
        candle.asset_class = marketdata_pb2.STOCKS
    told = of_ours(await asking.ask(asked))
    assert told == of_engine("DOUBLE_EMA_CROSSOVER", bars, Terms(NYSE), **CROSSOVER)


async def test_a_batch_is_answered_in_its_order(asking):
    bars = minutes(1500)
    each = [{"shortEmaPeriod": n, "longEmaPeriod": 4 * n} for n in range(3, 13)]
    asked = protocol.BatchBacktestRequest(
        candles=as_candles(bars, "BTC/USD"),
        strategy_name="DOUBLE_EMA_CROSSOVER",
        strategies=[strategies_pb2.Strategy(parameters=named("DOUBLE_EMA_CROSSOVER", one).parameters) for one in each],
    )
    told = await asking.ask(asked, "RunBatchBacktest")
    assert [of_ours(one) for one in told.results] == [of_engine("DOUBLE_EMA_CROSSOVER", bars, **one) for one in each]


def walk_request(bars, **config):
    strategy = named("DOUBLE_EMA_CROSSOVER", CROSSOVER)
    windows = protocol.WalkForwardConfig(**config)
    return protocol.WalkForwardRequest(candles=as_candles(bars, "BTC/USD"), strategy=strategy, config=windows)


async def test_a_walk_forward_validation_is_the_engines(asking):
    bars = minutes(1000)
    config = {"train_window_bars": 300, "test_window_bars": 150, "step_bars": 100, "min_windows": 3}
    told = await asking.ask(walk_request(bars, **config), "RunWalkForwardValidation")
    spec = read(**BUILTIN["DOUBLE_EMA_CROSSOVER"]).spec
    assert spec is not None
    wanted = walk_forward(spec.instantiate(CROSSOVER), bars, Terms(), Windows(300, 150, 100, 3))
    assert protocol.ValidationStatus.Name(told.status) == wanted.status
    assert (told.rejection_reason, told.windows_count) == (wanted.reason, len(wanted.windows))
    assert told.oos_sharpe_std_dev == wanted.oos_sharpe_std_dev
    assert told.return_degradation == wanted.return_degradation
    for one, other in zip(told.window_results, wanted.windows, strict=True):
        assert (one.train_start_bar, one.train_end_bar) == (other.split.begin, other.split.turn)
        assert (one.test_start_bar, one.test_end_bar) == (other.split.turn, other.split.end)
        assert of_ours(one.in_sample_result) == other.before.metrics
        assert of_ours(one.out_of_sample_result) == other.after.metrics


async def test_windows_are_tradestreams_where_none_are_said(asking):
    told = await asking.ask(walk_request(minutes(1000)), "RunWalkForwardValidation")
    assert told.status == protocol.INSUFFICIENT_DATA
    assert told.rejection_reason == "1000 bars make 0 windows; 4 of them take 15120 bars"
    assert not told.HasField("in_sample_sharpe")


def changed(field, place, value):
    asked = request(minutes(50))
    setattr(asked.candles[place], field, value)
    return asked


def untimed():
    asked = request(minutes(50))
    for candle in asked.candles:
        candle.ClearField("timestamp")
    return asked


def with_parameters(kind, data=b""):
    asked = request(minutes(50))
    asked.strategy.parameters.type_url = f"type.googleapis.com/{kind}"
    asked.strategy.parameters.value = data
    return asked


def jumbled():
    asked = request(minutes(50))
    asked.candles[20].timestamp.seconds = asked.candles[19].timestamp.seconds
    return asked


OTHERS = strategies_pb2.EmaMacdParameters(signalPeriod=3).SerializeToString()

REFUSALS = {
    "nothing": (protocol.BacktestRequest(), ["strategy_name is required", "there are no candles"]),
    "no candles": (request(minutes(0)), ["there are no candles"]),
    "no name": (protocol.BacktestRequest(candles=as_candles(minutes(9), "BTC/USD")), ["strategy_name is required"]),
    "an unknown name": (request(minutes(50), "RENKO_CHART"), ["'RENKO_CHART' is not found", "are ADX_STOCHASTIC"]),
    "not a number": (changed("close", 7, math.nan), ["candle 8 has something that is not a finite number"]),
    "infinite": (changed("volume", 0, math.inf), ["candle 1 has something that is not a finite number"]),
    "no price": (changed("low", 3, 0.0), ["candle 4 has a price that is not above zero"]),
    "huge": (changed("high", 3, 1e301), ["candle 4 has a number beyond 1e+300"]),
    "two pairs": (changed("currency_pair", 3, "ETH/USD"), ["of more than one pair: BTC/USD, ETH/USD"]),
    "twice the same time": (jumbled(), ["candle 21 does not open after the one before it"]),
    "no times": (untimed(), ["candle 1 has no timestamp, and so do 49 more"]),
    "an unfit number": (request(minutes(50), movingAveragePeriod=0), ["period of 'sma' must be"]),
    "an unknown message": (with_parameters("strategies.NoSuchParameters"), ["which is not known", "Configurable"]),
    "no parameters at all": (with_parameters("strategies.SmaRsiParameters", b"\xff\xff"), ["its parameters are no"]),
    "another's parameters": (
        with_parameters("strategies.EmaMacdParameters", OTHERS),
        ["'signalPeriod' is no parameter of SMA_RSI"],
    ),
    "junk": (b"\x0a\xff\xff\xff\xff\xff", ["this is no backtesting.BacktestRequest"]),
}  # fmt: skip


@pytest.mark.parametrize("asked, said", REFUSALS.values(), ids=REFUSALS)
async def test_what_cannot_be_run_is_refused_with_a_sentence(asking, asked, said):
    status, sentence = await refused(asking.ask(asked))
    assert status == "INVALID_ARGUMENT"
    for part in said:
        assert part in sentence


async def test_everything_that_is_wrong_is_said_at_once(asking):
    asked = changed("close", 7, math.nan)
    asked.candles[30].open = -3.0
    asked.strategy.CopyFrom(named("SMA_RSI", {"movingAveragePeriod": 0, "rsiPeriod": 0}))
    _, sentence = await refused(asking.ask(asked))
    for part in ("period of 'sma'", "period of 'rsi'", "candle 8 has", "candle 31 has a price"):
        assert part in sentence


async def test_of_very_many_problems_as_many_are_said_as_there_is_room_for(asking):
    asked = protocol.BatchBacktestRequest(
        candles=as_candles(minutes(9), "BTC/USD"),
        strategies=[strategies_pb2.Strategy(strategy_name=f"UNKNOWN_{n}_é") for n in range(2000)],
    )
    status, sentence = await refused(asking.ask(asked, "RunBatchBacktest"))
    assert status == "INVALID_ARGUMENT"
    assert "strategy 1: " in sentence
    assert sentence.endswith(" more")


def test_nobodys_names_are_looked_up_where_a_batch_has_more_than_it_may():
    """Each is a question to the database, and a message of 64 MiB has room for millions."""

    def batch(many):
        return protocol.BatchBacktestRequest(
            strategy_name="ANY", strategies=[strategies_pb2.Strategy(strategy_name=f"S{n}") for n in range(many)]
        )

    assert names(batch(MOST_STRATEGIES)) == {"ANY", *(f"S{n}" for n in range(MOST_STRATEGIES))}
    assert names(batch(MOST_STRATEGIES + 1)) == set()


@pytest.mark.parametrize(
    "config, said",
    [
        ({"step_bars": -1}, "windows, their step"),
        ({"train_window_bars": 1, "test_window_bars": 1, "step_bars": 1}, "1,499 windows"),
    ],
)
async def test_windows_that_cannot_be_are_refused(asking, config, said):
    status, sentence = await refused(asking.ask(walk_request(minutes(1500), **config), "RunWalkForwardValidation"))
    assert status == "INVALID_ARGUMENT"
    assert said in sentence


async def test_more_candles_than_a_request_may_have_are_refused(asking):
    bare = protocol.BacktestRequest(strategy=named("SMA_RSI", {})).SerializeToString()
    status, sentence = await refused(asking.ask(bare + b"\x0a\x00" * (MOST + 1)))
    assert status == "INVALID_ARGUMENT"
    assert f"there are {MOST + 1:,} candles" in sentence


async def test_a_message_over_the_limit_is_refused_and_the_service_goes_on(asking):
    status, sentence = await refused(asking.ask(b"\x12\x00" * (33 * 2**20)))
    assert status == "RESOURCE_EXHAUSTED"
    assert "larger than max" in sentence.lower()
    assert (await asking.ask(request(minutes(50)))).HasField("cumulative_return")


async def test_what_the_contract_has_beyond_this_is_said_to_be_missing(asking):
    call = asking.channel.unary_unary("/backtesting.BacktestingService/RunMonteCarloSimulation")
    assert (await refused(call(b"")))[0] == "UNIMPLEMENTED"


def other_version(*, more: bool):
    """The messages of a program of another time: with fields that are not known yet, or with few of today's."""
    file = descriptor_pb2.FileDescriptorProto(name="other.proto", package="backtesting", syntax="proto3")
    kinds = {"string": 9, "double": 1, "int32": 5, "message": 11, "bytes": 12}
    messages = {
        "Timestamp": [("seconds", 1, "int32", 1)],
        "Candle": [("timestamp", 1, ".backtesting.Timestamp", 1)]
        + [(name, number, "double", 1) for number, name in enumerate(("open", "high", "low", "close"), 3)],
        "Strategy": [("strategy_name", 3, "string", 1)],
        "BacktestRequest": [("candles", 1, ".backtesting.Candle", 3), ("strategy", 2, ".backtesting.Strategy", 1)],
        "BacktestResult": [("cumulative_return", 2, "double", 1), ("number_of_trades", 10, "int32", 1)],
    }
    for name, fields in messages.items():
        made = file.message_type.add(name=name)
        for called, number, kind, label in fields + [("hint", 77, "bytes", 1)] * more:
            said = {"type": kinds[kind]} if kind in kinds else {"type": 11, "type_name": kind}
            made.field.add(name=called, number=number, label=label, **said)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"backtesting.{name}")) for name in messages
    }


@pytest.mark.parametrize("more", [False, True], ids=["an old client", "a newer client"])
async def test_clients_of_other_times_are_answered(asking, more):
    kinds, bars = other_version(more=more), minutes(600)
    hint = {"hint": b"new"} if more else {}
    candles = [
        kinds["Candle"](timestamp=kinds["Timestamp"](seconds=int(at)), open=o, high=h, low=low, close=c, **hint)
        for at, o, h, low, c in zip(bars.time, bars.open, bars.high, bars.low, bars.close, strict=True)
    ]
    asked = kinds["BacktestRequest"](candles=candles, strategy=kinds["Strategy"](strategy_name="DOUBLE_EMA_CROSSOVER"))
    if more:
        asked.hint = asked.strategy.hint = b"of a field that nobody here knows"
    call = asking.channel.unary_unary("/backtesting.BacktestingService/RunBacktest")
    told = kinds["BacktestResult"].FromString(await call(asked.SerializeToString()))
    wanted = of_engine("DOUBLE_EMA_CROSSOVER", bars)
    assert (told.cumulative_return, told.number_of_trades) == (wanted.total_return, wanted.trades)
    assert told.number_of_trades > 0


async def test_specs_of_the_services_home_are_known_by_their_names(tmp_path):
    assert quantdeck("demo", "--days", "1", "--quiet", home=tmp_path).returncode == 0
    with begun(tmp_path) as found:
        async with client(found.target) as asking:
            bars = minutes(800)
            told = await asking.ask(request(bars, "CCI_REVERSAL", period=30))
            assert told.number_of_trades > 0
            # A message of tradestream's is meant for its strategy, where the one of that name here takes others.
            theirs = await asking.ask(request(bars, "DOUBLE_EMA_CROSSOVER", **CROSSOVER))
            assert of_ours(theirs) == of_engine("DOUBLE_EMA_CROSSOVER", bars, **CROSSOVER)
            for name in ("A\0B", "A\nB", "X" * 100_000):
                status, sentence = await refused(asking.ask(request(bars, name)))
                assert (status, "is not found here" in sentence) == ("INVALID_ARGUMENT", True)
