"""Tables in Parquet and Arrow files: written as text once, which the core reads by its columns."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from flashwright.errors import TraceError
from flashwright.traces.piped import kept_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["as_text"]

_PARQUET = b"PAR1"
_ARROW = b"ARROW1"
_made: dict[tuple[str, int, int], str] = {}


def as_text(path: str) -> str | None:
    """A Parquet or Arrow file as a compressed table of text with a header line.

    Every column is kept at its place under its name: numbers as decimals, truth values as ``true`` and ``false``,
    timestamps as dates, durations in nanoseconds. Lists and structures, which say nothing of a request that a column
    could, are left empty. The text is written in batches to a temporary file, which is gone when the process has
    ended, and only once for each file.

    Parameters
    ----------
    path : str
        Any file.

    Returns
    -------
    str or None
        The file with the text; None if the file is neither Parquet nor Arrow.

    Raises
    ------
    TraceError
        If the file is damaged or the text can't be written.

    Examples
    --------
    >>> as_text("requests.spc") is None
    True
    """
    try:
        with open(path, "rb") as file:
            head = file.read(len(_ARROW))
        if not head.startswith((_PARQUET, _ARROW)):
            return None
        found = os.stat(path)
    except OSError:
        # The core says what is wrong with it.
        return None
    key = (os.path.abspath(path), found.st_size, found.st_mtime_ns)
    if key not in _made:
        _made[key] = _write(path, is_parquet=head.startswith(_PARQUET))
    return _made[key]


def _write(path: str, *, is_parquet: bool) -> str:
    import pyarrow as pa
    from pyarrow import csv

    kind = "Parquet" if is_parquet else "Arrow"
    try:
        schema, batches = _batches(path, is_parquet=is_parquet)
        kept = kept_file(path)
        plain = pa.schema([(field.name, _plain(field.type)) for field in schema])
        with (
            pa.CompressedOutputStream(str(kept), "zstd") as target,
            csv.CSVWriter(target, plain) as writer,
        ):
            for batch in batches:
                columns = [
                    _as_plain(column, field.type)
                    for column, field in zip(batch.columns, plain, strict=True)
                ]
                writer.write_batch(pa.record_batch(columns, schema=plain))
    except (pa.ArrowException, OSError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise TraceError(
            f"{path}: the {kind} file can't be read as a table: {first}",
            "copy or download it again, or export it as CSV",
        ) from None
    return str(kept)


def _batches(path: str, *, is_parquet: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if is_parquet:
        from pyarrow import parquet

        file = parquet.ParquetFile(path)
        return file.schema_arrow, file.iter_batches()
    from pyarrow import ipc

    table = ipc.open_file(path)
    return table.schema, (table.get_batch(at) for at in range(table.num_record_batches))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type as which a column is written."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns")
    if pa.types.is_duration(kind):
        return pa.int64()
    return pa.string() if pa.types.is_nested(kind) else kind


def _as_plain(column: Any, kind: pa.DataType) -> Any:
    import pyarrow as pa

    if pa.types.is_nested(column.type):
        return pa.nulls(len(column), kind)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_duration(column.type):
        column = column.cast(pa.duration("ns"))
    return column if column.type == kind else column.cast(kind)
