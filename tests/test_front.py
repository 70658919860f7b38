"""The front of the package: what it lists, a single name in place of a list, and how results print themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

import schedgap as sg
from schedgap.instances.errors import UnknownNameError, UsageError

EQ1 = "paper/oef-eq1"


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> sg.Comparison:
    return sg.compare(EQ1, "oef.rounding*", "oef", seeds=0, jobs=1, results=str(tmp_path_factory.mktemp("runs")))


def test_all_that_there_is_is_listed_and_can_be_had() -> None:
    listed = set(dir(sg))
    assert set(sg.__all__) | {"models", "heuristics", "certificates", "instances", "harness", "__version__"} == listed
    assert all(getattr(sg, name) is not None for name in listed)
    with pytest.raises(AttributeError, match="attribute nothing"):
        _ = sg.nothing  # type: ignore[attr-defined]


def test_one_name_stands_where_a_list_may(comparison: sg.Comparison) -> None:
    listed = sg.compare([EQ1], ["oef.rounding*"], ["oef"], seeds=[0], jobs=1)
    assert [row.method for row in comparison.rows] == [row.method for row in listed.rows]
    assert comparison.meta["command"] == listed.meta["command"]
    simulated = sg.simulate("paper/hadar-fig1", "hadar.fifo", jobs=1)
    assert [row.policy for row in simulated.rows] == ["hadar.fifo"]
    assert [row.id for row in sg.audit("oef", "oef.slip.coefficient", jobs=1).rows] == ["oef.slip.coefficient"]


def test_an_instance_is_not_named_by_a_number() -> None:
    with pytest.raises(TypeError, match="a string such as 'gen/200jobs' or a path, not int"):
        sg.load(5)  # type: ignore[arg-type]


def test_titles_tell_what_was_changed() -> None:
    plain = sg.load("gen/20jobs").title
    assert sg.load("gen/20jobs?jobs=5").title == f"{plain}; jobs = 5"
    assert sg.load("gen/20jobs?seed=3").title == plain


def test_options_that_there_are_not_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown option 'result'; did you mean results"):
        sg.compare(EQ1, "oef.maxmin", result="runs")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="jobs = -1: must be at least 0, which stands for one per core"):
        sg.compare(EQ1, "oef.maxmin", jobs=-1)


def test_a_run_is_read_from_a_text_or_a_path_as_it_was_returned(comparison: sg.Comparison) -> None:
    for folder in (comparison.folder, str(comparison.folder)):
        assert folder is not None
        again = sg.read_run(folder)
        assert (type(again), again.rows, again.folder) == (sg.Comparison, comparison.rows, comparison.folder)
        assert again.decision("oef.rounding").devices.tolist() == comparison.decision("oef.rounding").devices.tolist()


def test_results_show_themselves_in_one_line(comparison: sg.Comparison) -> None:
    simulated = sg.simulate("paper/hadar-fig1", "hadar.fifo", jobs=1)
    instance = sg.load("gen/20jobs")
    decisions = [comparison.decision("oef.rounding")]
    decisions += [
        sg.compare("gen/20jobs", m, jobs=1).decision(m) for m in ("hadar.fifo", "zhou.ps.drf", "synergy.tune")
    ]
    for one in (comparison, simulated, instance, *decisions):
        assert "\n" not in repr(one)
        assert len(repr(one)) < 250
        html = one._repr_html_()
        assert "<table" in html
        assert "<script" not in html
    assert repr(instance) == str(instance) == "Instance(gen/20jobs: 20 jobs, 5 tenants, 12 GPUs)"
    assert repr(comparison) == f"Comparison({EQ1}, 2 rows, {comparison.folder})"
    assert repr(sg.explain("oef.efficiency")) == "Explanation(oef.efficiency)"
    assert repr(simulated) == "Simulation(paper/hadar-fig1, 1 row)"
    assert repr(decisions[0]).startswith("oef.Allocation(devices 3×2")


def test_a_figure_is_saved_under_a_text(comparison: sg.Comparison, tmp_path: Path) -> None:
    path = sg.figures(comparison, "gap")[0].save(str(tmp_path / "gap.svg"))
    assert path.read_text().startswith("<svg")
