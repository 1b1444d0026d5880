"""Commands that became groups: what was typed before goes to a hidden command, which says what to type now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flashwright.cli import help as layout

__all__ = ["OLD_FORM", "Group", "OldCommand"]

OLD_FORM = "(old form)"
"""The hidden command's name, which nobody types."""


class Group(layout.Group):
    """Commands, and a hidden one that takes what was typed before there were several."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Send options and drives that stand where a command is expected to the hidden one."""
        if args and args[0] not in self.commands and args[0] != "--help" and _is_old(args[0]):
            args = [OLD_FORM, *args]
        return super().parse_args(ctx, args)


class OldCommand(layout.Command):
    """The hidden command, which messages call by its group's name."""

    def make_context(
        self, info_name: Any, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """The context, without a name of its own."""
        return super().make_context("", args, parent, **extra)


def _is_old(word: str) -> bool:
    from flashwright.drive.description import devices

    return (
        word.startswith("-") or word in devices() or word.endswith(".toml") or Path(word).exists()
    )
