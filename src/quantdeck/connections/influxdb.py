"""InfluxDB by the one language that its versions 1, 2 and 3 share: InfluxQL over /query, line protocol over /write.

An error may come with any status, 200 included, and inside any statement's result. Values are bound as parameters;
names of measurements and fields, which cannot be, are quoted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import orjson

from quantdeck.core.errors import Busy, Denied, QueryFailed, SourceError, Unreachable
from quantdeck.settings import InfluxDB as Settings
from quantdeck.settings import MisconfiguredError

if TYPE_CHECKING:
    import httpx2

__all__ = ["SOURCE", "InfluxDB", "Place", "Rows", "place", "quoted", "tag_value"]

SOURCE = "influxdb"

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server is, and as whom it is asked. Never shown: there may be a password in it."""

    base_url: str
    bucket: str
    authorization: tuple[str, str] | str | None


def place(url: str, settings: Settings) -> Place:
    """What QUANTDECK_CANDLES and the group of settings say together; the URL counts first."""
    said = url.partition(":")[2].strip("/")
    address = url.replace("influxdb", "http", 1) if said else settings.url
    name = "QUANTDECK_CANDLES" if said else "QUANTDECK_INFLUXDB__URL"
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise MisconfiguredError(f"{name} cannot be read as a URL: {_URL}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise MisconfiguredError(f"{name} must name a server: {_URL}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    in_path = unquote(parts.path.strip("/")) if said else ""
    prefix = "" if said else parts.path.rstrip("/")
    user, password = settings.user, settings.password.get_secret_value()
    if parts.username:
        user, password = unquote(parts.username), unquote(parts.password or "")
    bucket = in_path or settings.bucket
    if not bucket:
        raise MisconfiguredError(
            "QUANTDECK_INFLUXDB__BUCKET is not set: it names the database or bucket of the candles"
        )
    return Place(f"{parts.scheme}://{host}{port}{prefix}", bucket, _authorization(settings, user, password))


_URL = (
    "QUANTDECK_CANDLES=influxdb://host:8086/bucket (influxdbs:// for TLS), or QUANTDECK_INFLUXDB__URL=http://host:8086"
)


def _authorization(settings: Settings, user: str, password: str) -> tuple[str, str] | str | None:
    if token := settings.token.get_secret_value():
        return f"{'Bearer' if settings.auth == 'bearer' else 'Token'} {token}"
    return (user, password) if user else None


class InfluxDB:
    """One server, asked over a few connections that are kept. Nothing is connected before the first question."""

    def __init__(self, where: Place, settings: Settings) -> None:
        self._where = where
        self._settings = settings
        self._client: httpx2.AsyncClient | None = None

    async def query(self, *statements: str, **values: Any) -> list[Rows]:
        """The rows of each statement; those of several series follow one another, with the series' tags in them."""
        form = {
            "q": "; ".join(statements),
            "db": self._where.bucket,
            "epoch": "s",
            "params": orjson.dumps(values).decode(),
        }
        answer = await self._ask("/query", {**form, **self._org}, b"")
        told = _read(answer)
        if "results" not in told:
            raise _failed(str(told.get("error") or told.get("message") or ""), answer.status_code)
        results = {result.get("statement_id", 0): result for result in told["results"]}
        return [_rows(results.get(number, {})) for number in range(len(statements))]

    async def write(self, lines: Sequence[bytes]) -> None:
        """Store points, times in seconds. One with the tags and the time of another replaces it."""
        query = {"db": self._where.bucket, "precision": "s", **self._org}
        await self._ask("/write", query, b"\n".join(lines))

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()

    @property
    def _org(self) -> dict[str, str]:
        return {"org": self._settings.org} if self._settings.org else {}

    async def _ask(self, path: str, query: Mapping[str, str], body: bytes) -> httpx2.Response:
        import httpx2

        client = self._opened()
        # A query goes as a form: a GET would put it into logs on the way, and is bounded in length.
        sent: dict[str, Any] = {"params": query, "content": body} if body else {"data": query}
        for last in (False, True):
            try:
                answer = await client.post(path, **sent)
            except httpx2.PoolTimeout as error:
                limit = self._settings.max_connections
                raise Unreachable(f"No free connection to InfluxDB: all {limit} are in use.", source=SOURCE) from error
            except httpx2.TimeoutException as error:
                raise Unreachable("The connection to InfluxDB timed out.", source=SOURCE) from error
            except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError) as error:
                # One that was kept too long; both questions and points may be sent twice.
                if last:
                    raise Unreachable("The connection to InfluxDB broke.", source=SOURCE) from error
            except httpx2.HTTPError as error:
                raise Unreachable("No connection to InfluxDB: it is down or out of reach.", source=SOURCE) from error
            else:
                _check(answer)
                return answer
        raise AssertionError("the second try answers or raises")

    def _opened(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2

            settings, said = self._settings, self._where.authorization
            self._client = httpx2.AsyncClient(
                base_url=self._where.base_url,
                headers={"authorization": said} if isinstance(said, str) else {},
                auth=said if isinstance(said, tuple) else None,
                timeout=httpx2.Timeout(settings.read_s, connect=settings.connect_s, pool=settings.connect_s),
                limits=httpx2.Limits(
                    max_connections=settings.max_connections,
                    max_keepalive_connections=settings.max_connections,
                    keepalive_expiry=settings.idle_s,
                ),
                trust_env=False,  # no credentials of a .netrc, and no proxy that nobody chose
            )
        return self._client


def _read(answer: httpx2.Response) -> dict[str, Any]:
    try:
        told = orjson.loads(answer.content)
    except orjson.JSONDecodeError as error:
        raise QueryFailed("InfluxDB's answer is no JSON; is it InfluxDB?", source=SOURCE) from error
    return told if isinstance(told, dict) else {}


def _rows(result: Mapping[str, Any]) -> Rows:
    if said := result.get("error"):
        raise _failed(str(said), 200)
    found: Rows = []
    for series in result.get("series", ()):
        if series.get("partial"):  # also of more than 10,000 rows that are all there; we never ask for so many
            raise QueryFailed("InfluxDB cut its answer short (max-row-limit); raise that limit.", source=SOURCE)
        tags = series.get("tags", {})
        found += [{**tags, **dict(zip(series["columns"], row, strict=True))} for row in series.get("values", ())]
    return found


def _check(answer: httpx2.Response) -> None:
    if answer.status_code >= 300:
        try:
            told = orjson.loads(answer.content)
            said = str(told.get("error") or told.get("message") or "")
        except (orjson.JSONDecodeError, AttributeError):
            said = answer.text[:200]
        raise _failed(said, answer.status_code)


def _failed(said: str, status: int) -> SourceError:
    """What went wrong, in our words; InfluxDB's own stand in the cause, for the log."""
    error = _in_our_words(said.lower(), status)
    error.__cause__ = RuntimeError(f"{status}: {said[:500]}")
    return error


@dataclass(frozen=True, slots=True)
class _Kind:
    """Statuses and words by which a failure is known, and what is said of it."""

    error: type[SourceError]
    sentence: str
    statuses: tuple[int, ...] = ()
    words: tuple[str, ...] = ()


_KINDS = (
    _Kind(
        Denied,
        "InfluxDB refused the credentials.",
        (401, 403),
        ("authorization failed", "unable to parse authentication"),
    ),
    _Kind(
        QueryFailed,
        "InfluxDB has no database of the configured name or, in version 2, no DBRP mapping of its bucket.",
        (404,),
        ("database not found", "dbrp"),
    ),
    _Kind(
        QueryFailed,
        "InfluxDB refused the query: it would read too many files. Lower QUANTDECK_INFLUXDB__LOOKBACK_DAYS.",
        (),
        ("parquet files", "file limit"),
    ),
    _Kind(
        Busy,
        "InfluxDB is busy with other work; try again.",
        (429, 503),
        ("max-concurrent", "cache-max-memory"),
    ),
    _Kind(
        QueryFailed,
        "InfluxDB stores one of these fields as another type, and took none of it.",
        (),
        ("field type conflict",),
    ),
    _Kind(QueryFailed, "InfluxDB dropped bars that are older than its retention.", (), ("retention policy",)),
    _Kind(Unreachable, "InfluxDB broke off the query: timeout.", (504,), ("timeout",)),
    _Kind(Unreachable, "InfluxDB failed and does not say why; its log does.", (500, 502)),
)


def _in_our_words(said: str, status: int) -> SourceError:
    for kind in _KINDS:
        if status in kind.statuses or any(word in said for word in kind.words):
            return kind.error(kind.sentence, source=SOURCE)
    return QueryFailed("InfluxDB refused the query.", source=SOURCE)


def quoted(name: str) -> str:
    """A measurement's, tag's or field's name inside a query."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def tag_value(text: str) -> str:
    """A tag's value, or a name, inside a line. What no line can hold is refused."""
    if not text or text.endswith("\\") or any(sign in text for sign in "\n\r\0"):
        raise QueryFailed("InfluxDB cannot store a symbol that is spelt like this.", source=SOURCE)
    return text.replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ")
