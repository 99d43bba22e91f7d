"""docs/settings.md: every setting, read from `Settings`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, SecretStr

from quantdeck.settings import PREFIX, Settings, names

__all__ = ["Setting", "page", "settings"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its names in the environment, the first to be set counts."""

    names: tuple[str, ...]
    default: Any
    description: str


def settings() -> list[Setting]:
    """Every setting there is, in the order in which they are declared."""
    return list(_of(Settings, PREFIX))


def page() -> str:
    """The page."""
    lines = [
        "# Settings",
        "",
        "<!-- Written by docs/generate.py from quantdeck.settings. -->",
        "",
        "All are environment variables. Of several names the first that is set counts; empty means unset.",
        "Several values by tool are written as JSON: `QUANTDECK_DEADLINE_S='{\"get_top_strategies\": 5}'`; so can be",
        "the settings of one group: `QUANTDECK_POSTGRESQL='{\"max_connections\": 4}'`. A name that is nearly one of",
        "these is refused.",
        "",
        "| name | default | what it is |",
        "| --- | --- | --- |",
    ]
    for setting in settings():
        called = ", ".join(f"`{name}`" for name in setting.names)
        lines.append(f"| {called} | {_shown(setting.default)} | {setting.description} |")
    return "\n".join(lines) + "\n"


def _of(model: type[BaseModel], prefix: str) -> Iterator[Setting]:
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            yield from _of(type(default), f"{prefix}{name.upper()}__")
        else:
            yield Setting(tuple(names(prefix, name, field)), _plain(default), field.description or "")


def _plain(default: Any) -> Any:
    return default.get_secret_value() if isinstance(default, SecretStr) else default


def _shown(default: Any) -> str:
    if default is None or default in ("", [], {}):
        return "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"
