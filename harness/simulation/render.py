"""A simulation as a terminal table, Markdown, CSV, JSON, and HTML for notebooks."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from harness.render.formats import csv_cell, markdown_text, not_compared
from harness.render.text import ABSENT, clean, differs, number, percent, plain, published_cells, verdict
from harness.render.text import ratio as ratio_text
from harness.simulation.rows import FIELDS, SimulationRow
from harness.studies import SIMULATE
from instances.schema import Instance

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.text import Text

Cells = list[str]

COLUMNS: dict[str, Callable[[SimulationRow], str]] = {
    "policy": lambda row: clean(row.policy, 60),
    "ref": lambda row: clean((row.reference or ABSENT).rpartition(f"{row.policy.partition('.')[0]}.")[2], 60),
    "TTD (h)": lambda row: _hours(row.ttd_s),
    "× ref": lambda row: ABSENT if row.ttd_ratio is None else f"{row.ttd_ratio:.3f}",
    "paper": lambda row: ABSENT if row.ttd_printed is None else f"{row.ttd_printed:g}",
    "TTD/bound": lambda row: ratio_text(row.ttd_bound_ratio, True) if row.ttd_bound_ratio else ABSENT,
    "JCT mean (h)": lambda row: _hours(row.jct_mean_s),
    "JCT × ref": lambda row: ABSENT if row.jct_ratio is None else f"{row.jct_ratio:.3f}",
    "JCT/bound": lambda row: ratio_text(row.jct_bound_ratio, True) if row.jct_bound_ratio else ABSENT,
    "median": lambda row: _hours(row.jct_median_s),
    "p99": lambda row: _hours(row.jct_p99_s),
    "JCT min": lambda row: _hours(row.jct_min_s),
    "JCT max": lambda row: _hours(row.jct_max_s),
    "< 4 h": lambda row: _sensitive(row, _hours(row.jct_short_s)),
    "≥ 4 h": lambda row: _sensitive(row, _hours(row.jct_long_s)),
    "GRU": lambda row: percent(row.gru),
    "CRU": lambda row: percent(row.cru),
    "CPUs": lambda row: percent(row.cpu_given),
    "needed": lambda row: percent(row.cpu_needed),
    "LP1": lambda row: percent(row.lp1_share),
    "worst": lambda row: percent(row.lp1_worst),
    "ΣU": lambda row: number(row.utility),
    "decision mean (ms)": lambda row: _milliseconds(row.decision_mean_s),
    "max": lambda row: _milliseconds(row.decision_max_s),
    "idle GPUs": lambda row: number(row.idle_gpus, 3),
    "restarts": lambda row: ABSENT if row.restarts is None else f"{row.restarts:,}",
    "changing": lambda row: percent(row.changing),
    "status": lambda row: _unfinished(row) or clean(row.status, 40),
    "verified": lambda row: verdict(row.verified),
}
"""Header and cell of each column; all but the outer ones are numbers."""

LEAVING = (
    "ΣU", "max", "decision mean (ms)", "JCT min", "JCT max", "needed", "CPUs", "restarts", "changing", "idle GPUs",
    "CRU", "≥ 4 h", "< 4 h", "median", "GRU", "p99", "paper", "worst", "× ref", "JCT × ref", "ref",
)  # fmt: skip
"""Columns that a narrow terminal leaves out, the first ones first."""

TEXTS = ("policy", "ref", "status", "verified")
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


def visible(rows: Sequence[SimulationRow]) -> list[str]:
    """Return the headers of the columns that are not empty; a reference that all share is in the caption."""
    shown = [header for header, cell in COLUMNS.items() if any(cell(row) != ABSENT for row in rows)]
    several = len({row.reference for row in rows}) > 1
    return [header for header in shown if header != "ref" or several]


def published_lines(rows: Sequence[SimulationRow]) -> Iterator[tuple[Cells, bool]]:
    """Yield the cells (see `PUBLISHED`) of every published number, and whether we get it."""
    for row in rows:
        for entry in row.published:
            printed, measured, _ = published_cells(entry)
            texts = [row.policy, entry["quantity"], printed, measured, entry["unit"], entry["where"]]
            yield [clean(text, 80) for text in texts], not differs(entry)


def notes(rows: Sequence[SimulationRow], instances: Mapping[str, Instance] = NONE) -> list[str]:
    """Return in words what went wrong or was skipped, how many jobs are left, and notes on published numbers."""
    return [f"{which}: {note}" for which, note in noted(rows, instances)]


def noted(rows: Sequence[SimulationRow], instances: Mapping[str, Instance] = NONE) -> list[tuple[str, str]]:
    """Return the same as pairs: about what, and what is to be said."""
    lines = []
    for row in rows:
        name = clean(row.policy, 60)
        lines += [(name, f"WRONG: {clean(line, 400)}") for line in row.violations]
        lines += [(name, f"{clean(row.status, 40)}: {clean(row.reason, 400)}")] if row.reason else []
        lines += [(name, f"{count} jobs unfinished, {clean(why, 200)}") for why, count in row.unfinished.items()]
        printed = [e for e in row.published if e["note"] and differs(e)]
        lines += [(f"{name}, {clean(e['quantity'], 60)}", clean(e["note"], 400)) for e in printed]
    return [*lines, *not_compared(rows, instances, SIMULATE)]


def to_markdown(rows: Sequence[SimulationRow], instances: Mapping[str, Instance] = NONE) -> str:
    """Return a table per instance, published numbers and notes as GitHub-flavoured Markdown."""
    blocks = []
    for text, group in parts(rows):
        headers = visible(group)
        rule = ["---" if header in TEXTS else "---:" for header in headers]
        lines = [headers, rule, *([markdown_text(COLUMNS[header](row)) for header in headers] for row in group)]
        blocks += [markdown_text(text), _markdown(lines)]
        if printed := [cells for cells, _ in published_lines(group)]:
            blocks.append(_markdown([list(PUBLISHED), ["---"] * len(PUBLISHED), *map(_escaped, printed)]))
        blocks += ["\n".join(f"- {markdown_text(line)}" for line in told)] if (told := notes(group, instances)) else []
    return "\n\n".join(blocks) + "\n"


def _escaped(cells: Cells) -> Cells:
    return [markdown_text(cell) for cell in cells]


def _markdown(lines: Sequence[Cells]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def to_csv(rows: Sequence[SimulationRow]) -> str:
    """Return all fields of all rows as CSV; lists and mappings are JSON, and no cell starts a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows([csv_cell(value) for value in row.as_dict().values()] for row in rows)
    return out.getvalue()


def to_json(rows: Sequence[SimulationRow]) -> str:
    """Return a JSON list with an object of all fields per row."""
    return "[" + ",\n ".join(json.dumps(plain(row.as_dict()), allow_nan=False) for row in rows) + "]\n"


def to_html(rows: Sequence[SimulationRow], instances: Mapping[str, Instance] = NONE) -> str:
    """Return a table per instance as an HTML fragment."""
    out = []
    for text, group in parts(rows):
        headers = visible(group)
        head = "".join(f"<th>{html.escape(header)}</th>" for header in headers)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(COLUMNS[header](row))}</td>" for header in headers) + "</tr>"
            for row in group
        )
        told = "".join(f"<li>{html.escape(line)}</li>" for line in notes(group, instances))
        out.append(f"<table><caption>{html.escape(text)}</caption><tr>{head}</tr>{body}</table><ul>{told}</ul>")
    return "".join(out)


def to_rich(rows: Sequence[SimulationRow], instances: Mapping[str, Instance] = NONE) -> RenderableType:
    """Return what the terminal shows: a table per instance, published numbers, notes."""
    from rich.console import Group

    shown: list[RenderableType] = []
    for text, group in parts(rows):
        shown += [_text(text, style="bold"), *_rich_tables(group)]
        shown += [_text(f"- {line}") for line in notes(group, instances)]
    return Group(*shown)


class SimulationTable:
    """The table of one instance; it leaves out columns where the terminal is too narrow."""

    def __init__(self, rows: Sequence[SimulationRow]) -> None:
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table at the width at hand."""
        from rich.cells import cell_len

        from harness.render.terminal import empty_table, left_out, narrowed

        shown = visible(self.rows)
        cells = {header: [COLUMNS[header](row) for row in self.rows] for header in shown}
        widths = {header: max(map(cell_len, (header, *texts))) for header, texts in cells.items()}
        kept = narrowed(widths, LEAVING, options.max_width)
        table = empty_table()
        for header in kept:
            table.add_column(header, justify="left" if header in TEXTS else "right", no_wrap=header == "policy")
        for i, row in enumerate(self.rows):
            bad = "bold red" if not row.ok else "dim" if row.status == "skipped" else ""
            table.add_row(*(_text(cells[header][i]) for header in kept), style=bad)
        yield table
        if dropped := [header for header in shown if header not in kept]:
            yield left_out(dropped)


def _rich_tables(rows: Sequence[SimulationRow]) -> Iterator[RenderableType]:
    from harness.render.terminal import empty_table

    yield SimulationTable(rows)
    if printed := list(published_lines(rows)):
        below = empty_table()
        for header in PUBLISHED:
            below.add_column(header, no_wrap=header == "policy")
        for cells, agrees in printed:
            below.add_row(*map(_text, cells), style="" if agrees else "bold")
        yield _text("published beside measured", style="bold")
        yield below


def _text(text: str, style: str = "") -> Text:
    """Return a text in which nothing is read as markup."""
    from rich.text import Text

    return Text(text, style=style)
