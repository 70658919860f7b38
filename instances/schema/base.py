"""Building blocks of the schema: strict immutable records, names, and rules that errors can quote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_serializer
from pydantic_core import PydanticCustomError

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
Text = Annotated[str, StringConstraints(max_length=4000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$")]
FRACTION = re.compile(r"[+-]?[0-9]{1,15}(/0*[1-9][0-9]{0,14})?", re.ASCII)
"""Fractions that :func:`fraction` reads; no exponents, since ``1e999999999`` as a fraction would fill the memory."""


def rule(what_is_right: str, **constraints: Any) -> Any:
    """Return a pydantic field whose validation error says `what_is_right`.

    Parameters
    ----------
    what_is_right
        Sentence shown after the offending value.
    **constraints
        Passed to :func:`pydantic.Field` (``gt``, ``ge``, ``default``, …).
    """
    return Field(json_schema_extra={"rule": what_is_right}, **constraints)


def fraction(value: Any) -> Any:
    """Convert ``"54/13"`` to a float, also within lists; other values pass unchanged (pydantic then validates them)."""
    if isinstance(value, str) and FRACTION.fullmatch(value):
        return float(Fraction(value))
    if isinstance(value, list | tuple):
        return tuple(fraction(item) for item in value)
    return value


def violation(path: str, value: object, what_is_right: str) -> PydanticCustomError:
    """Return the error for a violated rule that concerns several fields."""
    return PydanticCustomError(
        "consistency", "{path} = {value}: {rule}", {"path": path, "value": str(value)[:80], "rule": what_is_right}
    )


class Record(BaseModel):
    """Base of all records: immutable, without unknown fields, NaN, infinity or silent conversions."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, strict=True, ignored_types=(cached_property,)
    )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values of some fields.

        Cached properties are not copied: a changed instance with the old fingerprint would get the old instance's
        views.
        """
        copy = super().model_copy(update=update, deep=deep)
        for derived in copy.__dict__.keys() - type(self).model_fields.keys():
            del copy.__dict__[derived]
        return copy


class Variant(Record):
    """Base of the alternatives of a field; `kind` identifies them and is therefore written even at its default."""

    kind: str

    @model_serializer(mode="wrap")
    def _with_kind(self, write: Any) -> dict[str, Any]:
        return {"kind": self.kind, **write(self)}


Numbers = Annotated[tuple[tuple[float, ...], ...] | tuple[float, ...] | float, BeforeValidator(fraction)]
