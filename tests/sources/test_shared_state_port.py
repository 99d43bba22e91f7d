"""What every adapter of the port `shared_state` does."""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quantdeck.core.clock import Now
from quantdeck.core.errors import NotInPast
from quantdeck.sources.shared_state import Entry, Quota, QuotaExceeded, SharedState
from tests.support.shared_states import QUOTA, Store, opened

LARGE = Quota(16 * 2**20, 10_000)
NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def running() -> Now:
    return Now.of(datetime.now(UTC), fixed=False)


def standing(at: datetime) -> Now:
    return Now.of(at, fixed=True)


services = pytest.mark.services


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=services),
        pytest.param("redis", marks=services),
        pytest.param("cluster", marks=services),
    ]
)
async def store(request, tmp_path):
    async with opened(request.param, tmp_path) as store:
        yield store


@pytest.fixture
def state(store: Store) -> SharedState:
    return store.state()


@pytest.fixture
def other(store: Store) -> SharedState:
    return store.state(1)


async def put(state: SharedState, key: str = "k", value: bytes = b"1", *, scope: str = "c", **said: Any) -> datetime:
    return await state.set(scope, key, value, **{"ttl_s": 300, "at": running(), **said})


async def got(state: SharedState, key: str = "k", *, scope: str = "c", as_of: Now | None = None) -> Entry:
    entry = await state.get(scope, key, as_of=as_of or running())
    assert entry is not None
    return entry


async def test_what_was_set_is_found_to_the_byte(state, other):
    value = '{"ü":[1.50,null,"\\u0000",{"a":{}}]}'.encode()
    await put(state, value=value)
    assert (await got(other)).value == value


async def test_what_was_never_set_is_not_there(state):
    assert await state.get("c", "k", as_of=running()) is None


async def test_scope_and_key_are_a_values_name(state):
    for scope, key in (("c", "k"), ("c", "k2"), ("c2", "k"), ("c", "K"), ("C", "k"), ("c", "expiries"), ("c", "-")):
        await put(state, key, f'"{scope}{key}"'.encode(), scope=scope)
    assert (await got(state, "k2")).value == b'"ck2"'
    assert (await got(state, "k", scope="c2")).value == b'"c2k"'
    assert (await got(state, "K")).value == b'"cK"'
    assert (await got(state, scope="C")).value == b'"Ck"'


async def test_every_reading_is_counted_and_an_overwriting_keeps_the_count(state, other):
    await put(state)
    assert [(await got(one)).access_count for one in (state, other, state)] == [1, 2, 3]
    await put(state, value=b"2")
    assert (await got(state)).access_count == 4


async def test_an_overwriting_moves_the_time_of_change_and_not_that_of_creation(state, store):
    await put(state)
    before = await got(state)
    assert before.created_at == before.updated_at
    assert abs(before.created_at - datetime.now(UTC)) < 60 * SECOND
    await put(state, value=b"2")
    after = await got(state)
    assert after.created_at == before.created_at
    assert after.updated_at > before.updated_at


async def test_it_expires_when_that_was_said_and_begins_anew_after(state, store):
    expires_at = await put(state, ttl_s=10)
    entry = await got(state)
    assert expires_at == entry.updated_at + 10 * SECOND
    assert entry.ttl_s == 10
    await store.pass_on(4.5)
    assert (await got(state)).ttl_s in {5, 6}
    await store.pass_on(6)
    assert await state.get("c", "k", as_of=running()) is None
    await put(state)
    assert (await got(state)).access_count == 1


async def test_an_overwriting_gives_it_a_life_of_its_own(state, store):
    await put(state, ttl_s=10)
    await put(state, ttl_s=100)
    await store.pass_on(50)
    assert (await got(state)).ttl_s in {50, 51}
    await put(state, ttl_s=10)
    assert (await got(state)).ttl_s == 10


async def test_a_clock_that_was_set_back_lets_nothing_live_longer_than_it_was_given(state, store):
    await put(state, ttl_s=10)
    await store.set_back(3600)
    assert (await got(state)).ttl_s == 10
    await store.pass_on(10.5)
    assert await state.get("c", "k", as_of=running()) is None


async def test_a_clock_that_was_set_ahead_ends_what_was_written_before(state, store):
    await put(state, ttl_s=10)
    await store.pass_on(86_400 * 30)
    assert await state.get("c", "k", as_of=running()) is None
    await put(state, ttl_s=10)
    assert (await got(state)).ttl_s == 10


async def test_a_scope_may_have_so_many_bytes_and_not_one_more(state, other):
    await put(state, "a", b"x" * 600)
    await put(other, "b", b"x" * 400)
    with pytest.raises(QuotaExceeded) as full:
        await put(state, "c", b"x")
    assert (full.value.what, full.value.used, full.value.most) == ("bytes", 1000, 1000)
    assert await state.get("c", "c", as_of=running()) is None
    await put(state, "c", b"x", scope="another")


async def test_a_value_that_does_not_fit_leaves_what_was_there(state):
    await put(state, "a", b"x" * 600)
    await put(state, "b", b"x" * 300)
    with pytest.raises(QuotaExceeded):
        await put(state, "b", b"y" * 401)
    assert (await got(state, "b")).value == b"x" * 300


async def test_an_overwriting_counts_once(state):
    for size in (1000, 999, 1, 1000):
        await put(state, "a", b"x" * size)
    with pytest.raises(QuotaExceeded):
        await put(state, "a", b"x" * 1001)
    await put(state, "a", b"x")
    await put(state, "b", b"x" * 999)


async def test_a_scope_may_have_so_many_keys_and_not_one_more(state):
    for number in range(QUOTA.keys):
        await put(state, f"k{number}")
    with pytest.raises(QuotaExceeded) as full:
        await put(state, "more")
    assert (full.value.what, full.value.used, full.value.most) == ("keys", 5, 5)
    await put(state, "k0", b"2")


async def test_what_has_expired_gives_its_room_back(state, store):
    for number in range(4):
        await put(state, f"k{number}", b"x" * 200, ttl_s=10)
    await put(state, "stays", b"x" * 200, ttl_s=1000)
    await store.pass_on(11)
    for number in range(4):
        await put(state, f"n{number}", b"x" * 200)
    with pytest.raises(QuotaExceeded):
        await put(state, "more", b"x")
    assert await store.kept() == 5


async def test_scopes_that_nobody_writes_to_any_more_are_cleared_away(state, store):
    for number in range(20):
        await put(state, scope=f"s{number}", ttl_s=10)
    await store.pass_on(11)
    for number in range(20):
        await put(state, f"k{number % 5}", scope="busy")
    assert await store.kept() == 5


async def test_fifty_at_once_are_one_value_whole(store):
    states = [store.state(which, LARGE) for which in (0, 1)]
    values = [secrets.token_hex(2000).encode() for _ in range(50)]
    await asyncio.gather(*(put(states[number % 2], value=value) for number, value in enumerate(values)))
    entry = await got(states[0])
    assert entry.value in values
    assert entry.access_count == 1
    assert await store.kept() == 1


async def test_any_number_at_once_keep_within_the_quota(store):
    states = [store.state(which) for which in (0, 1)]

    async def tried(number: int) -> bool:
        try:
            await put(states[number % 2], f"k{number}", b"x" * 300)
        except QuotaExceeded:
            return False
        return True

    assert sum(await asyncio.gather(*map(tried, range(20)))) == 3


async def test_readings_at_once_are_all_counted(state, other):
    await put(state)
    entries = await asyncio.gather(*(got((state, other)[number % 2]) for number in range(30)))
    assert sorted(entry.access_count for entry in entries) == list(range(1, 31))


async def test_a_large_value_is_kept_whole(store):
    state = store.state(quota=LARGE)
    value = b'"' + b"x" * (2**20 - 2) + b'"'
    await put(state, value=value)
    assert [(await got(state)).value == value for _ in range(3)] == [True] * 3


# as of


async def test_what_is_written_where_the_clock_stands_is_dated_by_it_and_found_there(state):
    expires_at = await put(state, ttl_s=60, at=standing(NOON))
    entry = await got(state, as_of=standing(NOON))
    assert (entry.created_at, entry.updated_at, entry.ttl_s) == (NOON, NOON, 60)
    assert expires_at == NOON + 60 * SECOND
    assert (await got(state)).value == b"1", "and where the world runs it is there too"


async def test_what_was_first_written_later_is_not_there_yet(state):
    await put(state, at=standing(NOON))
    before = standing(NOON - timedelta(microseconds=1))
    assert await state.get("c", "k", as_of=before) is None
    assert (await got(state)).access_count == 1, "and nobody has read it"


async def test_what_was_overwritten_later_is_refused_and_not_shown(state):
    await put(state, at=standing(NOON))
    await put(state, value=b"2", at=standing(NOON + SECOND))
    with pytest.raises(NotInPast, match="stands at 2026-01-15T12:00:00Z"):
        await state.get("c", "k", as_of=standing(NOON))
    assert (await got(state, as_of=standing(NOON + SECOND))).value == b"2"
    assert (await got(state)).access_count == 2


async def test_what_runs_writes_is_not_known_where_the_clock_stands(state):
    await put(state)
    assert await state.get("c", "k", as_of=standing(NOON)) is None


async def test_an_earlier_world_that_overwrites_was_there_first(state):
    await put(state)
    await put(state, value=b"2", at=standing(NOON))
    entry = await got(state, as_of=standing(NOON))
    assert (entry.created_at, entry.value) == (NOON, b"2")


async def test_it_is_there(state):
    await state.ping()
