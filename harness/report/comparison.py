"""The page of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from schedgap.harness.figures import Drawing
from schedgap.harness.render.columns import failed, wrong
from schedgap.harness.render.formats import not_compared, notes, published_notes
from schedgap.harness.render.headline import answers, lead
from schedgap.harness.report.page import (
    Page,
    Section,
    figures_section,
    instances_section,
    notes_section,
    published_section,
    render,
    results_section,
)
from schedgap.harness.report.tables import groups, legend, published_table, title_of
from schedgap.harness.run import Run
from schedgap.harness.studies import COMPARE
from schedgap.harness.text import clean


def page(run: Run, images: Sequence[Drawing], failures: Sequence[str] = (), more: Sequence[Section] = ()) -> str:
    """Return the page of `run`.

    Parameters
    ----------
    run
        The run.
    images, failures
        Its figures, and what is said about those that could not be drawn.
    more
        Sections that follow the published numbers, such as the table of an audit.
    """
    rows = run.rows
    told = answers(run)
    sections = [
        results_section(groups(run), legend(run)),
        *notes_section(notes(rows)),
        *published_section(published_table(rows), _published_notes(run)),
        *more,
        *figures_section(images, {row.paper: title_of(row.paper) for row in rows}, failures),
        *instances_section(run.instances, {row.fingerprint: row.instance for row in rows}),
    ]
    return render(
        Page(
            question="How far from optimal?",
            title=_title(run),
            headline=lead(run),
            trouble=_trouble(run),
            sections=sections,
            meta=run.meta,
            answers=[(clean(paper, 40), text) for paper, text in told] if len(told) > 1 else [],
            counts=_counts(run),
        )
    )


def _published_notes(run: Run) -> list[tuple[str, str]]:
    """Return what is to be said about published numbers, and why some stand beside none of ours."""
    return [*published_notes(run.rows, only_differing=False), *not_compared(run.rows, run.instances, COMPARE)]


def _title(run: Run) -> str:
    names = list(dict.fromkeys(row.instance for row in run.rows))
    return clean(names[0], 60) if len(names) == 1 else f"{len(names)} instances"


def _trouble(run: Run) -> bool:
    return any(wrong(row) or failed(row) for row in run.rows)


def _counts(run: Run) -> list[tuple[str, str]]:
    """Return how many instances, results, verified and proved ones there are, and what is missing."""
    rows = run.rows
    counts = {
        "instances": len({row.fingerprint for row in rows}),
        "methods": len({row.method for row in rows}),
        "results": len(rows),
        "verified": sum(row.verified is True for row in rows),
        "optimum proved": sum(row.verified is True and row.ratio_is_upper is False for row in rows),
        "WRONG": sum(map(wrong, rows)),
        "failed": sum(map(failed, rows)),
        "skipped": sum(row.status == "skipped" for row in rows),
    }
    always = ("results", "verified", "WRONG")
    return [(f"{count:,}", name) for name, count in counts.items() if name in always or count > (name == "instances")]
