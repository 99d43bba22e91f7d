"""From when on something may be missing of a symbol, on disk: it outlives the process that could not fetch it."""

from __future__ import annotations

import logging
import os
from hashlib import sha256
from pathlib import Path

import orjson

__all__ = ["Owed"]

log = logging.getLogger(__name__)


class Owed:
    """By symbol an instant in seconds. The file is of one store: of another nothing is known."""

    def __init__(self, path: Path, store: str) -> None:
        self._path = path
        self._store = sha256(store.encode()).hexdigest()[:16]  # it may hold a password
        self._since = self._saved = self._read()

    def since(self, symbol: str) -> int | None:
        return self._since.get(symbol)

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._since

    def owe(self, symbol: str, since_s: int) -> None:
        self._since = {**self._since, symbol: min(since_s, self._since.get(symbol, since_s))}

    def settle(self, symbol: str) -> None:
        self._since = {name: since_s for name, since_s in self._since.items() if name != symbol}

    def save(self) -> None:
        """Have the disk say the same, whoever is killed meanwhile."""
        if self._since == self._saved:
            return
        made = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with made.open("wb") as file:
                file.write(orjson.dumps({"store": self._store, "owed": self._since}))
                file.flush()
                os.fsync(file.fileno())
            made.replace(self._path)
        except OSError as error:  # a full disk, which ends no collector: the next time may be better
            log.error("owed_not_saved", extra={"fields": {"why": error.strerror}})  # noqa: TRY400
        else:
            self._saved = self._since

    def _read(self) -> dict[str, int]:
        try:
            told = orjson.loads(self._path.read_bytes())
            return dict(told["owed"]) if told["store"] == self._store else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}  # then the store's last bars say how far it got
