"""An instance in words: what a person wants to know before running anything on it."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping

from schedgap.instances.schema.content import Content
from schedgap.instances.schema.job import Job

MAX_LISTED = 6
"""So many of a kind are named; the rest is counted."""


def describe(instance: Content) -> list[tuple[str, str]]:
    """Return facts about the instance as (what, in words), in the order shown; what was derived has many lines."""
    facts = [
        ("instance", instance.name),
        ("title", instance.title),
        ("cluster", _cluster(instance)),
        ("servers", _servers(instance)),
        ("tenants", _tenants(instance)),
        ("jobs", _jobs(instance)),
        ("arrivals", _arrivals(instance)),
        ("load", _load(instance)),
        ("gangs", _gangs(instance.jobs)),
        ("models", _named(Counter(job.model for job in instance.jobs if job.model))),
        ("workers and parameter servers", _worker_types(instance)),
        ("horizon", _horizon(instance)),
        ("published", _published(instance)),
        ("source", instance.source),
        ("licence", instance.licence),
        ("derived", "\n".join(instance.derived)),
        ("fingerprint", instance.fingerprint),
    ]
    return [(what, words) for what, words in facts if words]


def to_html(instance: Content) -> str:
    """Return the facts as an HTML table; every text is escaped, since instances come from strangers."""
    rows = "".join(
        f"<tr><th style='text-align:left;vertical-align:top'>{html.escape(what)}</th>"
        f"<td style='text-align:left'>{_cell(words)}</td></tr>"
        for what, words in describe(instance)
    )
    return f"<table>{rows}</table>"


def _cell(words: str) -> str:
    """Return escaped text; many lines are folded away."""
    lines = [html.escape(line) for line in words.splitlines()]
    if len(lines) == 1:
        return lines[0]
    return f"<details><summary>{len(lines)} lines</summary>{'<br>'.join(lines)}</details>"


def load(instance: Content) -> float | None:
    """Return the fluid load: work in GPU-seconds of the average GPU over GPU-seconds up to the last arrival.

    A job's rate on the average GPU is the mean of its rates weighted by GPUs. ``None`` where
    jobs have no rates, or all arrive at once.
    """
    totals = instance.cluster.gpus_by_type
    works = [work for job in instance.jobs if (work := _gpu_seconds(job, totals)) is not None]
    times = [job.submit_s for job in instance.jobs]
    if not works or max(times) == min(times):
        return None
    return sum(works) / (instance.cluster.gpus * max(times))


def _gpu_seconds(job: Job, totals: Mapping[str, int]) -> float | None:
    """Work of a job in seconds of the average of the GPUs on which it runs."""
    gpus = sum(totals[r] for r, rate in job.rates.items() if rate > 0)
    speed = sum(totals[r] * rate for r, rate in job.rates.items())
    return job.iterations * gpus / speed if speed > 0 else None


def _cluster(instance: Content) -> str:
    totals = instance.cluster.gpus_by_type
    return f"{instance.cluster.gpus} GPUs: {_joined(f'{count} {name}' for name, count in totals.items())}"


def _servers(instance: Content) -> str:
    kinds: Counter[str] = Counter()
    for group in instance.cluster.servers:
        parts = [f"{group.gpus} GPU"]
        parts += [f"{group.cpus:g} CPU"] if group.cpus else []
        parts += [f"{group.memory_gb:g} GB"] if group.memory_gb else []
        parts += [f"{group.bandwidth_gbps:g} Gbit/s"] if group.bandwidth_gbps else []
        parts += [f"{group.ps_slots} PS"] if group.ps_slots else []
        kinds[" / ".join(parts)] += group.count
    total = sum(kinds.values())
    return f"{total}: {_joined(f'{count} x {kind}' for kind, count in kinds.items())}"


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


def _arrivals(instance: Content) -> str:
    times = [job.submit_s for job in instance.jobs]
    if not times:
        return ""
    if max(times) == min(times):
        return f"all at {_duration(times[0])}"
    return f"from {_duration(min(times))} to {_duration(max(times))}"


def _load(instance: Content) -> str:
    value = load(instance)
    return f"{value:.2f} of the average GPUs, from the start to the last arrival" if value is not None else ""


def _gangs(jobs: Iterable[Job]) -> str:
    sizes = Counter(job.gpus for job in jobs)
    return _joined(f"{count} of {size} GPU{'s' * (size > 1)}" for size, count in sorted(sizes.items()))


def _worker_types(instance: Content) -> str:
    if not instance.worker_types and not instance.ps_types:
        return ""
    return f"worker types: {len(instance.worker_types)}, PS types: {len(instance.ps_types)}"


def _horizon(instance: Content) -> str:
    horizon = instance.horizon
    return f"{horizon.slots} slots of {horizon.slot_s:g} s ({_duration(horizon.end_s)})" if horizon else ""


def _published(instance: Content) -> str:
    return _named(Counter(p.method for p in instance.published))


def _duration(seconds: float) -> str:
    """Return seconds in the largest unit of which there is at least one."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _named(counts: Mapping[str, int]) -> str:
    """Return names with their counts, most frequent first (``3 x a, 1 x b``)."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _joined(f"{count} x {name}" for name, count in ordered)


def _joined(items: Iterable[str]) -> str:
    listed = list(items)
    rest = len(listed) - MAX_LISTED
    return ", ".join(listed[:MAX_LISTED]) + (f" and {rest} more" if rest > 0 else "")
