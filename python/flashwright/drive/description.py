"""The description of a drive as text: what is bundled, and what a text leaves out filled in."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from flashwright.errors import ConfigError
from flashwright.support.core import _core

__all__ = ["base_of", "completed", "config_of", "devices", "keys_of"]


def devices() -> dict[str, str]:
    """The bundled drives: TOML text, with the origin of each constant, by name.

    Examples
    --------
    >>> list(devices())[0]
    'default'
    """
    return dict(_core.devices())


def config_of(toml: str) -> dict[str, Any]:
    """The configuration that a whole description holds, as nested dicts; sizes and times are text with their unit."""
    config: dict[str, Any] = json.loads(_core.config_json(toml))
    return config


def completed(text: str, source: str, name: str, over: str | None = None) -> str:
    r"""A description with every default written out.

    Parameters
    ----------
    text : str
        The description, in TOML.
    source : str
        What messages call it.
    name : str
        The drive's name if it has none.
    over : str, optional
        The whole description that this one is based on, if it is based on another file.

    Returns
    -------
    str

    Raises
    ------
    ConfigError
        With every fault of the text.

    Examples
    --------
    >>> config_of(completed("[geometry]\nchannels = 8", "text", "mine"))["name"]
    'mine'
    """
    base, named = _base_and_name(text)
    if base is not None and over is None:
        raise ConfigError(
            f"{source}: base: found {base!r} in a text, expected the name of a bundled drive",
            "a path is relative to the file that it stands in, and a text stands in none",
        )
    toml = _core.config_read(text, source, over)
    # A drive without a name goes by that of its file, without the folders.
    nameless = config_of(toml)["name"] == source or (over is not None and not named)
    return _core.config_with(toml, [f"name={json.dumps(name)}"]) if nameless else toml


def base_of(text: str) -> str | None:
    """The file that a description is based on, if any; a bundled drive is none.

    Examples
    --------
    >>> base_of('base = "./mine.toml"'), base_of('base = "default"')
    ('./mine.toml', None)
    """
    return _base_and_name(text)[0]


def _base_and_name(text: str) -> tuple[str | None, bool]:
    """The file that a description is based on, and whether it says a name."""
    if "base" not in text:
        return None, False
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        # Whoever reads it says so.
        return None, False
    base = tree.get("base")
    is_path = isinstance(base, str) and ("/" in base or base.endswith(".toml"))
    return (base if is_path else None), "name" in tree


def keys_of(tree: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The dotted keys of a configuration.

    Parameters
    ----------
    tree : mapping
        Such as :attr:`Ssd.config`.
    prefix : str, optional
        What stands before each.

    Examples
    --------
    >>> keys_of({"name": "small", "gc": {"victim": "fifo"}})
    ['name', 'gc.victim']
    """
    keys: list[str] = []
    for key, value in tree.items():
        keys.extend(
            keys_of(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]
        )
    return keys
