"""What configurations of one server can prove: in each slot alone, or over time, where workers stay where they are.

Items are workers of runs, with a size and the slots that they hold. A share of a run is spread over servers: the least
number of servers that hold given amounts of items is a linear program, whose columns are what one server can hold in a
slot, or over time. Both are in docs/experiments.md, with what they mean for bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

SERVER = 4
"""Capacity of a server of the second test."""


class Item(NamedTuple):
    """Equal workers of one run: the size of each, and the slots ``first … end − 1`` that they hold."""

    size: int
    first: int
    end: int


def held(items: list[Item], capacity: int, slots: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of each item that one server can hold in all of these slots at once."""
    for numbers in product(*(range(capacity // item.size + 1) for item in items)):
        if all(
            sum(n * i.size for n, i in zip(numbers, items, strict=True) if i.first <= t < i.end) <= capacity
            for t in slots
        ):
            yield numbers


def servers(items: list[Item], amounts: list[float], capacity: int, slots: Iterable[int]) -> float:
    """Return the least number of servers that hold these amounts of items, as mixtures of what one server can hold."""
    columns = np.array(list(held(items, capacity, slots))).T
    found = linprog(np.ones(columns.shape[1]), A_ub=-columns, b_ub=-np.array(amounts))
    assert found.status == 0
    return float(found.fun)


def by_slot(items: list[Item], amounts: list[float], capacity: int) -> float:
    """Return the least number of servers if all items may change their servers in every slot."""
    needs = []
    for t in range(max(item.end for item in items)):
        here = [k for k, item in enumerate(items) if item.first <= t < item.end]
        if here:
            needs.append(servers([items[k] for k in here], [amounts[k] for k in here], capacity, [t]))
    return max(needs)


def over_time(items: list[Item], amounts: list[float], capacity: int) -> float:
    """Return the least number of servers if all items stay where they are: the configuration flow."""
    return servers(items, amounts, capacity, range(max(item.end for item in items)))


def test_five_workers_need_more_servers_if_they_stay_where_they_are() -> None:
    """Any two of these that share a slot fit together, or not, in the way of a cycle of five."""
    items = [Item(2, 0, 3), Item(4, 0, 1), Item(3, 0, 2), Item(3, 1, 3), Item(4, 2, 3)]
    assert by_slot(items, [1.0] * 5, 5) == pytest.approx(2)
    assert over_time(items, [1.0] * 5, 5) == pytest.approx(2.5)


@st.composite
def divided(draw: st.DrawFn) -> tuple[list[Item], list[float]]:
    """Items whose sizes divide one another and the server, and amounts of them."""
    items = []
    for _ in range(draw(st.integers(1, 4))):
        first = draw(st.integers(0, 3))
        items.append(Item(draw(st.sampled_from([1, 2, 4])), first, draw(st.integers(first + 1, 4))))
    return items, [draw(st.integers(1, 12)) / 4 for _ in items]


@settings(max_examples=60)
@given(divided())
def test_staying_costs_nothing_where_every_server_can_be_full_of_equal_workers(
    case: tuple[list[Item], list[float]],
) -> None:
    """Then a server that holds workers of one run at a time is as good: it is one channel, and runs are intervals."""
    items, amounts = case
    load = [sum(a * i.size for a, i in zip(amounts, items, strict=True) if i.first <= t < i.end) for t in range(4)]
    assert by_slot(items, amounts, SERVER) == pytest.approx(max(load) / SERVER)
    assert over_time(items, amounts, SERVER) == pytest.approx(max(load) / SERVER)


@settings(max_examples=60)
@given(divided(), st.integers(5, 7))
def test_a_flow_is_between_slots_and_servers_of_one_run(case: tuple[list[Item], list[float]], capacity: int) -> None:
    """It is at least what single slots need, and at most what is needed if a server holds one run at a time."""
    items, amounts = case
    shares = [a / (capacity // i.size) for a, i in zip(amounts, items, strict=True)]
    alone = max(sum(s for s, i in zip(shares, items, strict=True) if i.first <= t < i.end) for t in range(4))
    flow = over_time(items, amounts, capacity)
    assert by_slot(items, amounts, capacity) <= flow + 1e-7
    assert flow <= alone + 1e-7
