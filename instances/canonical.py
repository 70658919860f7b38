"""Reading and writing instances: JSON and TOML in, canonical JSON out, one-line errors."""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.schema import Instance
from schedgap.instances.schema.columns import JobTable
from schedgap.instances.schema.content import Content, texts

R = TypeVar("R", bound=BaseModel)

MAX_FILE_MB = 256
"""Larger files are rejected unread; to raise the limit, set ``schedgap.instances.canonical.MAX_FILE_MB``."""

MOST_LISTED = 100_000
"""Most jobs of a log that a file lists one by one."""

TEMPORARY = ".partial"
"""Suffix of files that are being written."""

MAX_KEY_PARTS = 100
"""Most parts of a dotted TOML key; ``tomllib`` takes time quadratic in their number."""

# Quantifiers are possessive, and an unterminated quote counts as a part, so that searching takes linear time.
_KEY_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"?+|'[^'\n]*+'?+)"""
_LONG_KEY = re.compile(rf"{_KEY_PART}(?:[ \t]*+\.[ \t]*+{_KEY_PART}){{{MAX_KEY_PARTS}}}")
_KEY = re.compile(rf"{_KEY_PART}(?:[ \t]*+\.[ \t]*+{_KEY_PART})*+")


def to_json(instance: Instance) -> str:
    """Return the instance as canonical JSON (:func:`texts`), without fields at their defaults.

    More than :data:`MOST_LISTED` jobs of a log are written as columns, in a third of the space.
    """
    return "".join(texts(instance.plain, columns=len(instance.jobs) > MOST_LISTED)) + "\n"


def write(instance: Instance, path: str | Path) -> None:
    """Write canonical JSON to `path` atomically; raise `UsageError` if the file cannot be written."""
    try:
        write_atomically(Path(path), to_json(instance).encode())
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by a file with `content`, which is synced to disk before it gets its name."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=TEMPORARY)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # name the user's file, not the temporary
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: str | Path) -> Instance:
    """Read an instance from a ``.json`` or ``.toml`` file.

    It raises `InstanceError` if the file is missing, too large, not JSON or TOML, or not a valid instance. The message
    names the file, the field and its value, and says what would be right.
    """
    return validate(read_mapping(Path(path)), where=str(path))


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a JSON object or TOML document without validating it (errors as in :func:`read`)."""
    suffix = path.suffix.lower()
    if suffix not in {".json", ".toml"}:
        raise InstanceError(f"{path}: an instance file ends in .json or .toml; import traces with: harness import")
    content = read_bytes(path)
    try:
        data = json.loads(content, object_pairs_hook=_unique_keys) if suffix == ".json" else _toml(content.decode())
    except UnicodeDecodeError as error:
        raise InstanceError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except (ValueError, RecursionError) as error:
        raise InstanceError(f"{path}: not valid {suffix[1:].upper()}: {one_line(error)}") from error
    if not isinstance(data, dict):
        raise InstanceError(f"{path}: it must be an object with fields, not a {type(data).__name__}")
    return data


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, or raise `ValueError` if a key occurs twice: ``json`` would silently drop one value."""
    data = dict(pairs)
    if len(data) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {_plain(repr(key))} occurs twice")
    return data


def _toml(text: str) -> dict[str, Any]:
    for key in _KEY.finditer(text):
        if key[0].count(".") >= MAX_KEY_PARTS and _LONG_KEY.match(key[0]):
            line = text.count("\n", 0, key.start()) + 1
            raise ValueError(f"line {line}: a key has at most {MAX_KEY_PARTS} parts")
    return tomllib.loads(text)


def read_bytes(path: Path) -> bytes:
    """Return the content of a user's file, or raise `InstanceError` with one line that says why it cannot be read."""
    try:
        return _content(path)
    except FileNotFoundError as error:
        raise InstanceError(f"{path}: no such file") from error
    except InstanceError:
        raise
    except (OSError, ValueError) as error:
        raise InstanceError(f"{path}: cannot be read: {one_line(error)}") from error


def _content(path: Path) -> bytes:
    """Return the content of a regular file; pipes and devices are rejected, since they may never end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        folder = stat.S_ISDIR(status.st_mode)
        raise InstanceError(f"{path}: {'a folder, not a file' if folder else 'not a regular file'}")
    max_bytes = MAX_FILE_MB * 1_000_000
    limit = f"more than the limit of {MAX_FILE_MB} MB (instances.canonical.MAX_FILE_MB)"
    if status.st_size > max_bytes:
        raise InstanceError(f"{path}: {status.st_size / 1e6:.0f} MB is {limit}")
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:  # the file has grown since, or reports a wrong size
        raise InstanceError(f"{path}: {limit}")
    return content


def validate(data: Mapping[str, Any], where: str) -> Instance:
    """Validate plain data (as read from JSON or TOML) into an instance; `where` begins the error message.

    Its jobs are a list, or columns (:mod:`schedgap.instances.schema.columns`).
    """
    columns = data.get("jobs")
    if not isinstance(columns, Mapping):
        return parse(Instance, data, where)
    rest = parse(Content, {name: value for name, value in data.items() if name != "jobs"}, where)
    try:
        return Instance(**{**dict(rest), "jobs": JobTable.validated(columns)})
    except ValidationError as error:
        raise InstanceError(f"{where}: {describe(error)}") from None
    except PydanticCustomError as error:
        raise InstanceError(f"{where}: {error.message()}") from None


def parse(model: type[R], data: Mapping[str, Any], where: str) -> R:
    """Validate plain data into a record, or raise `InstanceError` with one line that begins with `where`."""
    try:
        return model.model_validate_json(json.dumps(data))
    except ValidationError as error:
        raise InstanceError(f"{where}: {describe(error, model)}") from None
    except TypeError as error:
        raise InstanceError(f"{where}: {next(_non_json(data), one_line(error))}") from error
    except (ValueError, RecursionError) as error:
        raise InstanceError(f"{where}: {one_line(error)}") from error


def _non_json(value: object, path: str = "") -> Iterator[str]:
    """Yield a message for each value that JSON cannot represent, such as TOML's dates."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _non_json(item, f"{path}.{_plain(str(key))}" if path else _plain(str(key)))
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _non_json(item, f"{path}[{i}]")
    elif not isinstance(value, str | int | float | None):
        kind = type(value).__name__
        yield f"{path} = {_plain(str(value))}: a {kind} is neither text (in quotes) nor a number"


def describe(error: ValidationError, model: type[BaseModel] = Instance) -> str:
    """Return a pydantic error as one line: field, value, what would be right, and the number of further errors."""
    details = error.errors(include_url=False)
    # Drop errors that follow from others: a list counts as "too short" after its items have failed.
    within = {d["loc"][:n] for d in details for n in range(len(d["loc"]))}
    details = [d for d in details if d["type"] != "too_short" or d["loc"] not in within]
    first = details[0]
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    path, wanted = _locate(model, first["loc"])
    if first["type"] == "consistency":
        return f"{path}.{first['msg']}{more}" if path else first["msg"] + more
    if first["type"] == "string_pattern_mismatch":
        wanted = "text without control characters"
    if first["type"] == "missing":
        return f"{path}: missing{': ' + wanted if wanted else ''}{more}"
    if first["type"] == "extra_forbidden":
        return f"{path}: unknown field{more}"
    if first["type"] == "json_invalid":
        return first["msg"] + more
    value = repr(first["input"]) if isinstance(first["input"], float) else shown(first["input"])
    said = first["msg"]
    return f"{path} = {value}: {wanted or said[:1].lower() + said[1:]}{more}"


def _locate(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[str, str]:
    """Return the path of a field (``jobs[17].gpus``) and the rule declared for it."""
    path, wanted = "", ""
    annotation: Any = model
    for part in loc:
        records = list(_records_in(annotation))
        if isinstance(part, int):
            path += f"[{part}]"
        elif len(records) > 1 and part in map(_tag, records):
            annotation = next(record for record in records if _tag(record) == part)
        elif field := next((r.model_fields[part] for r in records if part in r.model_fields), None):
            path += f".{part}" if path else part
            extra = field.json_schema_extra
            wanted = str(extra.get("rule", "")) if isinstance(extra, dict) else ""
            annotation = field.annotation
        elif part != "[key]" and (records or "Mapping" in str(annotation)):
            path += f".{_plain(part)}" if path else _plain(part)
    return path, wanted


def _records_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield all record classes in an annotation (``tuple[Job, ...]``, unions)."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    else:
        for argument in get_args(annotation):
            yield from _records_in(argument)


def _tag(record: type[BaseModel]) -> object:
    """Return the value of ``kind`` that identifies a record in a union, ``None`` for other records."""
    return record.model_fields["kind"].default if "kind" in record.model_fields else None


def _plain(key: str) -> str:
    """Return an untrusted key on one line, without control characters, at most 60 characters long."""
    text = key if key.isprintable() else repr(key)
    return text if len(text) <= 60 else text[:59] + "…"


def shown(value: object) -> str:
    """Return an untrusted value for a message: as JSON on one line, at most 60 characters long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "…"


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line, at most 200 characters long."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:200]
