"""Which file or server holds a group of tables, and when it may be opened."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from quantdeck.connections.databases import Databases
from quantdeck.core.errors import NotConfigured, SourceError, Unreachable
from quantdeck.settings import MisconfiguredError, Settings

Opening = Callable[..., Databases]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opening]:
    made: list[Databases] = []

    def open_(**said: Any) -> Databases:
        made.append(Databases(Settings(home=tmp_path / "home", **said)))
        return made[-1]

    yield open_
    await asyncio.gather(*(databases.close() for databases in made))


async def failure(databases: Databases, group: str = "desk") -> SourceError:
    with pytest.raises(SourceError) as failed:
        await databases.of(group).ping()
    with pytest.raises(type(failed.value), match="connection"):
        databases.require(group)
    return failed.value


async def synchronous(databases: Databases, group: str) -> int:
    (row,) = await databases.of(group).rows("PRAGMA synchronous")
    return int(row["synchronous"])


async def test_a_group_of_the_home_is_a_file_of_its_own(opened, tmp_path):
    databases = opened()
    await databases.migrate()
    assert sorted(file.name for file in (tmp_path / "home").iterdir()) == ["decisions.db", "desk.db", "state.db"]
    assert databases.of("desk") is not databases.of("state")


async def test_a_url_is_one_file_for_everything(opened, tmp_path):
    databases = opened(database=f"sqlite:///{tmp_path}/all%20of%20it.db")
    assert "desk/0001_strategies" in await databases.migrate()
    assert databases.of("desk") is databases.of("state")
    await databases.of("desk").ping()
    assert (tmp_path / "all of it.db").exists()
    assert not (tmp_path / "home").exists()


async def test_a_power_cut_takes_nothing_from_a_durable_group_nor_from_a_file_that_holds_one(opened, tmp_path):
    home, one = opened(), opened(database=f"sqlite:///{tmp_path}/one.db")
    await home.migrate()
    await one.migrate()
    normal, full = 1, 2
    assert [await synchronous(home, group) for group in ("decisions", "desk", "state")] == [full, normal, normal]
    assert await synchronous(one, "desk") == full


async def test_a_home_without_the_file_says_what_to_set_and_makes_none(opened, tmp_path):
    failed = await failure(opened())
    assert isinstance(failed, NotConfigured)
    assert "QUANTDECK_DATABASE" in failed.message
    assert not (tmp_path / "home").exists()


async def test_the_state_of_a_home_is_made_when_it_is_first_used(opened, tmp_path):
    await opened().of("state").ping()
    assert (tmp_path / "home" / "state.db").exists()


@pytest.mark.parametrize("group", ["desk", "state"])
async def test_a_url_whose_file_is_missing_is_out_of_reach_and_names_the_command(opened, tmp_path, group):
    failed = await failure(opened(database=f"sqlite:///{tmp_path}/not/there.db"), group)
    assert isinstance(failed, Unreachable)
    assert "quantdeck migrate" in failed.message
    assert str(tmp_path) not in failed.message
    assert not (tmp_path / "not").exists()


async def test_a_home_removed_while_it_is_served_is_missed_each_time(opened, tmp_path):
    databases = opened()
    await databases.migrate()
    databases.require("desk")
    await databases.of("desk").ping()
    shutil.rmtree(tmp_path / "home")
    for _ in range(2):
        failed = await failure(databases)
        assert isinstance(failed, Unreachable)
        assert "removed" in failed.message
    assert not (tmp_path / "home").exists()
    await databases.migrate()
    await databases.of("desk").ping()


async def test_an_unfinished_demo_is_not_opened(opened, tmp_path):
    databases = opened()
    await databases.migrate()
    (tmp_path / "home" / "demo.unfinished.json").write_text("{}")
    failed = await failure(databases)
    assert isinstance(failed, Unreachable)
    assert "run `quantdeck demo` again" in failed.message


async def test_a_real_home_that_becomes_a_demo_is_not_served_under_the_old_name(opened, tmp_path):
    databases = opened()
    await databases.migrate()
    await databases.of("desk").ping()
    shutil.rmtree(tmp_path / "home")
    await databases.migrate()
    (tmp_path / "home" / "demo.json").write_text("{}")
    assert "Restart this server" in (await failure(databases)).message


@pytest.mark.parametrize("mark", ["demo.json", "demo.unfinished.json"])
async def test_a_demo_home_and_a_real_database_are_refused_together(opened, tmp_path, mark):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / mark).write_text("{}")
    with pytest.raises(MisconfiguredError, match="demo world"):
        opened(database="postgresql://db/x")
