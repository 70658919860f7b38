"""Report of what fairness costs: the prices, the curves, and the mechanisms beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from schedgap.harness.engine.result import grouped
from schedgap.harness.show import measures
from schedgap.harness.show.page import frame
from schedgap.harness.show.page.columns import columns
from schedgap.harness.show.page.frame import Group, Page
from schedgap.harness.show.table import USUALLY, Block, Column, Line, Note, Selection, explained, listed, table
from schedgap.harness.show.text import ABSENT, between, clean, percent, within
from schedgap.harness.studies.frontier.row import BOTH, ENVY, MECHANISM, SHARE, Frontier, FrontierRow, PriceRow

HOW = (
    "A price is the part of the largest total efficiency that is lost. Every point is a verified allocation with a "
    "certified bound: ε is the part of what another's devices are worth to a tenant that it may lack, σ the share of "
    "its equal split that it has at least."
)

FEW = 11
"""Most levels of fairness in a table; files and pictures have all."""


@dataclass(frozen=True)
class Level:
    """A level of strictness, from 0: the rows of all curves there."""

    free: float
    envy: FrontierRow | None
    share: FrontierRow | None
    both: FrontierRow | None


def _price(row: FrontierRow | PriceRow | None) -> str:
    if row is None or row.price_at_least is None or row.price_at_most is None:
        return ABSENT
    return between(row.price_at_least, row.price_at_most)


def _two_sided(shown: Sequence[Column[Any]]) -> tuple[Column[Any], ...]:
    """Return columns in which that of the price has both limits, and says so."""
    return tuple(replace(one, header="price") if one.key == "price_at_most" else one for one in shown)


MECHANISMS: tuple[Column[FrontierRow], ...] = _two_sided(
    columns(
        measures.FRONTIER,
        method={"css": "text"},
        epsilon={},
        sigma={},
        total={},
        price_at_most={"text": _price},
        beyond_at_most={"priority": 1},
        verified={"bad": lambda row: row.wrong, "priority": 2, "shared": True},
    )
)

COSTS: tuple[Column[PriceRow], ...] = _two_sided(
    columns(
        measures.PRICES,
        requires={"css": "text"},
        instance={"css": "text", "shared": True, "priority": 3},
        price_at_most={"text": _price},
        median={"priority": 1},
        mean={
            "text": lambda row: (
                ABSENT if row.mean is None else percent(row.mean) + within((row.mean_low, row.mean_high))
            )
        },
        worst={"css": "text", "priority": 2},
    )
)

_level: Any = {"align": "right"}
LEVELS: tuple[Column[Level], ...] = (
    Column(
        "free", "tolerance", "What is tolerated, from nothing to everything.", lambda one: f"{one.free:.2f}", **_level
    ),
    Column("envy", "ε-envy", "Price if ε is the tolerance.", lambda one: _price(one.envy), **_level),
    Column("share", "share", "Price if σ is 1 less the tolerance.", lambda one: _price(one.share), **_level),
    Column("both", "ε-envy, σ = 1", "Price if ε is the tolerance, and σ is 1.", lambda one: _price(one.both), **_level),
)


def levels(rows: Sequence[FrontierRow]) -> list[Level]:
    """Return the levels of the curves of an instance, at most :data:`FEW` of them."""
    by_kind = {
        kind: [row for row in rows if row.kind == kind and row.epsilon is not None] for kind in (ENVY, SHARE, BOTH)
    }
    longest = max(map(len, by_kind.values()), default=0)
    every = max(1, -(-(longest - 1) // (FEW - 1))) if longest else 1
    kept = [i for i in range(longest) if i % every == 0 or i == longest - 1]
    at = [{kind: some[i] if i < len(some) else None for kind, some in by_kind.items()} for i in kept]
    return [Level(i / max(longest - 1, 1), *one.values()) for i, one in zip(kept, at, strict=True)]


def headline(found: Frontier) -> str:
    """Return the answer: what each property costs, and how much of it a little tolerance saves."""
    parts = [(name, found.overall(name)) for name in ("envy-freeness", "sharing incentive", "equal efficiency")]
    known = [(name, row) for name, row in parts if row is not None]
    if not known:
        return frame.answered(found, "rows", "Nothing could be priced.")
    several = known[0][1].instances > 1
    where = f"Over {known[0][1].instances} instances" if several else f"On {clean(known[0][1].instance, 60)}"
    told = [f"{_noun(name)} costs {_costs(row)}" for name, row in known]
    text = f"{where}, {', '.join(told[:-1])} and {told[-1]}" if len(told) > 1 else f"{where}, {told[0]}"
    return frame.answered(found, "rows", f"{text} of the largest total efficiency.", _tolerated(found))


def _noun(name: str) -> str:
    return f"the {name}" if name == "sharing incentive" else name


def _costs(row: PriceRow) -> str:
    """Return the price, or the mean of several."""
    if row.mean is None:
        return _price(row)
    return f"{percent(row.mean)}{within((row.mean_low, row.mean_high))} on average"


TOLERATED = 0.1
"""The part of envy of which the headline says what it saves."""


def _tolerated(found: Frontier) -> str:
    """Return what tolerating a little envy saves, on a single instance."""
    curve = [row for row in found.of(ENVY) if row.epsilon is not None and row.verified]
    strict = next((row for row in curve if row.epsilon == 0), None)
    near = next((row for row in curve if abs((row.epsilon or 0) - TOLERATED) < 1e-9), None)
    if len(found.instances) != 1 or not strict or not near or not strict.price_at_most or near.price_at_most is None:
        return ""
    return f"Whoever may lack {100 * TOLERATED:g} % of what another has brings the first down to {_price(near)}."


def notes(found: Frontier) -> list[tuple[str, str]]:
    """Return ``(method, reason)`` pairs for what was not computed."""
    rows = [row for row in found.rows if row.total is None]
    pairs = ((clean(row.method, 80), clean(row.reason or row.status, 300)) for row in rows)
    return frame.together(dict.fromkeys(pairs))


def _groups(found: Frontier) -> list[tuple[str, list[FrontierRow]]]:
    """Return the rows of each instance that is shown, by its name."""
    return [(rows[0].instance, rows) for rows in grouped(found.rows, "fingerprint")][: frame.MAX_DESCRIBED]


def _mechanisms(rows: Sequence[FrontierRow]) -> list[FrontierRow]:
    shown = [row for row in rows if row.kind == MECHANISM and row.total is not None]
    return sorted(shown, key=lambda row: -(row.total or 0.0))


def blocks(found: Frontier, view: Selection = USUALLY) -> list[Block]:
    """Return the blocks that the command prints; of several instances, the prices only."""
    costs = [row for row in found.prices if row.instances > 1] or list(found.prices)
    shown: list[Block] = [
        Line(headline(found), "bold" if found.ok else "bold red"),
        *listed("what properties cost, in parts of the largest total efficiency", COSTS, costs, view=view),
    ]
    for name, rows in _groups(found)[: 1 if len(found.instances) == 1 else 0]:
        shown += listed(f"price at each tolerance on {clean(name, 60)}", LEVELS, levels(rows))
        shown += listed("mechanisms, those of the largest total first", MECHANISMS, _mechanisms(rows), view=view)
    return [*shown, Line(HOW, "dim"), *(Note(f"not run: {which}", why) for which, why in notes(found))]


def page(found: Frontier) -> Page:
    """Return the page of a frontier."""
    groups = [
        Group("results-prices", "prices", "", [table("what properties cost", COSTS, list(found.prices))], HOW),
        *(
            Group(
                f"results-{i}",
                clean(name, 60),
                "",
                [
                    table("price at each tolerance", LEVELS, levels(rows)),
                    table("mechanisms", MECHANISMS, _mechanisms(rows)),
                ],
            )
            for i, (name, rows) in enumerate(_groups(found))
        ),
    ]
    return Page(
        question="What does fairness cost?",
        title="Efficiency against fairness",
        headline=headline(found),
        groups=groups,
        legend=explained(MECHANISMS, [found.of(MECHANISM)]),
        notes=[(f"not run: {which}", why) for which, why in notes(found)],
        counts=frame.summed_up(
            found.rows,
            {"instances": len(found.instances), "points": sum(row.kind != MECHANISM for row in found.rows)},
            ("points",),
        ),
    )
