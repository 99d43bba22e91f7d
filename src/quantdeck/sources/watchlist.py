"""The watchlist of an installation: the file that a setting names, one in the home, or the spec's."""

from __future__ import annotations

from quantdeck.domain.watchlist import DEFAULT, Watchlist, WatchlistFile, read_watchlist
from quantdeck.settings import Settings

__all__ = ["watched"]


def watched(settings: Settings) -> WatchlistFile:
    """What is watched now. A file that is named and cannot be read watches nothing, which is a problem to tell."""
    path = settings.watchlist or settings.home_path / "watchlist.txt"
    if settings.watchlist is None and not path.exists():
        return WatchlistFile(DEFAULT)
    try:
        return read_watchlist(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        return WatchlistFile(Watchlist(), (f"{path} cannot be read: {why}",))
