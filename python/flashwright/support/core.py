"""The door to the compiled core, so that what imports it can be checked: it is no module of Python's."""

import flashwright._core as _core

__all__ = ["_core"]
