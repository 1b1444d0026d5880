"""Requests as tables: a row for each, with the kind by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

__all__ = ["KINDS", "request_table"]

KINDS = ("read", "write", "trim", "flush")
"""Kinds of request, in the order of their numbers."""


def request_table(columns: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """Columns of requests as a table, their kinds by name."""
    import pyarrow as pa

    arrays = {name: pa.array(values) for name, values in columns.items()}
    arrays["kind"] = pa.DictionaryArray.from_arrays(arrays["kind"].cast(pa.int8()), pa.array(KINDS))
    return pa.table(arrays)
