"""Parameters of methods: an id with settings means the same wherever an id can be written."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedgap.harness.studies.compare.methods import select
from schedgap.harness.studies.simulate.run import resolve
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.registry import Guarantee, HeuristicSpec
from schedgap.heuristics.simulator import POLICIES
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.parameters import Parameter, Parametrised, configured, extended
from schedgap.instances.registry import Registry
from schedgap.models import MODELS


def run(view: Any, context: Any, *, arch: str = "ps", alpha: float | str = 4.0, carry: bool = True) -> Any:
    return arch, alpha, carry


def guarantee(view: Any, *, alpha: float | str = 4.0) -> Guarantee:
    return Guarantee(f"4α for {alpha}")


ALPHA = Parameter("alpha", "windows of a batch", choices=("formula",), least=1)
CARRY = Parameter("carry", "what is left goes on")


def spec(**more: Any) -> HeuristicSpec:
    fields = {"parameters": (ALPHA, CARRY), "variants": ("alpha=1",), "guarantee": guarantee}
    return HeuristicSpec("zhou.x", "zhou", "zhou.ps.completion", "online", partial(run, arch="ra"), **fields | more)


@pytest.fixture
def registry() -> Registry[HeuristicSpec]:
    found: Registry[HeuristicSpec] = Registry("heuristic")
    found.register(spec())
    return found


@pytest.mark.parametrize(
    ("name", "id_", "settings"),
    [
        ("zhou.x", "zhou.x", ("ra", 4.0, True)),
        ("zhou.x?alpha=4&carry=yes", "zhou.x", ("ra", 4.0, True)),
        ("zhou.x?alpha=1", "zhou.x?alpha=1", ("ra", 1.0, True)),
        ("zhou.x?carry=no&alpha=formula", "zhou.x?alpha=formula&carry=false", ("ra", "formula", False)),
        ("zhou.x?alpha=2.5e0", "zhou.x?alpha=2.5", ("ra", 2.5, True)),
        ("zhou.x?alpha=2.50000001", "zhou.x?alpha=2.50000001", ("ra", 2.50000001, True)),
    ],
)
def test_an_id_states_the_settings_that_matter(
    registry: Registry[HeuristicSpec], name: str, id_: str, settings: Any
) -> None:
    found = registry.get(name)
    assert found.id == id_
    assert found.run(None, None) == settings
    assert found.guarantee(None).text == f"4α for {settings[1]}"
    assert registry.get(found.id).id == id_
    assert name in registry


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("zhou.x?alpha=0", "zhou.x: alpha = '0': must be a number of at least 1, or formula"),
        ("zhou.x?alpha=nan", "must be a number of at least 1, or formula"),
        ("zhou.x?carry=maybe", "must be true or false"),
        ("zhou.x?beta=1", "unknown parameter 'beta'; it takes alpha, carry"),
        ("zhou.x?alpha", "'alpha' is not key=value (write zhou.x?name=value&name=value)"),
        ("zhou.x?alpha=1&alpha=2", "'alpha' is given twice"),
        ("zhou.y?alpha=1", "unknown heuristic 'zhou.y'; did you mean zhou.x"),
    ],
)
def test_wrong_settings_are_refused_with_the_range(registry: Registry[HeuristicSpec], name: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        registry.get(name)
    assert message in str(error.value)


def test_variants_are_entries_and_patterns_set_methods(registry: Registry[HeuristicSpec]) -> None:
    assert registry.ids() == ["zhou.x", "zhou.x?alpha=1"]
    assert [s.id for s in registry.matching(["zhou.*"])] == registry.ids()
    assert [s.id for s in registry.matching(["zhou.*?carry=no"])] == ["zhou.x?carry=false"]


def test_a_parameter_that_no_function_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="no function takes the parameter 'other'"):
        Registry("heuristic").register(spec(parameters=(Parameter("other", ""),), variants=()))


def test_a_method_without_parameters_says_so() -> None:
    with pytest.raises(UnknownNameError, match=r"oef\.rounding: unknown parameter 'x'; it has no parameters"):
        select(["oef.rounding?x=1"], [])
    with pytest.raises(UnknownNameError, match="it has no parameters"):
        resolve(["srtf?x=1"])


SPECS: list[Parametrised] = [s for registry in (MODELS, HEURISTICS, POLICIES) for s in registry]  # type: ignore[attr-defined]


@pytest.mark.parametrize("one", [s for s in SPECS if s.parameters and not s.settings], ids=lambda s: s.id)
def test_declared_ranges_hold_the_defaults(one: Parametrised) -> None:
    for parameter in one.parameters:
        text = str(one.default(parameter)).lower()
        assert configured(one, f"{parameter.name}={text}") is one
        assert parameter.meaning


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_number_in_range_comes_back(value: float) -> None:
    parameter = Parameter("x", "a number", least=-2, most=1e6)
    if -2 <= value <= 1e6:
        assert parameter.read(repr(value), 0.0) == value
    else:
        with pytest.raises(ValueError, match=r"."):
            parameter.read(repr(value), 0.0)


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("gen/a",), "gen/a"),
        (("gen/a", ""), "gen/a"),
        (("gen/a", "load=1"), "gen/a?load=1"),
        (("gen/a?load=1", "seed=2"), "gen/a?load=1&seed=2"),
        (("gen/a", "load=1", "", "seed=2"), "gen/a?load=1&seed=2"),
    ],
)
def test_further_settings_follow_those_of_a_name(parts: tuple[str, ...], name: str) -> None:
    assert extended(*parts) == name
