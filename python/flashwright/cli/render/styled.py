"""Standard output with the style of a terminal, by Rich."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from flashwright.cli.render.fit import TEXT_MAX, wrap
from flashwright.support.printable import printable

__all__ = ["Styled"]


class Styled(Console):
    """Standard output: text folds at word borders, never within a number with its unit, and steers no terminal."""

    def print(self, *objects: Any, soft_wrap: bool | None = None, **style: Any) -> None:
        """Print as Rich does; text alone is folded here."""
        if len(objects) == 1 and isinstance(objects[0], str) and not soft_wrap:
            for line in wrap(objects[0], min(self.width, TEXT_MAX)):
                super().print(line, soft_wrap=True, **style)
        else:
            super().print(*objects, soft_wrap=soft_wrap, crop=False, **style)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """What Rich makes of something, with text of others as a terminal may have it."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(printable(part.text), part.style)
