"""Tables as files, in the format that the name of the file ends in."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from flashwright.errors import OutputError
from flashwright.support.files import check_writable, write_beside

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_table", "write_parquet", "write_table"]


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
    target = Path(path)
    write = _writer(target)
    with write_beside(target) as part:
        write(table, part)


def write_parquet(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table as Parquet, whatever the name of the file ends in.

    Parameters
    ----------
    table : pyarrow.Table
        What to write.
    path : path
        The file; it appears once it is whole.
    """
    with write_beside(Path(path)) as part:
        _write_parquet(table, part)


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
        _writer(path)
    except OutputError as error:
        raise OutputError(f"{option}: {error}", error.hint) from None
    check_writable(path)


def _write_parquet(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, str(path), compression="zstd")


def _write_arrow(table: pa.Table, path: Path) -> None:
    import pyarrow.feather

    pyarrow.feather.write_feather(table, str(path), compression="lz4")


def _write_csv(table: pa.Table, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.csv

    columns = {}
    for name, values in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(values.type):
            cells = (None if cell is None else json.dumps(cell) for cell in values.to_pylist())
            columns[name] = pa.array(list(cells), pa.string())
        elif pa.types.is_dictionary(values.type):
            columns[name] = values.cast(values.type.value_type)
        else:
            columns[name] = values
    pyarrow.csv.write_csv(pa.table(columns), str(path))


def _write_json(table: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        between = "\n"
        for batch in table.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                file.write(between + json.dumps(_plain_row(row)))
                between = ",\n"
        file.write("\n]\n")


def _plain_row(row: Mapping[str, object]) -> dict[str, object]:
    """A row as JSON can hold it: what is no number is null there."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


_WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
    ".csv": _write_csv,
    ".json": _write_json,
}


def _writer(path: Path) -> Callable[[pa.Table, Path], None]:
    """What writes the format that the name ends in."""
    found = _WRITERS.get(path.suffix.lower())
    if found is None:
        raise OutputError(
            f"found {str(path)!r}, expected a file whose name ends in {_ENDINGS}",
            "the ending says the format of the table",
        )
    return found


_ENDINGS = f"{', '.join(list(_WRITERS)[:-1])} or {list(_WRITERS)[-1]}"
