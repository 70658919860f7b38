"""Price and loss: what a requirement costs on an instance, what a method loses beyond that, and how it is printed."""

from __future__ import annotations

from typing import Any

import pytest
from report_runs import row

from schedgap.harness.show.page.answer import answer
from schedgap.harness.show.page.columns import COMPARE, SUMMARY
from schedgap.harness.show.page.compare import blocks
from schedgap.harness.show.table import Line, table
from schedgap.harness.studies.compare.price import Optimum, optimum, price, priced, prices
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.harness.studies.compare.run import compare_here
from schedgap.harness.studies.compare.summary import by_method
from schedgap.heuristics.registry import HEURISTICS, heuristic
from schedgap.instances import load
from schedgap.instances.errors import UsageError

MARK = "f" * 64
ONLINE: dict[str, Any] = {"kind": "online", "status": "feasible"}
BASE: dict[str, Any] = {"kind": "baseline", "status": "feasible"}


def test_loss_is_not_price() -> None:
    run = compare_here(load("gen/oef-4"), ["oef.rounding", "oef.efficiency", "oef.cooperative", "oef.maxmin"])
    rounding, efficiency, cooperative, maxmin = (next(r for r in run.rows if r.method == f"oef.{name}") for name in (
        "rounding", "efficiency", "cooperative", "maxmin"))  # fmt: skip
    assert rounding.aims == cooperative.problem == "oef.envy_free"
    assert rounding.objective is not None
    assert cooperative.objective is not None
    assert efficiency.objective is not None
    share = 1 - cooperative.objective / efficiency.objective
    assert share > 0.01
    for one in (rounding, cooperative):
        assert one.price_of == "envy-freeness"
        assert (one.price_at_least, one.price_at_most) == (pytest.approx(share), pytest.approx(share))
    # Losses are relative to the bound, which allows for what checkers let decisions miss: hence the tolerance.
    assert rounding.loss == pytest.approx(1 - rounding.objective / cooperative.objective, abs=1e-7)
    assert rounding.gap == pytest.approx(1 - rounding.objective / efficiency.objective)
    assert abs(rounding.loss) < 0.01 < rounding.gap
    assert (maxmin.loss, efficiency.loss, efficiency.price_at_most) == (None, None, None)


def of(sense: Any, bound: float | None, reached: float | None) -> Optimum:
    return Optimum(sense, bound, reached)


@pytest.mark.parametrize(
    ("problem", "base", "expected"),
    [
        (of("max", 8.0, 8.0), of("max", 10.0, 10.0), (0.2, 0.2)),
        (of("max", 9.0, 8.0), of("max", 10.0, 9.5), (pytest.approx(0.5 / 9.5), pytest.approx(0.2))),
        (of("max", 9.8, 8.0), of("max", 10.0, 9.5), (0.0, pytest.approx(0.2))),
        (of("max", None, 8.0), of("max", 10.0, 9.5), (0.0, pytest.approx(0.2))),
        (of("max", 8.0, None), of("max", 10.0, 9.5), None),
        (of("max", 8.0, 8.0), of("max", None, 9.5), None),
        (of("max", 0.0, 0.0), of("max", 0.0, 0.0), None),
        (of("min", 12.0, 12.0), of("min", 10.0, 10.0), (pytest.approx(0.2), pytest.approx(0.2))),
        (of("min", 11.0, 12.0), of("min", 10.0, 10.5), (pytest.approx(0.5 / 10.5), pytest.approx(0.2))),
        (of("min", 10.0, 12.0), of("min", 10.0, 10.5), (0.0, pytest.approx(0.2))),
    ],
)
def test_a_price_lies_between_what_decisions_and_bounds_allow(problem: Optimum, base: Optimum, expected: Any) -> None:
    assert price(problem, base) == expected


def test_bounds_of_wider_problems_and_decisions_of_narrower_ones_count() -> None:
    rows = [
        row("oef.efficiency", MARK, 5.0),
        row("oef.cooperative", MARK, 4.5, problem="oef.envy_free", best_bound=4.6),
        row("oef.other", MARK, 4.9, problem="oef.sharing_incentive", verified=False),
    ]
    found = optimum("oef", "oef.sharing_incentive", "max", rows)
    assert (found.bound, found.reached, found.known) == (5.0, 4.5, False)
    assert optimum("oef", "oef.envy_free", "max", rows) == Optimum("max", 4.6, 4.5)


def test_a_decision_better_than_the_narrower_optimum_loses_less_than_nothing() -> None:
    rows = [
        row("oef.efficiency", MARK, 5.0),
        row("oef.cooperative", MARK, 4.5, problem="oef.envy_free", best_bound=4.5),
        row("oef.rounding", MARK, 4.6, aims="oef.envy_free", **ONLINE),
    ]
    assert priced(rows[2], rows).loss == pytest.approx(-0.1 / 4.5)


def test_prices_over_several_instances_span_them() -> None:
    rows = [
        row("oef.a", mark, 4.0, problem="oef.envy_free", price_of="envy-freeness", price_at_least=p, price_at_most=p)
        for mark, p in (("x", 0.1), ("y", 0.3))
    ]
    (one,) = prices(rows)
    assert (one.requires, one.base, one.at_least, one.at_most) == ("envy-freeness", "oef.allocation", 0.1, 0.3)
    lines = [block.text for block in blocks(Comparison({}, rows, {})) if isinstance(block, Line)]
    assert "prices: of the optimum of allocation, envy-freeness 10.0 % to 30.0 %" in lines


@pytest.mark.parametrize("aims", ["oef.allocation", "oef.envy_free"])
def test_what_a_method_is_made_for_restricts_its_problem(aims: str) -> None:
    with pytest.raises(UsageError, match="must be a problem that restricts"):
        heuristic("oef.wrong", problem="oef.envy_free", aims=aims)(lambda view, context: None)
    assert "oef.wrong" not in HEURISTICS


# ---------------------------------------------------------------- headlines

ROUNDED = {"aims": "oef.envy_free"} | ONLINE
PRICED = {"price_of": "envy-freeness", "price_at_least": 0.1, "price_at_most": 0.1}


def zhou(method: str, objective: float, bound: float = 100.0, **fields: Any) -> Row:
    """Return a verified row of a minimisation problem whose optimum is not certified."""
    gap = (objective - bound) / bound
    about = {"problem": "zhou.ps.completion", "sense": "min", "ratio_is_upper": True} | BASE
    return row(f"zhou.ps.{method}", MARK, objective, bound, gap=gap, ratio=objective / bound, **(about | fields))


def hadar(method: str, objective: float, bound: float = 8.0, mark: str = MARK, **fields: Any) -> Row:
    about = {"problem": "hadar.utility", "kind": "online", "status": "feasible"}
    return row(f"hadar.{method}", mark, objective, bound, **(about | fields))


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (
            [
                row(
                    "oef.rounding",
                    MARK,
                    4.4,
                    aims="oef.envy_free",
                    loss=0.1 / 4.5,
                    loss_is_upper=False,
                    **ONLINE,
                    **PRICED,
                )
            ],
            "oef.rounding is 12.0 % from optimal: the price of envy-freeness is 10.0 %, its own loss 2.2 %",
        ),
        (
            [row("oef.rounding", MARK, 4.4, loss=0.0223, loss_is_upper=True, **ROUNDED)],
            "oef.rounding is 12.0 % from optimal: its own loss at most 2.3 %",
        ),
        (
            [zhou("online", 534.82, kind="online"), zhou("online?alpha=1", 181.21, kind="online"), zhou("drf", 367.6)],
            "zhou.ps.online (alpha=4) is at most 435 % from optimal, with alpha=1 at most 81.3 %; "
            "baseline ps.drf at most 268 %",
        ),
        (
            [
                zhou("online", 534.82, kind="online", price_of="no preemption", price_at_least=0, price_at_most=0.0251),
                zhou("drf", 367.6),
                zhou("tiresias", 136.31, problem="zhou.ps.preemptive"),
            ],
            "zhou.ps.online is at most 435 % from optimal; best baseline ps.tiresias at most 36.4 %, where jobs may "
            "be interrupted; the price of no preemption is at most 2.6 %",
        ),
        (
            [hadar("online", 0.0, metrics={"completed": 0}), hadar("gavel", 6.0, **BASE)],
            "hadar.online completes no job, where the optimum is 8; baseline gavel 25.0 %",
        ),
        (
            [hadar("online", 0.0, ratio_is_upper=True), hadar("gavel", 0.0, **BASE, metrics={"completed": 0})],
            "hadar.online reaches 0, where the optimum is at most 8; baseline gavel completes no job, where the "
            "optimum is 8",
        ),
        (
            [hadar("online", u, mark=m, metrics={"completed": c}) for u, m, c in ((0.0, "x", 0), (6.0, "y", 3))],
            "hadar.online completes no job in 1 of 2 results",
        ),
        ([hadar("online", 0.0, 0.0, gap=0.0)], "hadar.online reaches 0, and nothing is worth more than 0"),
    ],
)
def test_answers(rows: list[Row], text: str) -> None:
    assert answer(rows) == text


@pytest.mark.parametrize("upper", [True, False])
def test_headline_and_table_show_the_same_digits(upper: bool) -> None:
    rows = [
        hadar("online", 8.0 * (1 - g), seed=seed, ratio_is_upper=upper) for seed, g in enumerate((0.1274, 0.02, 0.0549))
    ]
    content = table("", SUMMARY, by_method(rows))
    (cells,) = content.rows
    shown = {column.key: cell.text for column, cell in zip(content.columns, cells, strict=True)}
    largest, median = shown["largest_gap"].removeprefix("≤ "), shown["median_gap"].removeprefix("≤ ")
    sign, worst = ("at most ", "") if upper else ("", " at worst")
    assert answer(rows) == f"hadar.online is {sign}{largest}{worst} (median {sign}{median}) from optimal"
    gap = next(column for column in COMPARE if column.key == "gap")
    assert gap.cell(rows[0]).text == largest == ("12.8 %" if upper else "12.7 %")


def SUMMARY_SHOWN(rows: list[Row]) -> Any:
    return table("", SUMMARY, by_method(rows)).columns
