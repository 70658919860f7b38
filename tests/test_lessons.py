"""What notebooks share: sliders with and without ipywidgets, and comparisons within their own process."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import altair as alt
import IPython.display
import pytest
from conftest import ROOT

from schedgap import instances
from schedgap.harness.ask import lessons
from schedgap.harness.show.drawing import figures
from schedgap.harness.show.figure import ENLARGED
from schedgap.harness.show.page import to_fragment
from schedgap.harness.show.page.frame import TEMPLATES
from schedgap.harness.show.plots.style import rows
from schedgap.harness.show.table import Line, left_out
from schedgap.harness.studies.compare.run import compare, compare_here
from schedgap.instances.errors import UsageError


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of objects that a notebook cell would display."""
    shown: list[Any] = []
    monkeypatch.setattr(IPython.display, "display", shown.append)
    return shown


def dot() -> alt.Chart:
    return alt.Chart(rows([{"x": 1}])).mark_point().encode(x="x:Q")


def doubled(times_two: int = 2, figure: bool = False) -> tuple[alt.Chart | str, ...]:
    """Return a text that depends on the slider, and a figure if asked for."""
    return (f"<{2 * times_two}>", *([dot()] if figure else []))


def test_sliders_redraw_what_they_change(displayed: list[Any]) -> None:
    pytest.importorskip("ipywidgets")
    lessons.interact(doubled, times_two=(0, 5), figure=False)
    slider, box, page = displayed[0].box.children
    assert (slider.description, slider.value, box.value) == ("times two", 2, False)
    assert "&lt;4&gt;" in page.value
    slider.value = 5
    assert "&lt;10&gt;" in page.value
    assert "<img" not in page.value
    box.value = True
    assert "&lt;10&gt;" in page.value
    assert "data:image/png" in page.value
    bundle = displayed[0]._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "Shown for times two 2, figure False;" in bundle["text/html"]
    assert "&lt;4&gt;" in bundle["text/html"]


def test_without_widgets_the_first_picture_is_shown(displayed: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    lessons.interact(doubled, times_two=(0, 5), figure=False)
    assert "&lt;4&gt;" in displayed[0].data


def test_figures_are_shown_with_their_alternative_text(displayed: list[Any]) -> None:
    lessons.show(dot(), "an empty picture")
    lessons.show([dot(), dot()], "two")
    assert [image.alt for image in displayed] == ["an empty picture", "two", "two"]


def test_letters_are_as_large_in_a_small_chart_as_in_a_large_one(displayed: list[Any]) -> None:
    for width in (100, 200, 2000):
        lessons.show(dot().properties(width=width), "a dot")
    small, larger, widest = (image.width for image in displayed)
    assert larger - small == pytest.approx(100 * ENLARGED, abs=1)
    assert widest == lessons.MOST_PX


def test_exercises_check_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    sealed = lessons.seal(2.0)
    checked = [lessons.check(answer, sealed, "Twice.") for answer in (..., None, 1, -2, 0, 2.001, 1.999, 2.01)]
    assert [bool(one) for one in checked] == [False] * 5 + [True, True, False]
    assert repr(checked[0]) == "", "an open exercise says nothing"
    assert lessons.check(0, lessons.seal(0))
    assert not lessons.check(0.001, lessons.seal(0))
    for one in checked[:5]:
        one._ipython_display_()
    assert capsys.readouterr().out.splitlines() == [
        "✗ There is no number: is the model infeasible?",
        *(f"✗ {wrong} is not it yet, to three digits. Twice." for wrong in (1, -2, 0)),
    ]
    assert str(checked[5]) == "✓ Right."


@pytest.mark.parametrize("answer", ["2", (1, 2), True, float("nan"), float("inf"), [2.0], 2j])
@pytest.mark.parametrize("before", [None, 3.0])
def test_what_is_no_number_is_refused_in_words(answer: Any, before: float | None) -> None:
    refused = lessons.check(answer, lessons.seal(2.0), before=before)
    assert not refused
    assert str(refused) == "✗ The answer is one number, such as 2.71."


def test_a_lesson_without_answers_keeps_its_exercises(tmp_path: Path) -> None:
    for lesson in sorted((ROOT / "notebooks").glob("*.ipynb")):
        lessons.without_answers(lesson, tmp_path / lesson.name)
        before, after = (json.loads(path.read_text())["cells"] for path in (lesson, tmp_path / lesson.name))
        assert "<details>" not in str(after)
        assert [cell for cell in after if cell["cell_type"] == "code"] == [
            cell for cell in before if cell["cell_type"] == "code"
        ]
        assert str(after).count("lessons.check(") == str([c for c in before if c["cell_type"] == "code"]).count(
            "lessons.check("
        )
        assert len(after) < len(before)


@pytest.mark.parametrize("text", [None, "no notebook", "{}"])
def test_what_is_no_lesson_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "one.ipynb").write_text(text)
    with pytest.raises(UsageError, match=r"one\.ipynb"):
        lessons.without_answers(tmp_path / "one.ipynb", tmp_path / "two.ipynb")


def test_a_model_that_nobody_has_changed_is_an_open_exercise() -> None:
    sealed = lessons.seal(2.0)
    said = [str(lessons.check(answer, sealed, "Twice.", before=3.0)) for answer in (..., 3.0, 3.0 + 1e-9, 2.0, 2.5)]
    assert said == ["", "", "", "✓ Right.", "✗ 2.5 is not it yet, to three digits. Twice."]
    assert "infeasible" in str(lessons.check(None, sealed, before=3.0))


def test_compare_here_certifies_as_the_harness_does() -> None:
    comparison = compare_here(instances.load("paper/oef-eq1"), ["oef.cooperative", "oef.maxmin", "oef.sharing*"])
    table = comparison.table.set_index("method")
    assert comparison.ok
    assert table.verified.all()
    assert table.objective["oef.cooperative"] == pytest.approx(4.5)
    assert table.gap["oef.maxmin"] == pytest.approx(1 - 4 / table.objective["oef.sharing_incentive"])
    assert "oef.maxmin" in to_fragment(comparison)
    assert figures(comparison, "gap")


def test_a_notebook_names_the_frame_where_a_terminal_names_an_option() -> None:
    skipped = Line("hadar: 7 skipped: too large 7; -v lists them")
    lines = [("Line", Line("The answer.")), *(("Line", line) for line in left_out(2)), ("Line", skipped)]
    page = TEMPLATES.get_template("fragment.html.j2").render(blocks=lines)
    assert "2 more rows in .table</p>" in page
    assert "7 skipped: too large 7; .table says why</p>" in page
    assert "--all-rows" not in page


def test_ipython_shows_results_as_their_page_does() -> None:
    code = (
        "from IPython.core.interactiveshell import InteractiveShell; shell = InteractiveShell.instance()\n"
        "import schedgap as sg\n"
        "html = shell.display_formatter.formatters['text/html'](sg.Comparison({}, []))\n"
        "print('No method was run.' in html)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True", done.stderr


def test_a_kept_run_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(lessons.stored("lesson09").rows) == 450
    (below := tmp_path / "notebooks").mkdir()
    compare(instances.load("paper/oef-eq1"), "oef.gandiva_fair", bound=False, results=tmp_path / "results")
    (folder,) = (tmp_path / "results").iterdir()
    monkeypatch.chdir(below)
    assert [row.method for row in lessons.stored(folder.name).rows] == ["oef.gandiva_fair"]
    with pytest.raises(UsageError, match="results/mine is not here: open the notebook in the folder notebooks/"):
        lessons.stored("mine")
