"""The door to the compiled core, so that what imports it can be checked: it is no module of Python's."""

import flashwright._core as _core

__all__ = ["_core", "expect_arrays"]


def expect_arrays() -> None:
    """Import NumPy before a call of the core that gives arrays.

    The core would import it by itself, but where Ctrl-C comes meanwhile, that ends in a panic and not in an exception.

    Examples
    --------
    >>> expect_arrays()
    """
    import numpy  # noqa: F401
