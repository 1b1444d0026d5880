"""Results of studies in compact files: one Parquet file a study, read and written as documents.

A document is what a study's program works with: its own attributes, and a list of drives with a row for each parameter.
In the file each row is a line, with the drive's attributes and the document's beside it, so that any program reads it
as a table. Sentences that say why a verdict was given stay out: the program says them again. Values of several types
stand as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["load", "load_rows", "save", "save_rows", "sets"]

_SET = "set"
# Sentences; half of the bytes of a result, and nothing reads them.
_PROSE = ("why",)
_DOCUMENT = b"flashwright.documents"


def sets(path: Path) -> list[str]:
    """The sets of drives in a file; none where there is no file."""
    return list(json.loads(pq.read_schema(path).metadata[_DOCUMENT])) if path.exists() else []


def load(path: Path, which: str) -> dict[str, Any]:
    """The document of one set of drives.

    Parameters
    ----------
    path : Path
        A file of :func:`save`.
    which : str
        The set.

    Returns
    -------
    dict
        The document's attributes and ``drives``, each with its attributes and ``rows`` by parameter.

    Raises
    ------
    KeyError
        If the file has no such set.
    """
    table = pq.read_table(path)
    document: dict[str, Any] = json.loads(table.schema.metadata[_DOCUMENT])[which]
    drives: dict[str, dict[str, Any]] = {}
    for line in table.to_pylist():
        if line.pop(_SET) == which:
            drive = drives.setdefault(line["of_drive"], json.loads(line["of_drive"]) | {"rows": {}})
            drive["rows"][line["parameter"]] = {
                name.removeprefix("row."): json.loads(cell)
                for name, cell in line.items()
                if name.startswith("row.") and cell is not None
            }
    return document | {"drives": list(drives.values())}


def save(path: Path, which: str, document: Mapping[str, Any]) -> None:
    """Write the document of one set beside the others of the file.

    Parameters
    ----------
    path : Path
        A file that is made, or in which the set is replaced.
    which : str
        The set.
    document : mapping
        As :func:`load` returns it.
    """
    kept: list[dict[str, Any]] = []
    documents: dict[str, Any] = {}
    if path.exists():
        table = pq.read_table(path)
        kept = [line for line in table.to_pylist() if line[_SET] != which]
        documents = json.loads(table.schema.metadata[_DOCUMENT])
    documents[which] = {name: value for name, value in document.items() if name != "drives"}
    for drive in document["drives"]:
        of_drive = _text({name: value for name, value in drive.items() if name != "rows"})
        for parameter, row in drive["rows"].items():
            cells = {f"row.{name}": _text(cell) for name, cell in row.items() if name not in _PROSE}
            kept.append({_SET: which, "of_drive": of_drive, "parameter": parameter} | cells)
    names = dict.fromkeys(name for line in kept for name in line)
    table = pa.table(
        {name: pa.array([line.get(name) for line in kept], pa.string()) for name in names}
    )
    table = table.replace_schema_metadata({_DOCUMENT: json.dumps(documents)})
    pq.write_table(table, path, compression="zstd", compression_level=19)


def load_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a file of :func:`save_rows`."""
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return [{name: cell for name, cell in row.items() if cell is not None} for row in rows]


def save_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write flat or nested rows; a cell that a row lacks is null."""
    table = pa.Table.from_pylist([dict(row) for row in rows])
    pq.write_table(table, path, compression="zstd", compression_level=19)


def _text(cell: object) -> str:
    return json.dumps(cell, separators=(",", ":"))
