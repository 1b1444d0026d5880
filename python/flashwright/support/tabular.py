"""Results as tables: Arrow, pandas, and the small HTML ones that notebooks show."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from flashwright.errors import MissingPackageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from pandas import DataFrame

__all__ = ["Tabular", "arrow_array", "column", "frame", "html_table", "of_rows"]


class Tabular(ABC):
    """A result that is a table."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The result as a table of Arrow's; units are in the names of the columns.

        Returns
        -------
        pyarrow.Table
        """

    def to_pandas(self) -> DataFrame:
        """The same table for pandas.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        MissingPackageError
            If pandas is not installed.
        """
        return frame(self.to_arrow())


def frame(table: pa.Table) -> DataFrame:
    """A table for pandas, which is loaded only now.

    Parameters
    ----------
    table : pyarrow.Table
        Whose columns are taken over; a whole number that is missing makes its column one of floats.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    MissingPackageError
        If pandas is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> frame(pa.table({"seed": [1, 2]}))["seed"].sum()
    np.int64(3)
    """
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise MissingPackageError(
            "pandas: not installed, expected it for to_pandas()",
            "pip install 'flashwright[pandas]'; to_arrow() gives the same table without it",
        ) from None
    made: DataFrame = table.to_pandas()
    return made


def arrow_array(values: npt.NDArray[Any], kind: npt.DTypeLike | None = None) -> pa.Array:
    """A column of NumPy's numbers as one of Arrow's; what is not a number is null.

    ``pyarrow.array`` makes the same, but imports pandas wherever that is installed, and so do casts.

    Parameters
    ----------
    values : array of numbers
        In one dimension.
    kind : type of NumPy's numbers, optional
        What the numbers are to be; by default what they are.

    Returns
    -------
    pyarrow.Array

    Examples
    --------
    >>> import numpy as np
    >>> arrow_array(np.array([1.5, np.nan])).to_pylist()
    [1.5, None]
    >>> arrow_array(np.array([np.nan, 7.0]), np.uint64).to_pylist()
    [None, 7]
    """
    import numpy as np
    import pyarrow as pa

    known = None
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        if missing.any():
            known = _bits(~missing)
            values = np.where(missing, 0, values)
    values = np.ascontiguousarray(values, kind)
    buffers = [known, pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def html_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", note: str = ""
) -> str:
    """A small table as notebooks show it: no script, no style sheet, everything escaped.

    Parameters
    ----------
    header : sequence of str
        Names of the columns; none are shown if there are none.
    rows : iterable of sequence of str
        The cells. The first of a row is its name; figures are set to the right.
    caption : str, optional
        A line above.
    note : str, optional
        A line below.

    Examples
    --------
    >>> html_table(["Run", "IOPS"], [["a<b", "1,234"]])
    '<table><thead><tr><th ...>Run</th><th ...>IOPS</th></tr></thead><tbody><tr><th ...>a&lt;b</th><td ...>...'
    """
    left, right = 'style="text-align:left"', 'style="text-align:right"'

    def aligned(text: str) -> str:
        return right if text[:1].isdigit() or text[:1] in ("-", "–", "+") else left

    lines = [list(row) for row in rows]
    body = "".join(
        f"<tr><th {left}>{escape(row[0])}</th>"
        + "".join(f"<td {aligned(cell)}>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in lines
    )
    # A column's name stands over its first cell as that is set.
    first = lines[0] if lines else header
    heads = "".join(
        f"<th {aligned(first[at]) if at else left}>{escape(name)}</th>"
        for at, name in enumerate(header)
    )
    return (
        "<table>"
        + (f"<caption {left}>{escape(caption)}</caption>" if caption else "")
        + (f"<thead><tr>{heads}</tr></thead>" if header else "")
        + f"<tbody>{body}</tbody></table>"
        + (f"<p>{escape(note)}</p>" if note else "")
    )


def of_rows(rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """Rows as a table. What a row lacks is null, and a column of several kinds is text.

    Parameters
    ----------
    rows : iterable of mapping
        Values by column; the columns stand in the order in which rows first name them.

    Returns
    -------
    pyarrow.Table

    Examples
    --------
    >>> of_rows([{"key": 1, "a": 2}, {"key": "off"}]).to_pydict()
    {'key': ['1', 'off'], 'a': [2, None]}
    """
    import pyarrow as pa

    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row)
    return pa.table({name: column([row.get(name) for row in listed]) for name in names})


def column(values: Sequence[object]) -> pa.Array:
    """A column of Arrow's, of text where the values are of several kinds, which no column can be.

    ``pyarrow.array`` makes the same, but imports pandas wherever that is installed.

    Parameters
    ----------
    values : sequence
        Numbers, truth values, text; None where there is none.

    Returns
    -------
    pyarrow.Array

    Examples
    --------
    >>> column([1, 2.5, None]).to_pylist(), column([0.7, "70%"]).to_pylist()
    ([1.0, 2.5, None], ['0.7', '70%'])
    >>> column([True, None]).type, column([None]).type
    (DataType(bool), DataType(null))
    """
    import numpy as np
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values))
    if len({float if kind is int else kind for kind in kinds}) > 1:
        values = [value if value is None else str(value) for value in values]
        kinds = {str}
    known = np.array([value is not None for value in values])
    mask = None if known.all() else _bits(known)
    if kinds == {str}:
        texts = [b"" if value is None else str(value).encode() for value in values]
        ends = np.cumsum([0, *map(len, texts)])
        if ends[-1] < 2**31:
            buffers = [mask, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(texts))]
            return pa.Array.from_buffers(pa.string(), len(values), buffers)
    elif kinds == {bool}:
        truths = _bits(np.array([value is True for value in values]))
        return pa.Array.from_buffers(pa.bool_(), len(values), [mask, truths])
    elif kinds <= {int, float}:
        numbers = [0 if value is None else value for value in values]
        made = np.array(numbers, np.float64 if float in kinds else None)
        if made.dtype.kind in "if":
            kind = pa.from_numpy_dtype(made.dtype)
            return pa.Array.from_buffers(kind, len(values), [mask, pa.py_buffer(made)])
    return pa.array(values)


def _bits(truths: npt.NDArray[np.bool_]) -> pa.Buffer:
    """A bit for each, as Arrow has them."""
    import numpy as np
    import pyarrow as pa

    return pa.py_buffer(np.packbits(truths, bitorder="little"))
