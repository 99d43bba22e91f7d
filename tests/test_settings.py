"""Settings: which name wins, and what is not said."""

from __future__ import annotations

from pathlib import Path

import pytest

from quantdeck.settings import MisconfiguredError, Settings


def test_our_name_wins_over_theirs_and_theirs_over_the_default():
    theirs, ours = "postgresql://theirs/db", "postgresql://ours/db"
    assert Settings.read({}).database.get_secret_value() == ""
    assert Settings.read({"DATABASE_URL": theirs}).database.get_secret_value() == theirs
    both = Settings.read({"DATABASE_URL": theirs, "QUANTDECK_DATABASE": ours})
    assert both.database.get_secret_value() == ours


def test_empty_means_unset():
    said = {"QUANTDECK_DATABASE": "", "DATABASE_URL": "sqlite:///x.db", "QUANTDECK_CLOCK": ""}
    settings = Settings.read(said)
    assert (settings.database.get_secret_value(), settings.clock) == ("sqlite:///x.db", "wall")


def test_nested_settings_have_their_own_names():
    settings = Settings.read(
        {
            "QUANTDECK_POSTGRESQL__CONNECT_S": "1.5",
            "QUANTDECK_CACHE__TTL_S": '{"get_top_strategies": 0}',
            "QUANTDECK_HTTP__HOSTS": "a.example, b.example",
        }
    )
    assert settings.postgresql.connect_s == 1.5
    assert settings.postgresql.max_connections == 10
    assert settings.cache.ttl_s == {"get_top_strategies": 0}
    assert settings.http.hosts == ["a.example", "b.example"]


def test_a_risk_limit_is_a_number_or_none_and_empty_leaves_the_default():
    said = {
        "QUANTDECK_RISK__MAX_POSITION_PCT": "none",
        "QUANTDECK_RISK__MAX_OPEN_POSITIONS": "None",
        "QUANTDECK_RISK__MAX_DAILY_LOSS": "0",
        "QUANTDECK_RISK__MAX_EXPOSURE_PCT": "",
        "QUANTDECK_RISK__ALLOW_SHORT": "true",
    }
    risk = Settings.read(said).risk
    assert (risk.max_position_pct, risk.max_open_positions, risk.max_daily_loss) == (None, None, 0)
    assert (risk.max_exposure_pct, risk.allow_short) == (0.5, True)
    risk = Settings.read({}).risk
    assert (risk.max_position_pct, risk.max_exposure_pct, risk.max_open_positions) == (0.1, 0.5, 20)
    assert (risk.max_daily_loss_pct, risk.max_position_size, risk.allow_short) == (0.05, None, False)


def test_the_pools_are_the_specs():
    pool = Settings.read({}).postgresql
    assert (pool.min_connections, pool.max_connections, pool.idle_s, pool.connect_s) == (2, 10, 300, 5)


def test_a_secret_is_in_no_representation():
    settings = Settings.read({"DATABASE_URL": "postgresql://joe:hunter2@db/x", "QUANTDECK_TOKEN": "hunter3"})
    assert "hunter" not in repr(settings) + str(settings.model_dump())


@pytest.mark.parametrize(
    "name, value, said",
    [
        ("QUANTDECK_HTTP__PORT", "70000", "QUANTDECK_HTTP__PORT: must be less"),
        ("MCP_SERVER_PORT", "many", "MCP_SERVER_PORT: must be a valid integer"),
        ("QUANTDECK_PORT", "-1", "QUANTDECK_PORT: must be greater"),
        ("QUANTDECK_DEADLINE_S", "{", "QUANTDECK_DEADLINE_S is not JSON"),
        ("QUANTDECK_DEADLINE_S", "5", "QUANTDECK_DEADLINE_S must be a JSON object"),
        ("QUANTDECK_DEADLINE_S", '{"get_top_strategies": -1}', "QUANTDECK_DEADLINE_S: get_top_strategies must be"),
        ("QUANTDECK_CACHE__TTL_S", '{"get_top_strategies": -1}', "QUANTDECK_CACHE__TTL_S: get_top_strategies must be"),
        ("QUANTDECK_PER_MINUTE", '{"sim_quote": -1}', "QUANTDECK_PER_MINUTE: sim_quote must be"),
        ("QUANTDECK_POSTGRESQL", '{"max_conections": 1}', "QUANTDECK_POSTGRESQL: max_conections is no setting"),
        ("QUANTDECK_POSTGRESQL__MAX_CONNECTIONS", "1", "min_connections 2 is above max_connections 1"),
        ("QUANTDECK_POSTGRESQL__CONNECT_S", "inf", "QUANTDECK_POSTGRESQL__CONNECT_S: must be a finite number"),
        ("QUANTDECK_RISK__MAX_POSITION_PCT", "-0.1", "QUANTDECK_RISK__MAX_POSITION_PCT: must be greater"),
        ("QUANTDECK_RISK__MAX_POSITION_PCT", "inf", "QUANTDECK_RISK__MAX_POSITION_PCT: must be a finite number"),
        ("QUANTDECK_RISK__MAX_OPEN_POSITIONS", "1.5", "QUANTDECK_RISK__MAX_OPEN_POSITIONS: must be a valid integer"),
        ("QUANTDECK_ACCOUNT", "x" * 200, "QUANTDECK_ACCOUNT"),
        ("QUANTDECK_HOME", "~nosuch/x", "QUANTDECK_HOME: nobody's home"),
        ("QUANTDECK_LOG_FILE", "~nosuch/x", "QUANTDECK_LOG_FILE: nobody's home"),
        ("QUANTDECK_CLOCK", "yesterday", "QUANTDECK_CLOCK: neither `wall` nor an instant"),
        ("QUANTDECK_CLOCK", "2026-01-01T00:00:00", "offset from UTC"),
        ("QUANTDECK_CLOCK", "0001-01-01T00:00:00+05:00", "between 1970 and 2200"),
        ("QUANTDECK_CLOCK", "0001-01-01T00:00:00Z", "between 1970 and 2200"),
        ("QUANTDECK_CLOCK", "1969-12-31T23:59:59.999999Z", "between 1970 and 2200"),
        ("QUANTDECK_CLOCK", "2200-01-01T00:00:00Z", "between 1970 and 2200"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence_with_its_name(name, value, said):
    with pytest.raises(MisconfiguredError) as refused:
        Settings.read({name: value})
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("clock", ["wall", "1970-01-01T00:00:00Z", "2199-12-31T23:59:59Z", "2026-01-15T10:30+05:45"])
def test_a_clock_is_told_as_it_was_set(clock):
    assert Settings.read({"QUANTDECK_CLOCK": clock}).clock == clock


def test_a_home_without_a_name_for_it_must_be_set(monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # as in a container whose user nobody knows
    with pytest.raises(MisconfiguredError, match="QUANTDECK_HOME"):
        Settings.read({})
    assert Settings.read({"QUANTDECK_HOME": "/srv"}).home_path == Path("/srv")


def test_a_group_can_be_given_at_once_and_its_own_names_count_first():
    whole = {"QUANTDECK_POSTGRESQL": '{"connect_s": 1.5, "max_connections": 4}'}
    both = {**whole, "QUANTDECK_POSTGRESQL__MAX_CONNECTIONS": "5"}
    assert (Settings.read(whole).postgresql.connect_s, Settings.read(whole).postgresql.max_connections) == (1.5, 4)
    assert Settings.read(both).postgresql.max_connections == 5


@pytest.mark.parametrize(
    "misspelt, meant",
    [
        ("QUANTDECK_DATABSE", "QUANTDECK_DATABASE"),
        ("QUANTDECK_HTTP_PORT", "QUANTDECK_HTTP__PORT"),
        ("QUANTDECK_MAX_CONNECTIONS", "QUANTDECK_POSTGRESQL__MAX_CONNECTIONS"),
    ],
)
def test_a_name_that_is_nearly_a_settings_is_refused_and_the_setting_named(misspelt, meant):
    with pytest.raises(MisconfiguredError, match=f"did you mean {meant}"):
        Settings.read({misspelt: "x"})


def test_names_that_are_none_of_ours_are_left_alone():
    others = ("QUANTDECK_REQUIRE_SERVICES", "QUANTDECK_SERVICE_HOST", "QUANTDECK_PORT_8003_TCP_ADDR", "DATABASE_UR")
    assert Settings.read(dict.fromkeys(others, "x")) == Settings.read({})


def test_a_secret_may_begin_like_an_object():
    assert Settings.read({"QUANTDECK_TOKEN": "{hunter2"}).token.get_secret_value() == "{hunter2"


def test_the_pyth_specs_word_for_a_warning_is_understood():
    assert Settings.read({"QUANTDECK_LOG_LEVEL": "WARN"}).log_level == "warning"
