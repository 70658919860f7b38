"""A finished or running comparison in memory: what tables, figures and the report are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from schedgap.harness.rows import Name, Row
from schedgap.instances.schema import Instance


@dataclass
class Run:
    """Rows of one comparison with all that is needed to draw and reproduce them.

    Attributes
    ----------
    meta
        Content of ``run.json``: ``schema_version, command, started_utc, duration_s, versions`` (name → version),
        ``machine`` (name → text), ``limits`` (name → value), ``git_commit``.
    rows
        Sorted by instance, paper and order of registration.
    instances
        Instances by fingerprint.
    decisions
        Decisions by :attr:`~schedgap.harness.rows.Row.name`; methods without a verified decision are absent.
    traces
        Bound and incumbent over time: ``{instance, fingerprint, method, seed, limits, time_s, incumbent, bound}``.
    prices
        Prices that bounds come from, by :attr:`~schedgap.harness.rows.Row.name`, where a model gives them.
    """

    meta: dict[str, Any]
    rows: list[Row]
    instances: dict[str, Instance]
    decisions: Mapping[Name, Any] = field(default_factory=dict)
    traces: list[Mapping[str, Any]] = field(default_factory=list)
    prices: dict[Name, Any] = field(default_factory=dict)
