"""Tables as files, in the format that the name of the file ends in."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar

from flashwright.errors import OutputError
from flashwright.support.files import check_writable, write_beside, writing

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TableWriter", "check_table", "write_parquet", "write_table"]

# Rows of a row group of Parquet, as pyarrow has them by default: with 2^17 a file of requests is 30 % larger.
_ROW_GROUP = 1 << 20
# Rows of a batch of Arrow, as pyarrow's writer of Feather has them.
_BATCH = 1 << 16


class TableWriter:
    """Appends rows to a table in a file, which appears once it is whole.

    Memory holds no more than a million of the rows. The file has the same content as if :func:`write_table` had
    written all rows at once. Left without :meth:`commit`, nothing is written, and a file that is there stays.

    Parameters
    ----------
    path : path
        The file, as :func:`write_table` takes it.
    ending : str, optional
        The format, where the name of the file shall not say it.

    Raises
    ------
    OutputError
        If the name ends otherwise, or the file can't be written; also by each of the methods.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "rows.csv"
    ...     with TableWriter(file) as rows:
    ...         rows.append(pa.table({"page": [1, 2]}))
    ...         rows.append(pa.table({"page": [3]}))
    ...         rows.commit()
    ...     file.read_text().split()
    ['"page"', '1', '2', '3']
    """

    def __init__(self, path: str | os.PathLike[str], *, ending: str | None = None) -> None:
        self._path = Path(path)
        self._make = _format_of(self._path) if ending is None else _FORMATS[ending]
        self._format: _Format | None = None
        self._schema: pa.Schema | None = None
        self._waiting: pa.Table | None = None

    def __enter__(self) -> TableWriter:
        self._beside = write_beside(self._path)
        self._part: Path | None = self._beside.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._part is not None:
            if self._format is not None:
                # The file goes: what is wrong with its end is of no interest.
                with contextlib.suppress(Exception):
                    self._format.close(self._schema)
            self._discard()

    def append(self, table: pa.Table) -> None:
        """Add rows at the end.

        Parameters
        ----------
        table : pyarrow.Table
            The rows: of the same columns each time. The file gets the metadata that the last of them have.
        """
        import pyarrow as pa

        self._schema = table.schema
        table = table.unify_dictionaries()
        if self._waiting is not None:
            table = pa.concat_tables([self._waiting, table])
        rows = self._make.rows
        whole = table.num_rows - table.num_rows % rows
        for first in range(0, whole, rows):
            self._write(table.slice(first, rows))
        self._waiting = table.slice(whole)

    def commit(self) -> None:
        """Write what is left, and put the file in its place."""
        assert self._part is not None and self._waiting is not None, (
            "rows are appended, then committed"
        )
        if self._waiting.num_rows > 0 or self._format is None:
            self._write(self._waiting)
        assert self._format is not None
        with writing(self._path):
            is_final = self._format.close(self._schema)
        if is_final:
            self._part = None
            self._beside.__exit__(None, None, None)
            return
        with write_beside(self._path) as whole:
            _copy_arrow(self._part, whole, self._schema)
        self._discard()

    def _write(self, rows: pa.Table) -> None:
        assert self._part is not None
        with writing(self._path):
            if self._format is None:
                self._format = self._make(self._part, rows.schema)
            self._format.write(rows.combine_chunks())

    def _discard(self) -> None:
        self._part = None
        self._beside.__exit__(GeneratorExit, GeneratorExit(), None)


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table in the format that the name of the file ends in.

    Parameters
    ----------
    table : pyarrow.Table
        What to write.
    path : path
        The file, which appears once it is whole: ``.parquet``, ``.arrow`` or ``.feather`` (the same), ``.csv``, or
        ``.json`` (a list of rows). Cells that are lists are JSON text in CSV.

    Raises
    ------
    OutputError
        If the name ends otherwise, or the file can't be written.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "runs.csv"
    ...     write_table(pa.table({"label": ["a"], "merges": [[1, 2]]}), file)
    ...     print(file.read_text(), end="")
    "label","merges"
    "a","[1, 2]"
    """
    with TableWriter(path) as rows:
        rows.append(table)
        rows.commit()


def write_parquet(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table as Parquet, whatever the name of the file ends in.

    Parameters
    ----------
    table : pyarrow.Table
        What to write.
    path : path
        The file; it appears once it is whole.
    """
    with TableWriter(path, ending=".parquet") as rows:
        rows.append(table)
        rows.commit()


def check_table(path: Path, option: str) -> None:
    """Find out before a long run whether its table can be written.

    Parameters
    ----------
    path : Path
        The file to write; it is not changed here.
    option : str
        What names it, for messages.

    Raises
    ------
    OutputError
        If :func:`write_table` has no format for that name, or the file can't be written.
    """
    try:
        _format_of(path)
    except OutputError as error:
        raise OutputError(f"{option}: {error}", error.hint) from None
    check_writable(path)


class _Format(ABC):
    """A file in the making, whose tables have the columns of a schema."""

    rows: ClassVar[int] = _BATCH
    """Rows that are written at a time, in whatever portions they come."""

    @abstractmethod
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        pass

    @abstractmethod
    def write(self, table: pa.Table) -> None:
        """Add rows."""

    @abstractmethod
    def close(self, schema: pa.Schema) -> bool:
        """End the file, with the metadata of this schema if the format has any; false if it has others."""


class _Parquet(_Format):
    rows = _ROW_GROUP

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet

        self._writer = pyarrow.parquet.ParquetWriter(
            str(path), schema.remove_metadata(), compression="zstd", store_schema=False
        )

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=_ROW_GROUP)

    def close(self, schema: pa.Schema) -> bool:
        # As pyarrow stores it, but at the end of the file, where the metadata are known.
        stored = {"ARROW:schema": base64.b64encode(schema.serialize())}
        try:
            self._writer.add_key_value_metadata({**(schema.metadata or {}), **stored})
            self._writer.close()
        finally:
            # Else its finalizer tries again.
            self._writer.is_open = False
        return True


class _Arrow(_Format):
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = _arrow_writer(path, schema)

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, max_chunksize=_BATCH)

    def close(self, schema: pa.Schema) -> bool:
        self._writer.close()
        return bool(self._schema.equals(schema, check_metadata=True))


def _arrow_writer(path: Path, schema: pa.Schema) -> pa.RecordBatchFileWriter:
    import pyarrow as pa

    options = pa.ipc.IpcWriteOptions(compression="lz4", unify_dictionaries=True)
    return pa.ipc.new_file(str(path), schema, options=options)


def _copy_arrow(path: Path, to: Path, schema: pa.Schema | None) -> None:
    """Copy a file of Arrow, whose metadata stand at its beginning, with those of another schema."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as mapped, _arrow_writer(to, schema) as writer:
        reader = pa.ipc.open_file(mapped)
        for at in range(reader.num_record_batches):
            writer.write_batch(reader.get_batch(at))


class _Csv(_Format):
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.csv

        columns = _csv_columns(schema.empty_table()).schema
        self._writer = pyarrow.csv.CSVWriter(str(path), columns)

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(_csv_columns(table))

    def close(self, schema: pa.Schema) -> bool:
        self._writer.close()
        return True


def _csv_columns(table: pa.Table) -> pa.Table:
    """A table whose cells are text, numbers and truth values: CSV has no others."""
    import pyarrow as pa

    columns = {}
    for name, values in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(values.type):
            cells = (None if cell is None else json.dumps(cell) for cell in values.to_pylist())
            columns[name] = pa.array(list(cells), pa.string())
        elif pa.types.is_dictionary(values.type):
            columns[name] = values.cast(values.type.value_type)
        else:
            columns[name] = values
    return pa.table(columns)


class _Json(_Format):
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._file.write("[")
        self._between = "\n"

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                self._file.write(self._between + json.dumps(_plain_row(row)))
                self._between = ",\n"

    def close(self, schema: pa.Schema) -> bool:
        try:
            self._file.write("\n]\n")
        finally:
            self._file.close()
        return True


def _plain_row(row: Mapping[str, object]) -> dict[str, object]:
    """A row as JSON can hold it: what is no number is null there."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


_FORMATS: dict[str, type[_Format]] = {
    ".parquet": _Parquet,
    ".arrow": _Arrow,
    ".feather": _Arrow,
    ".csv": _Csv,
    ".json": _Json,
}


def _format_of(path: Path) -> type[_Format]:
    """The format that the name ends in."""
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise OutputError(
            f"found {str(path)!r}, expected a file whose name ends in {_ENDINGS}",
            "the ending says the format of the table",
        )
    return found


_ENDINGS = f"{', '.join(list(_FORMATS)[:-1])} or {list(_FORMATS)[-1]}"
