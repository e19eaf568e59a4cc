"""YAML that a person or a model wrote, read without trusting it.

``yaml.safe_load`` builds no foreign object, but it takes a few kilobytes of aliases for gigabytes, recurses
as deep as the text says and drops a key given twice in silence. Here each of these is noticed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

MAX_BYTES = 256 * 1024
MAX_DEPTH = 40
MAX_EXPANDED_NODES = 50_000
MAX_NUMBER_CHARS = 100

# libyaml's parser where it is there (every wheel has it): ten times as fast on the files read for each turn.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

KeyPath = tuple[str, ...]


class YamlError(Exception):
    """The text can't be read. ``line`` counts from 1; ``problem`` names what is wrong there."""

    def __init__(self, problem: str, line: int | None) -> None:
        super().__init__(problem if line is None else f"line {line}: {problem}")
        self.problem = problem
        self.line = line


@dataclass(frozen=True, slots=True)
class RepeatedKey:
    """A key given twice in one mapping; YAML lets the last one win. ``line`` is the later one's."""

    path: KeyPath
    line: int
    conflicting: bool


@dataclass(frozen=True, slots=True)
class Document:
    """``value`` is plain data; ``lines`` maps the path of every key (list items by index) to its line."""

    value: Any
    lines: dict[KeyPath, int] = field(default_factory=dict)
    repeated: tuple[RepeatedKey, ...] = ()

    def line(self, *path: str) -> int | None:
        """The line of ``path``, or of the nearest ancestor that has one."""
        for length in range(len(path), 0, -1):
            if (found := self.lines.get(path[:length])) is not None:
                return found
        return None


def load(data: bytes, *, limit: int = MAX_BYTES) -> Document:
    """Parse one YAML document. Raises YamlError, and nothing else, whatever ``data`` is."""
    if len(data) > limit:
        raise YamlError(f"the text is {len(data)} bytes long; at most {limit} are read", None)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise YamlError(f"byte {data[error.start]:#04x} is not UTF-8", line) from error
    if (odd := yaml.reader.Reader.NON_PRINTABLE.search(text)) is not None:
        line = text.count("\n", 0, odd.start()) + 1
        raise YamlError(f"character {odd[0]!a} is not allowed", line)
    try:
        return _parse(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not YAML"
        raise YamlError(problem, mark.line + 1 if mark else None) from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError, TypeError) as error:
        raise YamlError(
            f"a value can't be read ({type(error).__name__}: {str(error)[:100]})", None
        ) from error


@lru_cache(maxsize=128)
def load_small(data: bytes) -> Document:
    """``load`` for files that are read again for every turn; the result is shared, so don't change it."""
    return load(data)


def unshared(value: Any) -> Any:
    """A copy in which no two places share a mapping or list, as aliases make them."""
    if isinstance(value, dict):
        return {key: unshared(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unshared(item) for item in value]
    return value


def _line_of(event: yaml.Event) -> int | None:
    return None if event.start_mark is None else event.start_mark.line + 1


def _check_depth(text: str) -> None:
    """Refuse deep nesting while it is still a flat row of events; composing recurses."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise YamlError(f"nested deeper than {MAX_DEPTH} levels", _line_of(event))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _parse(text: str) -> Document:
    _check_depth(text)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return Document(None)
        _check_expansion(node)
        lines: dict[KeyPath, int] = {}
        repeated: list[RepeatedKey] = []
        _survey(node, (), lines, repeated)
        return Document(loader.construct_document(node), lines, tuple(repeated))
    finally:
        loader.dispose()


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _check_expansion(root: yaml.Node) -> None:
    """Refuse a document whose aliases, written out, are too many nodes or contain themselves."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: yaml.Node) -> int:
        known = sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in open_nodes or len(open_nodes) > MAX_DEPTH:
            raise yaml.MarkedYAMLError(
                problem="an alias contains itself or nests too deep", problem_mark=node.start_mark
            )
        if node.tag == "tag:yaml.org,2002:int" and len(node.value) > MAX_NUMBER_CHARS:
            raise yaml.MarkedYAMLError(  # Python refuses to print such a number again, wherever it turns up
                problem=f"a number of more than {MAX_NUMBER_CHARS} characters", problem_mark=node.start_mark
            )
        open_nodes.add(id(node))
        total = 1 + sum(size(child) for child in _children(node))
        open_nodes.discard(id(node))
        if total > MAX_EXPANDED_NODES:
            raise yaml.MarkedYAMLError(
                problem=f"aliases expand to more than {MAX_EXPANDED_NODES} values",
                problem_mark=node.start_mark,
            )
        sizes[id(node)] = total
        return total

    size(root)


def _survey(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int], repeated: list[RepeatedKey]) -> None:
    """Note the line of every key and the keys given twice."""
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*path, str(index))] = item.start_mark.line + 1
            _survey(item, (*path, str(index)), lines, repeated)
        return
    if not isinstance(node, yaml.MappingNode):
        return
    seen: dict[Hashable, yaml.Node] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "?"
        line = key_node.start_mark.line + 1
        identity = (key_node.tag, key)
        if identity in seen and isinstance(key_node, yaml.ScalarNode):
            conflicting = _signature(seen[identity]) != _signature(value_node)
            repeated.append(RepeatedKey((*path, key), line, conflicting))
        seen[identity] = value_node
        lines[(*path, key)] = line
        _survey(value_node, (*path, key), lines, repeated)


def _signature(node: yaml.Node) -> Any:
    """What a node says, apart from where it stands."""
    if isinstance(node, yaml.MappingNode):
        return (node.tag, tuple((_signature(key), _signature(value)) for key, value in node.value))
    if isinstance(node, yaml.SequenceNode):
        return (node.tag, tuple(_signature(item) for item in node.value))
    return (node.tag, node.value)
