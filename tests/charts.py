"""Helpers that read charts: the records of their data, and what their encodings say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from schedgap.harness.show.figure import Drawing, plain_spec


def spec_of(chart: Any) -> dict[str, Any]:
    """Return the Vega-Lite specification of a drawing, of a chart, or of a pair of chart and caption."""
    if isinstance(chart, Drawing):
        return chart.spec
    return plain_spec(chart[0] if isinstance(chart, tuple) else chart)


def records(chart: Any, **where: Any) -> list[dict[str, Any]]:
    """Return the records in all data sets of a chart whose fields have the values `where`."""
    found = [record for data in spec_of(chart)["datasets"].values() for record in data]
    return [record for record in found if all(record.get(key) == value for key, value in where.items())]


def record(chart: Any, **where: Any) -> dict[str, Any]:
    """Return the only record of a chart whose fields have the values `where`."""
    (found,) = records(chart, **where)
    return found


def texts(chart: Any) -> str:
    """Return a chart's specification as text, for tests that look for words in it."""
    return json.dumps(spec_of(chart), ensure_ascii=False)


def channels(chart: Any, name: str) -> Iterator[dict[str, Any]]:
    """Yield the definitions of an encoding channel in all layers."""
    pending: list[Any] = [spec_of(chart)]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if isinstance(node.get("encoding", {}).get(name), dict):
                yield node["encoding"][name]
            pending += [value for key, value in node.items() if key != "datasets"]
        elif isinstance(node, list):
            pending += node


def scale_of(chart: Any, channel: str) -> dict[str, Any]:
    """Return the first scale that a chart gives to an encoding channel."""
    found = [{**each, **each.get("condition", {})} for each in channels(chart, channel)]
    return next((each["scale"] for each in found if each.get("scale")), {})


def panels(chart: Any) -> list[str]:
    """Return the titles of a chart's panels, in order."""
    spec = spec_of(chart)
    facet = spec.get("facet", {})
    return list(facet.get("row", facet).get("sort", []))
