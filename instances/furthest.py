"""Which numbers of an instance are furthest apart, for messages that refuse them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from schedgap.instances.schema import Instance


def furthest(instance: Instance) -> str:
    """Return the field whose values are furthest apart, with the smallest and the largest and where they stand.

    Only positive numbers count. ``minibatch_ms goes from 1e-09 (job-0001, V100 x 1) to 1e+09 (job-0001, K80 x 1)``.
    """
    content = instance.model_dump(mode="json", exclude={"published", "schema_version", "name"})
    fields: dict[str, list[tuple[float, str]]] = {}
    for field, number, where in _numbers(content, "", ()):
        fields.setdefault(field, []).append((number, where))
    found = max(fields, key=lambda field: max(fields[field])[0] / min(fields[field])[0])
    (least, here), (most, there) = min(fields[found]), max(fields[found])
    return f"{found} goes from {least:g} ({here}) to {most:g} ({there})"


def _numbers(value: Any, field: str, where: tuple[str, ...]) -> Iterator[tuple[str, float, str]]:
    """Yield positive numbers with the field that they belong to and the names above them."""
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item, field, where)
    elif isinstance(value, dict):
        name = value.get("id") or value.get("name")
        within = (*where, str(name)) if name else where
        for key, item in value.items():
            # Keys with values by type are names themselves; those of records are fields.
            known = key.isidentifier() and key.islower()
            yield from _numbers(item, key if known else field, within if known else (*within, key))
    elif isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        yield field, float(value), ", ".join(where)
