"""What is written from the JSON Schema of a run: the page of all figures, and their types for Python."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

_NAME_OF_DEF = "#/$defs/"


def rows_of_figures(schema: Schema) -> Iterator[tuple[str, list[tuple[str, str, str, str]]]]:
    """The figures by section: the name of each section, and its rows of path, unit, meaning and when null.

    Parameters
    ----------
    schema : mapping
        Of a run.
    """
    plain, sections = [], []
    for name, figure in schema["properties"].items():
        inside = _section(schema, figure)
        if inside is None:
            plain.append(_row(name, figure))
        else:
            rows = [_row(name, figure, inside), *_rows(schema, name, inside)]
            sections.append((name, rows))
    yield "", plain
    yield from sections


def _rows(schema: Schema, path: str, section: Schema) -> Iterator[tuple[str, str, str, str]]:
    """A row for each figure of a section; figures that have the same inside are told once."""
    figures_by_reference: dict[str, list[tuple[str, Schema]]] = {}
    path += section.get("items_of", "")
    for name, figure in section["properties"].items():
        inside = _section(schema, figure)
        yield _row(f"{path}.{name}", figure, inside)
        if inside is not None:
            figures_by_reference.setdefault(str(_reference(figure)), []).append((name, inside))
    for found in figures_by_reference.values():
        names = ", ".join(name for name, _ in found)
        yield from _rows(
            schema, f"{path}.{names if len(found) == 1 else f'{{{names}}}'}", found[0][1]
        )


def _row(path: str, figure: Schema, inside: Schema | None = None) -> tuple[str, str, str, str]:
    meaning, null = _parts(figure.get("description") or (inside or {}).get("description", ""))
    return path, figure.get("unit", ""), meaning, null


def _parts(said: str) -> tuple[str, str]:
    """What a description says of meaning and count, and of when the figure is null."""
    text = re.sub(r"\s+", " ", said).strip()
    meaning, _, null = text.partition(" Null ")
    return meaning, null.rstrip(".")


def _reference(figure: Schema) -> str | None:
    """The name of the section that a figure is, or that its items are."""
    for each in (figure, *figure.get("anyOf", ()), figure.get("items", {})):
        if "$ref" in each:
            return str(each["$ref"]).removeprefix(_NAME_OF_DEF)
    return None


def _section(schema: Schema, figure: Schema) -> Schema | None:
    """What is inside a figure that is a section, or a list of sections."""
    name = _reference(figure)
    if name is None or "properties" not in (found := schema["$defs"][name]):
        return None
    return {**found, "items_of": "[]"} if "items" in figure else found


class _Types:
    """Python's types of a schema, as text."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.made: dict[str, str] = {}

    def text(self, root: str) -> str:
        """All of them, each after those that it uses."""
        for name, found in self.schema["$defs"].items():
            self._named(name, found)
        self._named(root, self.schema)
        return "\n\n".join(self.made.values())

    def _named(self, name: str, found: Schema) -> str:
        if name in self.made:
            return name
        self.made[name] = ""  # in its place before what it uses, where order does not matter
        if "properties" in found:
            self.made[name] = self._dictionary(name, found)
        else:
            meaning = _parts(found.get("description", ""))[0]
            said = f'\n"""{_wrapped(meaning, "")}"""' if meaning else ""
            kind = self._type(found, name)
            # What is no Literal names types that may stand below.
            shown = kind if re.fullmatch(r"Literal\[[^]]*\]", kind) else f"'{kind}'"
            self.made[name] = f"{name}: TypeAlias = {shown}{said}\n"
        return name

    def _dictionary(self, name: str, found: Schema) -> str:
        fields = {
            key: self._type(each, name + key.title()) for key, each in found["properties"].items()
        }
        meaning = _parts(found.get("description", "What this pace takes."))[0]
        if any(keyword.iskeyword(key) for key in fields):
            inside = "".join(f'        "{key}": {kind},\n' for key, kind in fields.items())
            return f'{name} = TypedDict(\n    "{name}",\n    {{\n{inside}    }},\n)\n"""{_wrapped(meaning, "")}"""\n'
        lines = [f'class {name}(TypedDict):\n    """{_wrapped(meaning, "    ")}"""\n']
        for key, each in found["properties"].items():
            said = re.sub(r"\s+", " ", each.get("description", "")).strip()
            about = f'\n    """{_wrapped(said, "    ")}"""' if said else ""
            lines.append(f"    {key}: {fields[key]}{about}")
        return "\n".join(lines) + "\n"

    def _type(self, found: Schema, name: str) -> str:
        if "$ref" in found:
            return str(found["$ref"]).removeprefix(_NAME_OF_DEF)
        if "const" in found:
            return f"Literal[{_literal(found['const'])}]"
        if "enum" in found:
            return f"Literal[{', '.join(_literal(each) for each in found['enum'])}]"
        for joined in ("anyOf", "oneOf"):
            if joined in found:
                return self._union(found[joined], name)
        kinds = found.get("type", "object")
        if isinstance(kinds, list):
            return " | ".join(self._type({**found, "type": kind}, name) for kind in kinds)
        if kinds == "array":
            items = found.get("items", found.get("prefixItems", [{}])[0])
            return f"list[{self._type(items, name)}]"
        if kinds == "object" and "properties" in found:
            return self._named(name, found)
        if kinds == "object":
            inner = found.get("additionalProperties", True)
            return f"dict[str, {self._type(inner, name) if isinstance(inner, dict) and inner else 'Any'}]"
        return {
            "integer": "int",
            "number": "float",
            "string": "str",
            "boolean": "bool",
            "null": "None",
        }[kinds]

    def _union(self, each: Iterable[Schema], name: str) -> str:
        kinds: list[str] = []
        literals: list[str] = []
        for one in each:
            inner = next(iter(one.get("properties", {"": None})), "")
            kind = self._type(one, name + str(inner).title())
            if kind.startswith("Literal["):
                literals.append(kind.removeprefix("Literal[").removesuffix("]"))
            else:
                kinds.append(kind)
        if literals:
            kinds.insert(0, f"Literal[{', '.join(literals)}]")
        return " | ".join(dict.fromkeys(kinds))


def types_of(schema: Schema, root: str) -> str:
    """The types of the JSON as Python has them: a ``TypedDict`` for each section.

    Parameters
    ----------
    schema : mapping
        Of a run.
    root : str
        The name of the whole.
    """
    return _Types(schema).text(root)


def _literal(value: object) -> str:
    return "None" if value is None else f'"{value}"'


def _wrapped(text: str, indent: str) -> str:
    """Text in lines of a page's width."""
    lines, line = [], indent + '"""'
    for word in text.split():
        if len(line) + len(word) + 1 > 115 and line.strip():
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}" if line.strip() and not line.endswith('"""') else line + word
    lines.append(line)
    return "\n".join(lines).removeprefix(indent + '"""')
