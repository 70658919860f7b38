"""Report of a primal–dual algorithm's prices: its steps, what its own prices prove, and where Definition 1 breaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from schedgap.harness.ask.prices import PricesFound
from schedgap.harness.show.page.instance import LEVELS, SPARK_WIDTH
from schedgap.harness.show.table import Block, Column, Line, left_out, table
from schedgap.harness.show.text import clean, limit, number, ratio
from schedgap.heuristics.duals import PriceStep
from schedgap.instances.arrays import Array
from schedgap.instances.text import counted

USUAL = 20
"""Number of steps that are printed unless all are asked for."""

NAMED = 6
"""Number of steps that a sentence names."""

Shown = tuple[PriceStep, float, float]
"""A step, and both objectives after it."""


def headline(found: PricesFound) -> str:
    """Return the answer: what the algorithm gets, and what its own and the best prices prove."""
    text = f"{found.method} gets {number(found.objective)} ({found.unit})"
    for bound, whose in ((found.own_bound, "its own final prices"), (found.best_bound, "the best prices")):
        if bound is not None:
            how = f", a ratio {ratio(bound / found.objective, True)}" if found.objective else ""
            text += f"; {whose} prove that nobody gets more than {number(bound, side='at most')}{how}"
    return f"{text}."


def sentences(found: PricesFound) -> Iterator[str]:
    """Yield what the proof counts, which of its steps fail, and why a certificate is missing."""
    run = found.run
    last = float(run.dual[-1]) if run.steps else run.start
    yield (
        f"The proof counts D from {number(run.start)} on the empty cluster to {number(last)} after "
        f"{counted(len(run.steps), 'step')}."
    )
    words = f"Definition 1 with α = {number(run.alpha)} fails in {_of(found, found.broken)}"
    worst = max(run.steps, key=lambda step: step.needed, default=None)
    if found.broken and worst:
        words += (
            f"; the worst needs α = {number(worst.needed)}: {_job(found, worst)} on {clean(run.place(worst.cell), 80)}"
        )
    yield f"{words}."
    if run.ratio is None:
        yield "No theorem states a ratio here, so Lemma 1 asks nothing of the steps."
    else:
        yield f"Lemma 1's ΔP ≥ ΔD/α with α = {number(run.ratio)} ({run.promise}) fails in {_of(found, found.behind)}."
    for name, whose in (("own", "its own final prices"), ("best", "the best prices")):
        if name in found.reasons:
            yield f"No certificate from {whose}: {clean(found.reasons[name], 200)}."


def _of(found: PricesFound, steps: Sequence[PriceStep]) -> str:
    total = counted(len(found.run.steps), "step")
    if not steps:
        return f"none of {total}"
    names = ", ".join(_job(found, step) for step in steps[:NAMED])
    more = f" and {len(steps) - NAMED} more" if len(steps) > NAMED else ""
    return f"{len(steps)} of {total}: {names}{more}"


def _job(found: PricesFound, step: PriceStep) -> str:
    return clean(found.ids[step.job], 30)


def columns(found: PricesFound) -> tuple[Column[Shown], ...]:
    """Return the columns of the table of steps."""

    def of(key: str, header: str, meaning: str, priority: int, value: str = "") -> Column[Shown]:
        name = value or key
        return Column(key, header, meaning, lambda row: number(getattr(row[0], name)), align="right", priority=priority)

    def total(key: str, header: str, meaning: str, at: int) -> Column[Shown]:
        return Column(key, header, meaning, lambda row: number(row[at]), align="right")

    run = found.run

    def fails(row: Shown) -> str:
        which = [name for name, fail in (("D1", run.breaks(row[0])), ("L1", run.behind(row[0]))) if fail]
        return " ".join(which) or "✓"

    return (
        Column("job", "job", "The job that is scheduled.", lambda row: _job(found, row[0]), css="method"),
        of("worth", "ΔP", "What the job is worth: what the step adds to the primal objective.", 0),
        of("paid", "paid", "What the job pays, at the prices before the step.", 3),
        of("payoff", "payoff", "Worth less what is paid.", 5),
        of("rise", "rise", "By how much all capacity costs more after the step.", 2),
        of("dual", "ΔD", "What the step adds to the dual objective: payoff, if positive, and rise.", 0),
        total("primal", "P", "Primal objective after the step.", 1),
        total("total_dual", "D", "Dual objective after the step, as the proof counts it.", 2),
        of("needed", "needs α", "Least α with which Definition 1 holds for the step.", 1),
        Column("fails", "fails", "D1: Definition 1 fails; L1: the inequality of Lemma 1 fails.", fails),
    )


def shown_steps(found: PricesFound) -> list[Shown]:
    """Return the rows of the table."""
    run = found.run
    return list(zip(run.steps, run.primal.tolist(), run.dual.tolist(), strict=True))


def picture(found: PricesFound) -> list[str]:
    """Return both objectives after each step as lines of characters, all on one scale, within 80 columns."""
    run = found.run
    if not run.steps:
        return []
    ends = {
        "bound of its own prices": found.own_bound,
        "bound of the best prices": found.best_bound,
    }
    top = max(float(run.dual.max()), *(end for end in ends.values() if end), found.objective)
    width = SPARK_WIDTH - 12
    lines = [
        f"{name:>14} {spark(values, top, width):{width}} {number(values[-1])}"
        for name, values in (("P", run.primal), ("D of the proof", run.dual))
    ]
    return lines + [f"{name:>{width + 15}} {limit(end, 'at most')}" for name, end in ends.items() if end is not None]


def spark(values: Array, top: float, width: int) -> str:
    """Return values as characters of growing height, `top` as the full height, at most `width` of them."""
    step = max(1, -(-len(values) // width))
    return "".join(LEVELS[min(len(LEVELS) - 1, round(x / top * (len(LEVELS) - 1)))] for x in values[step - 1 :: step])


def blocks(found: PricesFound, everything: bool = False) -> list[Block]:
    """Return the blocks that the command prints, with all steps or the first :data:`USUAL`."""
    rows = shown_steps(found)
    kept = rows if everything else rows[:USUAL]
    caption = f"{clean(found.instance.name, 80)} · {found.method}: steps in the order of the algorithm"
    return [
        Line(headline(found), "bold"),
        *(Line(sentence) for sentence in sentences(found)),
        table(caption, columns(found), kept),
        *left_out(len(rows) - len(kept)),
        *(Line(line) for line in picture(found)),
    ]
