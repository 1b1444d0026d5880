"""Fonts and styles of figures: serif or sans, and the style files of Matplotlib."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flashwright.errors import ArgumentError

__all__ = ["FONTS", "look_of"]

FONTS = {"serif": "serif", "sans": "sans-serif"}
"""Families of fonts by the names that they have here, as Matplotlib calls them."""

_EXPECTED = "expected serif, sans, a style of Matplotlib, or a file of one"


def look_of(styles: str | Sequence[str] | None) -> Mapping[str, Any]:
    """The settings of Matplotlib that some styles make together.

    Parameters
    ----------
    styles : str or sequence of str, optional
        ``"serif"``, ``"sans"``, the name of a style that Matplotlib knows, or a file (``.mplstyle``). Later ones come
        before earlier ones.

    Raises
    ------
    ArgumentError
        If one is nothing of these, or if its file has a line that Matplotlib does not take.

    Examples
    --------
    >>> look_of(["sans", "serif"])
    {'font.family': 'serif'}
    """
    look: dict[str, Any] = {}
    for name in [styles] if isinstance(styles, str) else styles or ():
        look.update({"font.family": FONTS[name]} if name in FONTS else _of_matplotlib(name))
    if look.get("text.usetex") and shutil.which("latex") is None:
        raise ArgumentError("figures-style: text.usetex is on, and LaTeX is not installed")
    return look


def _of_matplotlib(name: str) -> Mapping[str, Any]:
    import matplotlib as mpl
    import matplotlib.style

    path = Path(name)
    if path.is_file():
        with _complaints() as said:
            try:
                found = mpl.rc_params_from_file(path, use_default_template=False)
            except (OSError, UnicodeDecodeError) as error:
                raise ArgumentError(f"figures-style: {path}: {error}") from None
        if said:
            raise ArgumentError(
                f"figures-style: {path}: {' '.join(said[0].split())}", "see matplotlibrc"
            )
    elif name in mpl.style.library:
        found = mpl.style.library[name]
    else:
        raise ArgumentError(f"figures-style: found {name!r}, {_EXPECTED}")
    # Where figures are shown is no part of how they look.
    return {key: value for key, value in found.items() if not key.startswith("backend")}


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """What Matplotlib says against a file: it logs that, and goes on."""
    said: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger, kept = logging.getLogger("matplotlib"), Kept(logging.WARNING)
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(kept)
    try:
        yield said
    finally:
        logger.removeHandler(kept)
        logger.propagate = propagates
