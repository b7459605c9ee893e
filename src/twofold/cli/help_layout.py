"""How `--help` is laid out: plain text, each paragraph wrapped once, to the width of the terminal."""

import textwrap
from collections.abc import Mapping
from typing import Any

from cyclopts.help import HelpEntry, HelpPanel
from rich.console import Console, ConsoleOptions

MAX_WIDTH = 100
"""Longer lines are hard to read, however wide the terminal is."""
_UNWRAPPED = 100_000


class HelpLayout:
    """Writes the help of a command, as cyclopts asks for it.

    Args:
        placeholders: What stands for the value of an option, by its name, where its type says too little.
    """

    def __init__(self, placeholders: Mapping[str, str]) -> None:
        self._placeholders = placeholders

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Write one list: of arguments, of options, or of commands."""
        if not panel.entries:
            return
        _print(console, f"{panel.title}:")
        for entry in panel.entries:
            text = f"{self._name(entry)}: {_plain(entry.description, console, options)}"
            _print(console, _wrap(text, console, first="  ", further="      "))
        _print(console, "")

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:  # noqa: ARG002 - as it is called
        """Write how the command is called."""
        text = str(usage).strip()
        _print(console, text if text.startswith("Usage:") else f"Usage: {text}")
        _print(console, "")

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        """Write what the command does."""
        for paragraph in filter(None, _plain(description, console, options).split("\n\n")):
            _print(console, _wrap(paragraph, console))
            _print(console, "")

    def _name(self, entry: HelpEntry) -> str:
        if entry.positional_label:
            return entry.positional_label
        names = [*entry.positive_names, *entry.positive_shorts]
        placeholder = self._placeholders.get(names[0], entry.metavar)
        return ", ".join(names) + (f" {placeholder}" if placeholder else "")


def _plain(text: Any, console: Console, options: ConsoleOptions) -> str:
    """Give a text as it was written, not yet wrapped."""
    if text is None:
        return ""
    return "".join(part.text for part in console.render(text, options.update(width=_UNWRAPPED))).strip()


def _wrap(text: str, console: Console, *, first: str = "", further: str = "") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        min(console.width, MAX_WIDTH),
        initial_indent=first,
        subsequent_indent=further,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _print(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
