"""Many spellings in, one canonical spelling out, and never a guess."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.domain.symbols import CRYPTO_NAMES, QUOTES, UnknownSymbolError, asset_class, instrument, pair

BASES = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=1, max_size=10)


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("BTC/USD", "BTC/USD"),
        ("btc/usd", "BTC/USD"),
        ("BTC-USD", "BTC/USD"),
        ("BTC_USD", "BTC/USD"),
        ("BTCUSD", "BTC/USD"),
        ("btcusdt", "BTC/USDT"),
        ("  btc-usd ", "BTC/USD"),
        ("ETHBTC", "ETH/BTC"),
        ("EURGBP", "EUR/GBP"),
        ("USDUSDT", "USD/USDT"),
        ("1INCH/USD", "1INCH/USD"),
        ("SHIB/XYZ", "SHIB/XYZ"),
    ],
)
def test_usual_spellings_are_one_symbol(text, canonical):
    assert pair(text) == canonical


@pytest.mark.parametrize(
    "text",
    ["", " ", "BTC", "USD", "/USD", "BTC/", "BTC//USD", "BTC/USD/EUR", "BTC USD", "BTC/USD\n/", "BTC.USD", "B*C/USD",
     "BTC/U", "XYZABC", "A" * 16 + "/USD", "A/B", "💰/USD"],
)  # fmt: skip
def test_what_is_no_pair_is_refused_and_not_guessed(text):
    with pytest.raises(UnknownSymbolError, match="is not a trading pair such as BTC/USD") as refused:
        pair(text)
    assert refused.value.candidates == ()


@pytest.mark.parametrize(
    "text", ["ß/USD", "ßUSD", "\ufb01/usd", "b\u0131tusd", "\uff22/USD", "\u0661/USD", "BTC/USD\u0661"]
)
def test_letters_that_only_become_ours_when_capitalised_are_refused(text):
    with pytest.raises(UnknownSymbolError):
        pair(text)


def test_a_long_text_is_refused_without_being_repeated():
    with pytest.raises(UnknownSymbolError, match="too long") as refused:
        pair("x" * 1_000_000)
    assert len(refused.value.tried) <= 40


@given(base=BASES, quote=st.sampled_from(QUOTES), separator=st.sampled_from("/-_"))
def test_the_canonical_spelling_is_its_own(base, quote, separator):
    canonical = pair(f"{base}{separator}{quote}".lower())
    assert canonical == f"{base}/{quote}"
    assert pair(canonical) == canonical


def reading(text: str) -> str | UnknownSymbolError:
    try:
        return pair(text)
    except UnknownSymbolError as refused:
        return refused


@given(base=BASES, quote=st.sampled_from(QUOTES))
def test_a_compact_spelling_is_read_in_one_way_or_refused_with_all_there_are(base, quote):
    found = reading(base + quote)
    if isinstance(found, UnknownSymbolError):
        assert len(found.candidates) > 1
        assert f"{base}/{quote}" in found.candidates
    else:
        assert found == f"{base}/{quote}"


@given(text=st.text(max_size=60))
def test_any_text_is_a_canonical_pair_or_an_error(text):
    found = reading(text)
    if isinstance(found, str):
        assert found.isascii()
        assert found == found.upper()
        assert found.count("/") == 1
        assert pair(found) == found


@pytest.mark.parametrize(
    "text, canonical, kind",
    [
        ("AAPL", "AAPL", "stock"),
        (" aapl ", "AAPL", "stock"),
        ("F", "F", "stock"),
        ("GOOGL", "GOOGL", "stock"),
        ("GBTC", "GBTC", "stock"),  # a fund: five letters are never cut into a pair
        ("LTC", "LTC", "stock"),
        ("UNI", "UNI", "stock"),
        ("BRK.B", "BRK.B", "stock"),
        ("brk-b", "BRK.B", "stock"),
        ("BRK/B", "BRK.B", "stock"),
        ("BF_B", "BF.B", "stock"),
        ("BTC", "BTC/USD", "crypto"),
        ("eth", "ETH/USD", "crypto"),
        ("BTC/USD", "BTC/USD", "crypto"),
        ("btc-usd", "BTC/USD", "crypto"),
        ("BTC_USD", "BTC/USD", "crypto"),
        ("BTCUSD", "BTC/USD", "crypto"),
        ("LTC/USD", "LTC/USD", "crypto"),
        ("ETHBTC", "ETH/BTC", "crypto"),
        ("1INCHUSD", "1INCH/USD", "crypto"),
        ("SHIB/XYZ", "SHIB/XYZ", "crypto"),
        ("EUR/USDT", "EUR/USDT", "crypto"),
        ("EURUSD", "EUR/USD", "fx"),
        ("eur/usd", "EUR/USD", "fx"),
        ("USDSEK", "USD/SEK", "fx"),
        ("XAUUSD", "XAU/USD", "metal"),
        ("xag-eur", "XAG/EUR", "metal"),
        ("XAU/XAG", "XAU/XAG", "metal"),
    ],
)
def test_anything_traded_has_one_canonical_spelling_and_a_class(text, canonical, kind):
    assert instrument(text) == canonical
    assert asset_class(canonical) == kind


@pytest.mark.parametrize(
    "text", ["", " ", "XYZABC", "AAPL.", ".B", "BRK.BB", "BTC.USD", "BRK B", "0700", "TOOLONG.B", "A1", "BTC/U/D",
             "../etc", "AAPL\n.B", "\u0391APL", "ß"],
)  # fmt: skip
def test_what_is_neither_pair_nor_stock_is_refused(text):
    with pytest.raises(UnknownSymbolError, match="neither a trading pair such as BTC/USD nor a stock such as AAPL"):
        instrument(text)


def test_a_text_too_long_for_a_symbol_is_refused_without_being_repeated():
    with pytest.raises(UnknownSymbolError, match="too long") as refused:
        instrument("A" * 1_000_000)
    assert len(refused.value.tried) <= 40


def read(text: str) -> str | None:
    try:
        return instrument(text)
    except UnknownSymbolError:
        return None


@given(text=st.one_of(st.text(max_size=45), st.from_regex(r"[A-Za-z0-9]{1,8}[./_-]?[A-Za-z0-9]{0,6}", fullmatch=True)))
def test_the_canonical_spelling_of_anything_is_its_own(text):
    found = read(text)
    if found is not None:
        assert found.isascii()
        assert found == found.upper()
        assert instrument(found) == found or found in CRYPTO_NAMES


@given(base=BASES, quote=st.sampled_from(QUOTES), separator=st.sampled_from("/-_"))
def test_a_pair_that_says_so_is_the_same_pair_through_either_door(base, quote, separator):
    assert instrument(f"{base}{separator}{quote}") == pair(f"{base}{separator}{quote}")


@given(text=st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-_", min_size=6, max_size=20))
def test_from_six_letters_on_whatever_is_a_pair_to_one_door_is_that_pair_to_the_other(text):
    try:
        known = pair(text)
    except UnknownSymbolError:
        return
    assert instrument(text) == known
