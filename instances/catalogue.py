"""Loading instances by reference.

A reference is ``gen/<spec>`` (a seeded generator), ``paper/<example>`` (a worked example), ``worst/<name>`` (the worst
instance found for an algorithm), ``family/<name>`` (a worst case with a parameter), or the path of a ``.json`` or
``.toml`` file that holds an instance or a generator spec. ``?key=value&…`` overrides parameters of a generator.
``slot_s`` also works on other instances and preserves the end of the horizon.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from pydantic import ValidationError

from schedgap.instances import (
    canonical,
    families,  # noqa: F401 -- they register what they define
)
from schedgap.instances.errors import InstanceError, UnknownNameError, UsageError
from schedgap.instances.generate import generate
from schedgap.instances.generate.core import GeneratorParameter, Scalar, described, number, usual_of
from schedgap.instances.generate.workload import slots_until
from schedgap.instances.parameters import extended, pairs
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Horizon, Instance

KINDS = ("gen", "paper", "worst", "family")
"""First parts of references; each is a folder inside this package."""

SUFFIXES = (".json", ".toml")
"""Suffixes of instance files."""

MAX_REFERENCE = 4096
"""Longest reference in characters, the limit for paths."""

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Characters that could fool a terminal; no reference needs one."""

MAX_BASES = 8
"""Longest chain of ``base`` keys; a longer one is a mistake or a cycle."""


class CatalogueEntry(NamedTuple):
    """One line of ``harness list instances``."""

    ref: str
    kind: str
    title: str


def known() -> list[CatalogueEntry]:
    """Return an entry for each packaged instance, in the order of :func:`references`."""
    return [
        CatalogueEntry(ref, ref.partition("/")[0], str(_packaged(*ref.split("/")).get("title", "")))
        for ref in references()
    ]


def references() -> list[str]:
    """Return the references of all packaged instances, generators first."""
    return [f"{kind}/{name}" for kind in KINDS for name in _files(kind)]


def load(ref: str | Path | Instance, overrides: Mapping[str, Scalar] | None = None) -> Instance:
    """Load the instance that `ref` names.

    Parameters
    ----------
    ref
        ``gen/200jobs?load=1.2&seed=7``, ``paper/oef-eq1``, the path of a file, or an instance.
    overrides
        Parameters as in ``?key=value``; they take precedence over those of the reference.

    Raises
    ------
    UnknownNameError
        If there is no such instance or parameter; the message suggests the closest names.
    InstanceError
        If a file cannot be read, or the instance is malformed or contradicts itself.
    TypeError
        If `ref` is none of these.
    """
    if isinstance(ref, Instance):
        return _with_slots(ref, dict(overrides or {}), ref.name)
    if not isinstance(ref, str | Path):
        raise TypeError(f"an instance reference is a string such as 'gen/200jobs' or a path, not {type(ref).__name__}")
    target, stated = _split(ref)
    changes: dict[str, Scalar] = {**stated, **(overrides or {})}
    document, name = _document(target)
    if "generator" in document:
        return generate(document, changes, name=labelled(name, changes), where=labelled(target, changes))
    read = canonical.validate({"name": name, **document}, where=target)
    if target != read.name and borrowed(read):  # a headline would be about the packaged instance
        read = read.model_copy(update={"name": name})
    return _with_slots(read, changes, target)


def parameters(ref: str | Path) -> list[GeneratorParameter]:
    """Return the parameters of a generated instance with their values and ranges; an instance of a file has none.

    It raises what :func:`load` raises.
    """
    target, changes = _split(ref)
    document, _ = _document(target)
    return described(document, changes, labelled(target, changes)) if "generator" in document else []


def _split(ref: str | Path) -> tuple[str, dict[str, Scalar]]:
    """Return the target of a reference and its overrides.

    The whole string may be the path of a file whose name contains a question mark.
    """
    if len(str(ref)) > MAX_REFERENCE or CONTROL.search(str(ref)):
        shown = f"{str(ref)[:60]!r}"
        raise UnknownNameError(f"{shown}: a reference is one line of at most {MAX_REFERENCE} characters")
    target, _, query = (str(ref), "", "") if isinstance(ref, Path) or os.path.exists(ref) else ref.partition("?")
    return target, {**pairs(query, repr(str(ref)), "?load=1.2&seed=7", InstanceError)} if query else {}


def namesake(instance: Instance) -> Instance | None:
    """Return the packaged instance with the name of an instance, whatever its content, or ``None``."""
    return _named(instance.name) if instance.name.partition("/")[0] in KINDS else None


@lru_cache(64)
def _named(name: str) -> Instance | None:
    with suppress(UsageError):
        return load(name)
    return None


def borrowed(instance: Instance) -> bool:
    """Return whether an instance has the name of another one, which comes with the package."""
    other = namesake(instance)
    return other is not None and other.fingerprint != instance.fingerprint


def settings(name: str) -> dict[str, Scalar]:
    """Return the parameters that a name states, of an instance or a method: ``{"load": 1.2}`` of ``gen/a?load=1.2``."""
    query = name.partition("?")[2]
    with suppress(InstanceError):  # a file's name may have a question mark
        return {key: number(value) for key, value in pairs(query, name, "", InstanceError).items()} if query else {}
    return {}


def usual(name: str, parameter: str) -> Scalar | None:
    """Return the default of a parameter of a generated instance, or ``None`` if the instance has no such parameter."""
    target = name.partition("?")[0]
    kind, _, file = target.partition("/")
    document = _packaged(kind, file) if kind in KINDS and file in _files(kind) else {}
    return usual_of(document, parameter) if "generator" in document else None


def labelled(name: str, changes: Mapping[str, Scalar]) -> str:
    """Return the display name of an instance: `name`, then its overrides in alphabetical order."""
    text = "&".join(f"{_quoted(key)}={_quoted(changes[key])}" for key in sorted(changes))
    return extended(name, text)


def _quoted(value: Scalar) -> str:
    """Return a key or value as a reference writes it, with special and invisible characters percent-encoded."""
    return quote(str(value), safe="+,")


def _document(target: str) -> tuple[dict[str, Any], str]:
    """Return the document that `target` names (a reference without overrides), and the name of its instance."""
    kind, _, name = target.partition("/")
    if kind in KINDS and ".." in name.split("/"):
        raise UnknownNameError(f"{target!r}: a reference must not contain '..'; begin a path with ./ or /")
    if kind in KINDS and name in _files(kind):
        return _packaged(kind, name), target
    if os.path.isdir(target):
        raise InstanceError(f"{target}: a folder, not a file")
    suffix = Path(target).suffix.lower()
    if os.path.exists(target) or suffix in SUFFIXES or (suffix and os.sep in target and kind not in KINDS):
        return _inherit(canonical.read_mapping(Path(target)), None, target), Path(target).stem[:200]
    raise UnknownNameError(unknown("instance", target, references()))


@cache
def _files(kind: str) -> dict[str, Traversable]:
    """Return the files of a kind by name in natural order: ``50jobs`` before ``200jobs``, numbers before words."""
    folder = resources.files("schedgap.instances").joinpath(kind)
    files = folder.iterdir() if folder.is_dir() else ()
    by_name = {Path(f.name).stem: f for f in files if f.name.endswith(SUFFIXES)}

    def natural(name: str) -> list[tuple[bool, int, str]]:
        parts = re.findall(r"\d+|\D+", name)
        return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]

    return {name: by_name[name] for name in sorted(by_name, key=natural)}


def _packaged(kind: str, name: str) -> dict[str, Any]:
    """Return the document of a packaged file, merged with its bases."""
    return _inherit(_parsed(_files(kind)[name]), kind, f"{kind}/{name}")


def _parsed(file: Traversable) -> dict[str, Any]:
    parse: Callable[[str], dict[str, Any]] = json.loads if file.name.endswith(".json") else tomllib.loads
    return parse(file.read_text("utf-8"))


def _inherit(document: dict[str, Any], kind: str | None, where: str, depth: int = 0) -> dict[str, Any]:
    """Merge a document into the packaged one that its ``base`` names (in the same folder, or as ``paper/oef-eq1``).

    Tables are merged, other values replaced. Published numbers are not inherited, since they are about the base.
    """
    base = document.pop("base", None)
    if base is None:
        return document
    text = str(base) if "/" in str(base) or kind is None else f"{kind}/{base}"
    base_kind, _, name = text.partition("/")
    if base_kind not in KINDS or name not in _files(base_kind):
        raise UnknownNameError(f"{where}: {unknown('base', text[:200], references())}")
    if depth >= MAX_BASES:
        raise InstanceError(f"{where}: a chain of more than {MAX_BASES} bases; is {text} its own base?")
    below = _inherit(_parsed(_files(base_kind)[name]), base_kind, where, depth + 1)
    below.pop("published", None)
    return _merged(below, document)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _with_slots(instance: Instance, changes: dict[str, Scalar], where: str) -> Instance:
    """Return the instance with another slot length and a horizon that ends no earlier than before."""
    if not changes:
        return instance
    if set(changes) != {"slot_s"}:
        other = next(key for key in changes if key != "slot_s")
        raise InstanceError(
            f"{where}: {other!r} cannot be overridden; an instance without a generator takes only slot_s"
        )
    if instance.horizon is None:
        raise InstanceError(f"{where}: slot_s cannot be overridden: the instance has no horizon")
    try:
        slot_s = float(changes["slot_s"])
    except ValueError:
        slot_s = 0.0
    if not 0 < slot_s < float("inf"):
        raise InstanceError(f"{where}: slot_s = {_quoted(changes['slot_s'])}: a slot has a positive length in seconds")
    horizon = Horizon(slot_s=slot_s, slots=slots_until(instance.horizon.end_s, slot_s))
    fields = {name: getattr(instance, name) for name in Instance.model_fields}
    try:
        return Instance(**{**fields, "horizon": horizon, "name": labelled(instance.name, changes)[:200]})
    except ValidationError as error:
        raise InstanceError(f"{where}: {canonical.describe(error)}") from None
