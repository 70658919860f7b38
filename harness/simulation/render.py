"""What a simulation tells: captions, tables, published numbers, and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from schedgap.harness.render.formats import not_compared, published_table
from schedgap.harness.simulation.rows import SimulationRow
from schedgap.harness.studies import SIMULATE
from schedgap.harness.table import Block, Column, Note, table
from schedgap.harness.text import ABSENT, clean, differs, number, percent, published_cells, verdict
from schedgap.harness.text import ratio as ratio_text
from schedgap.instances.schema import Instance


def _text(
    key: str, header: str, explanation: str, text: Callable[[SimulationRow], str], **more: Any
) -> Column[SimulationRow]:
    return Column(key, header, explanation, text, **more)


def _number(
    key: str, header: str, explanation: str, text: Callable[[SimulationRow], str], **more: Any
) -> Column[SimulationRow]:
    return Column(key, header, explanation, text, lambda row: getattr(row, key), align="right", **more)


COLUMNS: tuple[Column[SimulationRow], ...] = (
    _text(
        "policy",
        "policy",
        "Registered name; “harness list policies” prints the source of each.",
        lambda row: clean(row.policy, 60),
        css="method",
    ),
    _text(
        "reference",
        "ref",
        "The policy that ratios refer to.",
        lambda row: clean((row.reference or ABSENT).rpartition(f"{row.policy.partition('.')[0]}.")[2], 60),
        shared=True,
        priority=1,
    ),
    _number(
        "ttd_s",
        "TTD (h)",
        "Total time duration: from the first arrival to the last completion.",
        lambda row: _hours(row.ttd_s),
    ),
    _number(
        "ttd_ratio",
        "× ref",
        "TTD divided by that of the reference.",
        lambda row: ABSENT if row.ttd_ratio is None else f"{row.ttd_ratio:.3f}",
        priority=3,
    ),
    _number(
        "ttd_printed",
        "paper",
        "The same ratio as the paper printed it.",
        lambda row: ABSENT if row.ttd_printed is None else f"{row.ttd_printed:g}",
        priority=5,
    ),
    _number(
        "ttd_bound_ratio",
        "TTD/bound",
        "TTD divided by a certified lower bound: at most so many times the least TTD.",
        lambda row: ratio_text(row.ttd_bound_ratio, True) if row.ttd_bound_ratio else ABSENT,
    ),
    _number("jct_mean_s", "JCT mean (h)", "Mean time from arrival to completion.", lambda row: _hours(row.jct_mean_s)),
    _number(
        "jct_ratio",
        "JCT × ref",
        "Mean completion time divided by that of the reference.",
        lambda row: ABSENT if row.jct_ratio is None else f"{row.jct_ratio:.3f}",
        priority=2,
    ),
    _number(
        "jct_bound_ratio",
        "JCT/bound",
        "Mean completion time divided by a certified lower bound.",
        lambda row: ratio_text(row.jct_bound_ratio, True) if row.jct_bound_ratio else ABSENT,
    ),
    _number(
        "jct_median_s", "median", "Median completion time in hours.", lambda row: _hours(row.jct_median_s), priority=8
    ),
    _number(
        "jct_p99_s",
        "p99",
        "99th percentile of the completion times in hours.",
        lambda row: _hours(row.jct_p99_s),
        priority=6,
    ),
    _number(
        "jct_min_s", "JCT min", "Shortest completion time in hours.", lambda row: _hours(row.jct_min_s), priority=18
    ),
    _number(
        "jct_max_s", "JCT max", "Longest completion time in hours.", lambda row: _hours(row.jct_max_s), priority=17
    ),
    _number(
        "jct_short_s",
        "< 4 h",
        "Mean completion time of short jobs in hours.",
        lambda row: _sensitive(row, _hours(row.jct_short_s)),
        priority=9,
    ),
    _number(
        "jct_long_s",
        "≥ 4 h",
        "Mean completion time of long jobs in hours.",
        lambda row: _sensitive(row, _hours(row.jct_long_s)),
        priority=10,
    ),
    _number(
        "gru",
        "GRU",
        "GPU resource utilisation: share of the GPUs' time in which they computed.",
        lambda row: percent(row.gru),
        priority=7,
    ),
    _number(
        "cru",
        "CRU",
        "Cluster resource utilisation: share of the servers' time in which they computed.",
        lambda row: percent(row.cru),
        priority=11,
    ),
    _number(
        "cpu_given",
        "CPUs",
        "Share of the CPUs' time in which a job computed with them.",
        lambda row: percent(row.cpu_given),
        priority=15,
    ),
    _number(
        "cpu_needed",
        "needed",
        "The same, had each job the fewest CPUs at which it is as fast.",
        lambda row: percent(row.cpu_needed),
        priority=16,
    ),
    _number(
        "lp1_share",
        "LP1",
        "Mean progress of a round divided by the most that LP1 allows for the jobs that were picked.",
        lambda row: percent(row.lp1_share),
    ),
    _number("lp1_worst", "worst", "The least of these.", lambda row: percent(row.lp1_worst), priority=4),
    _number(
        "estimated_throughput",
        "estimated",
        "What fractional shares promise: mean over the rounds, in devices of the slowest type.",
        lambda row: number(row.estimated_throughput),
    ),
    _number(
        "actual_throughput",
        "actual",
        "What was done: mean over the rounds, in devices of the slowest type.",
        lambda row: number(row.actual_throughput),
    ),
    _number(
        "straggler_share",
        "stragglers",
        "Part of the workers that ran in gangs over several GPU types.",
        lambda row: percent(row.straggler_share) if row.actual_throughput is not None else ABSENT,
    ),
    _number("utility", "ΣU", "Total utility of the completed jobs.", lambda row: number(row.utility), priority=21),
    _number(
        "decision_mean_s",
        "decision mean (ms)",
        "Mean wall-clock time of a decision.",
        lambda row: _milliseconds(row.decision_mean_s),
        priority=19,
    ),
    _number(
        "decision_max_s",
        "max",
        "Longest wall-clock time of a decision in milliseconds.",
        lambda row: _milliseconds(row.decision_max_s),
        priority=20,
    ),
    _number(
        "idle_gpus",
        "idle GPUs",
        "Mean number of GPUs that nobody holds while a job waits.",
        lambda row: number(row.idle_gpus, 3),
        priority=12,
    ),
    _number(
        "restarts",
        "restarts",
        "Changed allocations that jobs paid for.",
        lambda row: ABSENT if row.restarts is None else f"{row.restarts:,}",
        priority=14,
    ),
    _number(
        "changing",
        "changing",
        "Share of the rounds in which a job that has run before gets other GPUs.",
        lambda row: percent(row.changing),
        priority=13,
    ),
    _text(
        "status",
        "status",
        "How the simulation ended, and how many jobs were left.",
        lambda row: _unfinished(row) or clean(row.status, 40),
        css="status",
        bad=lambda row: not row.ok and bool(row.reason),
    ),
    _text(
        "verified",
        "verified",
        "✓: an independent checker confirms every round of the history. WRONG: it does not.",
        lambda row: verdict(row.verified),
        css="verified",
        bad=lambda row: row.verified is False,
    ),
)
"""Columns of a simulation; all but the outer ones are numbers."""

NONE: Mapping[str, Instance] = {}
"""Where only rows are shown, and not what was published about their instances beside them."""

PUBLISHED = ("policy", "quantity", "published", "measured", "unit", "where")


def _hours(seconds: float | None) -> str:
    return ABSENT if seconds is None else number(seconds / 3600)


def _sensitive(row: SimulationRow, text: str) -> str:
    """Return what is worth a column only where policies give out CPUs and memory."""
    return text if row.cpu_given is not None else ABSENT


def _milliseconds(seconds: float | None) -> str:
    return ABSENT if seconds is None else number(seconds * 1000, 3)


def _unfinished(row: SimulationRow) -> str:
    left = sum(row.unfinished.values())
    return f"{left} of {row.jobs} jobs unfinished" if left and row.jobs else ""


def parts(rows: Sequence[SimulationRow]) -> list[tuple[str, list[SimulationRow]]]:
    """Return the rows that share a table, with its caption: one instance."""
    groups = (list(group) for _, group in groupby(rows, key=lambda row: row.fingerprint))
    return [(caption(group), group) for group in groups]


def caption(rows: Sequence[SimulationRow]) -> str:
    """Return what all rows of a table share: instance, rules, whom ratios refer to, and the bound."""
    row = rows[0]
    shared = [clean(row.instance, 80), f"rounds of {row.round_s:g} s", f"{row.restart_s:g} s per restart"]
    if row.spread_factor != 1:
        shared.append(f"gangs over several servers run at {row.spread_factor:g}")
    if row.until_s is not None:
        shared.append(f"until {row.until_s / 3600:g} h")
    if profiling_s := max(r.profiling_s for r in rows):
        shared.append(f"{profiling_s / 60:g} min of profiling")
    if row.window:
        shared.append(f"JCT of {max(r.window_jobs or 0 for r in rows)} jobs (window {row.window})")
    if len({r.reference for r in rows}) == 1:
        shared.append(f"ref: {clean(row.reference or ABSENT, 60)}")
    found = [("TTD", r.ttd_bound_s, r.ttd_bound_from) for r in rows]
    found += [("mean JCT", r.jct_bound_s, r.jct_bound_from) for r in rows]
    told = dict.fromkeys((what, seconds, model) for what, seconds, model in found if seconds is not None)
    shared += [f"{what} ≥ {_hours(seconds)} h ({model})" for what, seconds, model in told]
    return " · ".join(shared)


def published_lines(rows: Sequence[SimulationRow]) -> Iterator[list[str]]:
    """Yield the cells (see `PUBLISHED`) of every published number."""
    for row in rows:
        for entry in row.published:
            printed, measured, _ = published_cells(entry)
            texts = [row.policy, entry["quantity"], printed, measured, entry["unit"], entry["where"]]
            yield [clean(text, 80) for text in texts]


def noted(rows: Sequence[SimulationRow], instances: Mapping[str, Instance] = NONE) -> list[tuple[str, str]]:
    """Return ``(subject, message)`` pairs: what went wrong or was skipped, jobs left, notes on published numbers."""
    lines = []
    for row in rows:
        name = clean(row.policy, 60)
        lines += [(name, f"WRONG: {clean(line, 400)}") for line in row.violations]
        lines += [(name, f"{clean(row.status, 40)}: {clean(row.reason, 400)}")] if row.reason else []
        lines += [(name, f"{count} jobs unfinished, {clean(why, 200)}") for why, count in row.unfinished.items()]
        printed = [e for e in row.published if e["note"] and differs(e)]
        lines += [(f"{name}, {clean(e['quantity'], 60)}", clean(e["note"], 400)) for e in printed]
    return [*lines, *not_compared(rows, instances, SIMULATE)]


def blocks(rows: Sequence[SimulationRow], instances: Mapping[str, Instance] = NONE) -> list[Block]:
    """Return what a command prints: a table per instance, published numbers, notes."""
    shown: list[Block] = []
    for text, group in parts(rows):
        shown.append(table(text, COLUMNS, group, dim=lambda row: row.status == "skipped"))
        if lines := list(published_lines(group)):
            shown.append(published_table(PUBLISHED, lines, "published beside measured"))
        shown += [Note(which, note) for which, note in noted(group, instances)]
    return shown
