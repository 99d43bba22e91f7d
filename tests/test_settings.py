"""Settings: which name wins, and what is not said."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

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


def test_the_pools_are_the_specs():
    pool = Settings.read({}).postgresql
    assert (pool.min_connections, pool.max_connections, pool.idle_s, pool.connect_s) == (2, 10, 300, 5)


def test_a_secret_is_in_no_representation():
    settings = Settings.read({"DATABASE_URL": "postgresql://joe:hunter2@db/x", "QUANTDECK_TOKEN": "hunter3"})
    assert "hunter" not in repr(settings) + str(settings.model_dump())


def test_what_cannot_be_is_refused():
    with pytest.raises(ValidationError):
        Settings.read({"QUANTDECK_HTTP__PORT": "70000"})
    with pytest.raises(MisconfiguredError, match="QUANTDECK_DEADLINE_S"):
        Settings.read({"QUANTDECK_DEADLINE_S": "{"})


def test_the_pyth_specs_word_for_a_warning_is_understood():
    assert Settings.read({"QUANTDECK_LOG_LEVEL": "WARN"}).log_level == "warning"
