"""Tidy data frames: a row per result, numbers as numbers, a column per parameter, and a meaning per column."""

from __future__ import annotations

import pandas as pd
import pytest

import schedgap as sg
from schedgap.harness.studies.compare.row import Comparison

METHODS = ["hadar.fifo", "hadar.online", "hadar.fluid", "zhou.ps.online", "zhou.ps.online?alpha=1"]


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    found = [sg.load(f"gen/20jobs?jobs=3{more}") for more in ("", "&load=1.2")]
    return sg.compare(found, METHODS, bound=False, jobs=1)


def test_parameters_of_instances_and_methods_are_columns(comparison: Comparison) -> None:
    table = comparison.table
    assert len(table) == len(comparison.rows)
    assert set(table["p.load"]) == {0.9, 1.2}, "the usual load where none is named"
    assert set(table["p.jobs"]) == {3}
    by_method = table.groupby("method")["m.alpha"].agg(["min", "max"])
    assert by_method.loc["zhou.ps.online?alpha=1"].tolist() == [1, 1]
    assert by_method.loc["zhou.ps.online"].tolist() == [4, 4]
    assert by_method.loc["hadar.fifo"].isna().all()
    assert not table.duplicated(["p.load", "method"]).any()


def test_numbers_are_numbers_and_proofs_are_words(comparison: Comparison) -> None:
    table = comparison.table
    for name in ("objective", "gap", "ratio", "solve_s", "cross_check", "loss"):
        assert pd.api.types.is_float_dtype(table[name]), name
    for row, proof in zip(comparison.rows, table["proof"], strict=True):
        assert (proof if isinstance(proof, str) else None) == {None: None, True: "upper", False: "exact"}[
            row.ratio_is_upper
        ]


def test_every_column_has_a_meaning(comparison: Comparison) -> None:
    meaning = comparison.columns
    assert list(meaning.index) == list(comparison.table)
    assert not [name for name, text in meaning.items() if not text]


def test_names_that_are_no_queries_state_nothing() -> None:
    assert sg.instances.catalogue.settings("my file?.json") == {}
    assert sg.instances.catalogue.settings("gen/20jobs?load=1.2&seed=7") == {"load": 1.2, "seed": 7}
    assert sg.instances.catalogue.usual("my file.json", "load") is None
