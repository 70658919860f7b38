"""What all families share: the spec file, the registry, streams of random numbers, errors in one line."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_origin

import numpy as np
from pydantic import ValidationError

from schedgap.instances.arrays import Array
from schedgap.instances.canonical import describe
from schedgap.instances.errors import InstanceError, UnknownNameError
from schedgap.instances.registry import Registry, unknown
from schedgap.instances.schema import Instance, Name, Published, Record, Text, rule

Scalar = bool | int | float | str


class GeneratorSpec(Record):
    """Parameters that every family has; a family's own spec class adds its own."""

    family: Name
    seed: int = rule("a seed is a whole number, 0 or more", ge=0, default=1)


class SpecFile(Record):
    """A TOML (or JSON) document with a ``generator`` table.

    `published` holds for the table as it stands; an instance with other parameters has only those numbers that the
    paper states within ranges of them.
    """

    title: Text = ""
    source: Text = ""
    licence: Text = ""
    generator: Mapping[str, Any] = rule("a table of parameters, with the family of the generator")
    published: tuple[Published, ...] = ()


class Streams:
    """One stream of uniform random numbers per quantity, all from one master seed.

    A quantity's numbers depend only on the seed and its name. Families draw by inverse distribution
    functions, one number per item, so that the first n items are the same however many follow.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def uniform(self, quantity: str, n: int) -> Array:
        """Return the first `n` numbers, in [0, 1), of a quantity's stream."""
        key = [self.seed, zlib.crc32(quantity.encode())]
        return np.random.Generator(np.random.PCG64(key)).random(n)


@dataclass(frozen=True)
class Family:
    """A generator: the class of its specs, and the function that draws the parts of an instance.

    Parameters
    ----------
    id
        Value of ``family`` in a spec.
    spec
        Validated parameters.
    build
        ``build(spec, streams)`` returns fields of :class:`~schedgap.instances.schema.Instance` by name.
    """

    id: str
    spec: type[GeneratorSpec]
    build: Callable[[Any, Streams], Mapping[str, Any]]


FAMILIES: Registry[Family] = Registry("generator family")


def generate(
    document: Mapping[str, Any], overrides: Mapping[str, Scalar], name: str, where: str = "generator"
) -> Instance:
    """Draw the instance of a spec.

    Parameters
    ----------
    document
        The spec file: title, source, and a table ``generator``.
    overrides
        Parameters that replace those of the table (numbers, or text as in ``?load=1.2``). Published numbers, which are
        about the table's instance, are left out where one differs from the table and from what they are stated for.
    name
        Name of the instance (its first 200 characters).
    where
        Begins every error message.

    Raises
    ------
    InstanceError
        If a parameter is missing, of the wrong type or out of range, or if the instance would be too large.
    UnknownNameError
        If the family or a parameter is not known; the message names the nearest known ones.
    """
    file = parse(SpecFile, document, where)
    family = _family(file.generator, where)
    check_overrides(family.spec, overrides, where)
    table = {**file.generator, **{k: _number(v) for k, v in overrides.items()}}
    spec = parse(family.spec, table, where)
    try:
        parts = dict(family.build(spec, Streams(spec.seed)))
    except InstanceError as error:
        raise InstanceError(f"{where}: {error}") from None
    except ValidationError as error:
        raise InstanceError(f"{where}: {describe(error)}") from None
    changed = {key: value for key, value in table.items() if value != file.generator.get(key)}
    parts["published"] = tuple(entry for entry in file.published if _holds(entry, changed))
    try:
        return Instance(name=name[:200], title=file.title, source=file.source, licence=file.licence, **parts)
    except ValidationError as error:
        raise InstanceError(f"{where}: {describe(error)}") from None


def _holds(entry: Published, changed: Mapping[str, Any]) -> bool:
    """Return whether a published number is about the instance whose parameters were changed to these values."""
    return all(
        key in entry.within and isinstance(value, int | float) and entry.within[key][0] <= value <= entry.within[key][1]
        for key, value in changed.items()
    )


def _family(table: Mapping[str, Any], where: str) -> Family:
    wanted = str(table.get("family"))
    if wanted not in FAMILIES:
        raise UnknownNameError(f"{where}: {unknown(FAMILIES.kind, wanted[:60], FAMILIES.ids())}")
    return FAMILIES.get(wanted)


def parameters(spec: type[GeneratorSpec]) -> list[str]:
    """Return the names of the parameters that a reference may override: single numbers and words."""
    single = (int, float, bool, str)
    return [
        name
        for name, field in spec.model_fields.items()
        if name != "family" and (field.annotation in single or get_origin(field.annotation) is Literal)
    ]


def check_overrides(spec: type[GeneratorSpec], overrides: Mapping[str, Scalar], where: str) -> None:
    """Raise on the first override that is no parameter of the family."""
    allowed = parameters(spec)
    for key in overrides:
        if key not in allowed:
            raise UnknownNameError(f"{where}: {unknown('parameter', key, allowed)}")


def _number(value: Scalar) -> Scalar:
    """Read a number from the text of a reference; other text stays as it is, for validation to refuse."""
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


R = TypeVar("R", bound=Record)


def parse(model: type[R], data: Mapping[str, Any], where: str) -> R:
    """Validate plain data into a record, or raise one line that begins with `where`."""
    try:
        return model.model_validate_json(json.dumps(data))
    except ValidationError as error:
        raise InstanceError(f"{where}: {describe(error, model)}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InstanceError(f"{where}: {error}") from None
