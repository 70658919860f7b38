"""Summaries of an instance for people: sizes, load, arrivals, sources."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from schedgap.instances.schema.content import Content
from schedgap.instances.text import amount, counted, some, unit_of

MAX_LISTED = 6
"""Most items that a list names; the rest is counted."""


def describe(instance: Content) -> list[tuple[str, str]]:
    """Return facts about the instance as pairs (label, text) in display order; ``derived`` has several lines."""
    cluster, jobs, horizon = instance.cluster, instance.jobs, instance.horizon
    totals = [amount(count, name) for name, count in cluster.gpus_by_type.items()]
    unit = unit_of(cluster.gpus_by_type)
    total = counted(cluster.gpus, unit)
    gangs = [f"{n} of {counted(size, unit)}" for size, n in sorted(Counter(job.gpus for job in jobs).items())]
    types = f"worker types: {len(instance.worker_types)}, PS types: {len(instance.ps_types)}"
    fluid = load(instance)
    times = [job.submit_s for job in jobs] or [0.0]
    first, last = min(times), max(times)
    arrivals = f"from {_duration(first)} to {_duration(last)}" if last > first else f"all at {_duration(first)}"
    facts = [
        ("instance", instance.name),
        ("title", instance.title),
        ("cluster", total if totals == [total] else f"{total}: {some(totals, MAX_LISTED)}"),
        ("servers", _servers(instance)),
        ("tenants", _tenants(instance)),
        ("jobs", _jobs(instance)),
        ("arrivals", arrivals if jobs else ""),
        (
            "load",
            f"{fluid:.2f} of the average {unit}s, from the start to the last arrival" if fluid is not None else "",
        ),
        ("gangs", some(gangs, MAX_LISTED)),
        ("models", _named(Counter(job.model for job in jobs if job.model))),
        ("workers and parameter servers", types if instance.worker_types or instance.ps_types else ""),
        ("horizon", f"{horizon.slots} slots of {horizon.slot_s:g} s ({_duration(horizon.end_s)})" if horizon else ""),
        ("published", _named(Counter(p.method for p in instance.published))),
        ("source", instance.source),
        ("licence", instance.licence),
        ("derived", "\n".join(instance.derived)),
        ("fingerprint", instance.fingerprint),
    ]
    return [(label, text) for label, text in facts if text]


def to_html(instance: Content) -> str:
    """Return the facts as an HTML table with multi-line texts folded; texts are escaped, since they are untrusted."""
    rows = ""
    for label, text in describe(instance):
        lines = [html.escape(line) for line in text.splitlines()]
        folded = f"<details><summary>{len(lines)} lines</summary>{'<br>'.join(lines)}</details>"
        cell = lines[0] if len(lines) == 1 else folded
        rows += f"<tr><th style='text-align:left;vertical-align:top'>{html.escape(label)}</th>"
        rows += f"<td style='text-align:left'>{cell}</td></tr>"
    return f"<table>{rows}</table>"


def load(instance: Content) -> float | None:
    """Return the fluid load: work in GPU-seconds of the average GPU, divided by the GPU-seconds up to the last arrival.

    A job's rate on the average GPU is the mean of its rates weighted by GPUs. The result is ``None`` if jobs have no
    rates or all arrive at once.
    """
    totals = instance.cluster.gpus_by_type
    work_s = 0.0
    for job in instance.jobs:
        gpus = sum(totals[r] for r, rate in job.rates.items() if rate > 0)
        speed = sum(totals[r] * rate for r, rate in job.rates.items())
        work_s += job.iterations * gpus / speed if speed > 0 else 0.0
    times = [job.submit_s for job in instance.jobs]
    if not work_s or max(times) == min(times):
        return None
    return work_s / (instance.cluster.gpus * max(times))


def _servers(instance: Content) -> str:
    kinds: Counter[str] = Counter()
    for group in instance.cluster.servers:
        amounts = {"CPU": group.cpus, "GB": group.memory_gb, "Gbit/s": group.bandwidth_gbps}
        parts = [f"{group.gpus} GPU", *(f"{amount:g} {unit}" for unit, amount in amounts.items() if amount)]
        parts += [f"{group.ps_slots} PS"] if group.ps_slots else []
        kinds[" / ".join(parts) + (" more in those" if group.servers_of else "")] += group.count
    total = sum(group.count for group in instance.cluster.servers if not group.servers_of)
    return f"{total}: {some([f'{count} x {kind}' for kind, count in kinds.items()], MAX_LISTED)}"


def _tenants(instance: Content) -> str:
    if not instance.tenants:
        return ""
    weights = Counter(f"{tenant.weight:g}" for tenant in instance.tenants)
    types = sum(len(tenant.job_types) for tenant in instance.tenants)
    parts = [f"{len(instance.tenants)}"]
    parts += [f"weights {_named(weights)}"] if len(weights) > 1 else []
    parts += [f"job types: {types}"] if types else []
    liars = sum(any(kind.reported_rates for kind in tenant.job_types) for tenant in instance.tenants)
    parts += [f"{liars} reporting other rates than the true ones"] if liars else []
    return ", ".join(parts)


def _jobs(instance: Content) -> str:
    if not instance.jobs:
        return "none (tenants with job types only)"
    parts = [f"{len(instance.jobs)}"]
    deadlines = sum(job.deadline_s is not None for job in instance.jobs)
    parts += [f"{deadlines} with a deadline"] if deadlines else []
    utilities = Counter(job.utility.kind.replace("_", " ") for job in instance.jobs)
    parts.append(f"utility {_named(utilities)}")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    """Format seconds in the largest unit (days, h, min, s) in which the value is at least 1."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _named(counts: Mapping[str, int]) -> str:
    """Return names with their counts, most frequent first (``3 x a, 1 x b``)."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return some([f"{count} x {name}" for name, count in ordered], MAX_LISTED)


def furthest(instance: Content) -> str:
    """Return a message about the field with the largest ratio of its values, and where the extremes are.

    Only positive numbers count. ``minibatch_ms goes from 1e-09 (job-0001, V100 x 1) to 1e+09 (job-0001, K80 x 1)``.
    """
    content = instance.model_dump(mode="json", exclude={"published", "schema_version", "name"})
    fields: dict[str, list[tuple[float, str]]] = {}
    for field, number, where in _numbers(content, "", ()):
        fields.setdefault(field, []).append((number, where))
    widest = max(fields, key=lambda field: max(fields[field])[0] / min(fields[field])[0])
    (least, here), (most, there) = min(fields[widest]), max(fields[widest])
    return f"{widest} goes from {least:g} ({here}) to {most:g} ({there})"


def _numbers(value: Any, field: str, where: tuple[str, ...]) -> Iterator[tuple[str, float, str]]:
    """Yield (field, number, place) for each positive number; the place lists the names of the enclosing records."""
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item, field, where)
    elif isinstance(value, dict):
        name = value.get("id") or value.get("name")
        within = (*where, str(name)) if name else where
        for key, item in value.items():
            # Lower-case identifiers are fields of records; other keys are names of types.
            is_field = key.isidentifier() and key.islower()
            yield from _numbers(item, key if is_field else field, within if is_field else (*within, key))
    elif isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        yield field, float(value), ", ".join(where)
