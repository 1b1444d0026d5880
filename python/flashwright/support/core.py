"""The door to the compiled core, so that what imports it can be checked: it is no module of Python's."""

import flashwright._core as _core

__all__ = ["SECTOR_BYTES", "_core", "expect_arrays", "version_line"]

SECTOR_BYTES = _core.SECTOR_BYTES
"""The unit of addresses of block devices."""


def expect_arrays() -> None:
    """Import NumPy before a call of the core that gives arrays.

    The core would import it by itself, but where Ctrl-C comes meanwhile, that ends in a panic and not in an exception.

    Examples
    --------
    >>> expect_arrays()
    """
    import numpy  # noqa: F401


def version_line() -> str:
    """What this is: its version, and what else its core was built with.

    Examples
    --------
    >>> version_line() == f"flashwright {_core.__version__}"
    True
    """
    with_more = f" with {_core.built_with}" if _core.built_with else ""
    return f"flashwright {_core.__version__}{with_more}"
