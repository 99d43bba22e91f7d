"""What QUANTDECK_DATABASE may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from quantdeck.connections.urls import Address, address
from quantdeck.settings import MisconfiguredError


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2@h/d",
        "postgres://h",
        "POSTGRESQL://h:5432/d",
        "postgresql://",
        "postgresql:///d?host=%2Frun%2Fpostgresql&port=5433",
        "postgresql://u:p%5D%23%3F%2F%40@h/d",
        "postgresql://[::1]:5432,other:5433/d?sslmode=verify-full&application_name=x%20y",
    ],
)
def test_postgresql_is_named_by_its_scheme(url):
    assert address(url) == Address("postgresql")


@pytest.mark.parametrize(
    "url, path",
    [
        ("", None),
        ("sqlite:////srv/deck.db", "/srv/deck.db"),
        ("sqlite:////srv/my%20deck%23%3F%25.db", "/srv/my deck#?%.db"),
        ("SQLite:////srv/deck", "/srv/deck"),
    ],
)
def test_a_sqlite_file_is_named_by_its_absolute_path(url, path):
    assert address(url) == Address("sqlite", None if path is None else Path(path))


@pytest.mark.parametrize(
    "url, said",
    [
        ("hunter2", "begins with none of sqlite://"),
        ("hunter2://h/d", "begins with none of sqlite://"),
        ("postgresql:hunter2", "begins with none of sqlite://"),
        ("postgresql+asyncpg://u:hunter2@h/d", "begins with none of sqlite://"),
        ("postgresql://u:hunter2]@h/d", "percent-encoded"),
        ("postgresql://u:hunter2#@h/d", "percent-encoded"),
        ("postgresql://u:hunter2/@h/d", "port"),
        ("postgresql://u:hunter2@h:abc/d", "port"),
        ("postgresql://u:hunter2@h:0/d", "port"),
        ("postgresql://u:hunter2@h:65536/d", "port"),
        ("postgresql://u:hunter2@a,b:5432x/d", "port"),
        ("postgresql://u:hunter2@h/d?port=x", "port"),
        ("postgresql://u:hunter2@h/d?sslmode=bogus", "verify-full"),
        ("postgresql://u:hunter2@h/d?sslmode", "?name=value"),
        ("sqlite:///hunter2.db", "four slashes"),
        ("sqlite:///", "four slashes"),
        ("sqlite://", "four slashes"),
        ("sqlite://hunter2/x.db", "four slashes"),
        ("sqlite://:memory:", "four slashes"),
        ("sqlite:///:memory:", "four slashes"),
        ("sqlite:////hunter2.db?mode=ro", "no options"),
        ("sqlite:////hunter2#.db", "percent-encoded"),
        ("sqlite:////hunter2%00.db", "NUL"),
    ],
)
def test_what_names_nothing_is_refused_in_a_sentence_that_does_not_repeat_it(url, said):
    with pytest.raises(MisconfiguredError) as refused:
        address(url)
    sentence = str(refused.value)
    assert sentence.startswith("QUANTDECK_DATABASE ")
    assert said in sentence
    assert "hunter2" not in sentence
