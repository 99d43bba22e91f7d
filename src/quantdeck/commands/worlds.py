"""A demo world and a real one are not mixed by a command, unless whoever calls it says so."""

from __future__ import annotations

import argparse

from pydantic import SecretStr

from quantdeck.commands import UsageError
from quantdeck.settings import Settings

__all__ = ["add_from_demo", "add_into_demo", "bars_of_a_file", "refuse_any_demo", "refuse_demo", "refuse_made_up"]


def add_into_demo(command: argparse.ArgumentParser) -> None:
    """The flag by which `refuse_demo` lets pass."""
    command.add_argument("--into-demo", action="store_true", help="allow it where the home is a demo world")


def add_from_demo(command: argparse.ArgumentParser) -> None:
    """The flag by which `refuse_made_up` lets pass."""
    command.add_argument("--from-demo", action="store_true", help="allow made-up data of a demo world in a real home")


ALL_MADE_UP = "whose answers all say that they are made up"


def refuse_demo(settings: Settings, arguments: argparse.Namespace, why: str = ALL_MADE_UP) -> None:
    """Bring nothing into a demo world."""
    if settings.is_demo and not arguments.into_demo:
        raise UsageError(
            f"{settings.home_path} is a demo world, {why}; choose another QUANTDECK_HOME, or say --into-demo"
        )


def refuse_any_demo(settings: Settings, why: str = ALL_MADE_UP) -> None:
    """Likewise what no flag lets pass: keys and a demo world are refused together by every program."""
    if settings.is_demo:
        raise UsageError(f"{settings.home_path} is a demo world, {why}; choose another QUANTDECK_HOME")


def refuse_made_up(settings: Settings, arguments: argparse.Namespace, *, made_up: bool) -> None:
    """Bring nothing of a demo world into a real home."""
    if made_up and not settings.is_demo and not arguments.from_demo:
        raise UsageError(
            f"{arguments.file} was taken out of a demo world, so it is made up, and this home is real; say --from-demo "
            "if you want it here"
        )


def bars_of_a_file(settings: Settings, arguments: argparse.Namespace, why: str = ALL_MADE_UP) -> Settings:
    """Where bars are to go: a demo world's own are computed, so what is brought into one goes to its file."""
    refuse_demo(settings, arguments, why)
    return settings.model_copy(update={"candles": SecretStr("embedded")}) if settings.is_demo else settings
