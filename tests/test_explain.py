"""``harness explain``: every model has a statement that agrees with its code, its papers' numbers and its sizes."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from matplotlib.mathtext import MathTextParser

from schedgap import harness, instances
from schedgap.harness.explain import find
from schedgap.harness.explain.mathematics import MathematicsError, prose, to_plain
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.registry import HeuristicSpec
from schedgap.heuristics.statements import statement
from schedgap.instances.errors import UnknownNameError
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import PAPERS
from schedgap.instances.views import admission
from schedgap.models import MODELS, ModelSpec, counting, elastic
from schedgap.models.admission.columns import admitting
from schedgap.models.explain import FORMULATIONS, Formulation, Row
from schedgap.models.hadar.schedules import schedules
from schedgap.models.solve import SolveOptions, StandardForm, build, compile_model
from schedgap.models.zhou.columns import completing, weighing

ROOT = Path(__file__).resolve().parents[1]
MATHTEXT = MathTextParser("path")
each_model = pytest.mark.parametrize("spec", list(MODELS), ids=lambda s: s.id)


def view(paper: str, reference: str) -> Any:
    return PAPERS.get(paper).view(instances.load(reference))


@cache
def compiled(name: str) -> StandardForm:
    spec = MODELS.get(name)
    return compile_model(build(spec.build, view(spec.paper, FORMULATIONS.get(name).example)))


def shape(form: StandardForm) -> tuple[int, int, int, int]:
    return (*form.matrix.shape, form.matrix.nnz, int(form.integer.sum()))


def names(components: Any) -> set[str]:
    return {c.parent_component().local_name for c in components}


def rows_of(formulation: Formulation) -> tuple[Row, ...]:
    return (formulation.objective, *formulation.constraints)


def texts_of(f: Formulation) -> list[str]:
    symbols = (*f.sets, *f.data, *f.variables)
    notes = [row.note for row in rows_of(f)]
    return [f.decides, f.duals, f.solved, f.difference, *f.errata, *(s.meaning for s in symbols), *notes]


def formulas_of(f: Formulation) -> set[str]:
    symbols = {s.latex for s in (*f.sets, *f.data, *f.variables)}
    rows = {latex for row in rows_of(f) for latex in (row.latex, row.every) if latex}
    inline = {latex for text in texts_of(f) for latex in re.findall(r"\$([^$]*)\$", text)}
    return symbols | rows | inline


def test_every_model_has_a_statement() -> None:
    assert set(FORMULATIONS.ids()) == set(MODELS.ids())
    for formulation in FORMULATIONS:
        assert formulation.decides
        assert formulation.duals
        assert formulation.constraints
        if formulation.variant_of:
            assert formulation.variant_of in FORMULATIONS
            assert formulation.difference


def test_every_heuristic_of_a_paper_has_a_statement() -> None:
    for spec in HEURISTICS:
        if spec.source != "README":  # other tests may have registered one
            assert all(prose(step) for step in statement(base_id(spec.id)))
            assert statement(base_id(spec.id)), spec.id


def test_a_heuristic_of_ones_own_shows_its_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    def mine(seen: Any, context: Any) -> None:
        """Give $1 to everybody."""

    own = HeuristicSpec("oef.mine", "oef", "oef.allocation", "baseline", mine, source="README")
    monkeypatch.setitem(HEURISTICS._entries, own.id, own)
    found = harness.explain("oef.mine")
    assert "Give $1 to everybody." in found.text
    assert r"Give \$1 to everybody." in found.latex


def test_every_formula_is_known_latex() -> None:
    formulas = set().union(*(formulas_of(f) for f in FORMULATIONS))
    for spec in HEURISTICS:
        formulas |= {latex for step in statement(spec.id) for latex in re.findall(r"\$([^$]*)\$", step)}
    assert len(formulas) > 150
    for latex in formulas:
        assert to_plain(latex), latex
        assert "\\" not in to_plain(latex), latex


def test_another_parser_takes_the_rows() -> None:
    """That of matplotlib, which is not ours; of two signs it has only the longer names."""
    for latex in {row.latex for formulation in FORMULATIONS for row in rows_of(formulation)}:
        MATHTEXT.parse("$" + latex.replace(r"\le ", r"\leq ").replace(r"\ge ", r"\geq ") + "$")


@each_model
def test_the_statement_names_the_parts_of_the_code(spec: ModelSpec) -> None:
    formulation, form = FORMULATIONS.get(spec.id), compiled(spec.id)
    rows = {part for row in formulation.constraints for part in row.parts}
    assert names(form.rows) <= rows
    assert names(form.columns) <= {s.part for s in formulation.variables}
    source = "".join(path.read_text() for path in (ROOT / "models").rglob("*.py"))
    for part in rows:
        assert f"def {part}(m" in source or f"m.{part} = " in source, part


@each_model
def test_the_sense_is_that_of_the_code(spec: ModelSpec) -> None:
    formulation, form = FORMULATIONS.get(spec.id), compiled(spec.id)
    stated = formulation.sense or spec.sense
    # Column generation maximises the negative of a cost.
    assert form.maximise == (stated == "max") or "negative" in formulation.objective.note


@each_model
def test_equation_numbers_are_those_of_the_code(spec: ModelSpec) -> None:
    """They stand in the docstrings and sources of the paper's models, and in the names of constraints."""
    docs = documented(spec.paper)
    for row in rows_of(FORMULATIONS.get(spec.id)):
        for number in filter(None, row.equation.split("–")):
            assert printed(number, docs), f"({number}) is in no docstring of models of {spec.paper}"
        for part in row.parts:
            if named := re.search(r"_(\d+[a-z]?)(?:_\d+)?$", part):
                assert named[1] in f"{row.equation} {row.note}", f"{part} is not ({row.equation})"


@cache
def documented(paper: str) -> str:
    """Docstrings of the modules and packages that the paper's models are built in, and their sources."""
    found = []
    for spec in MODELS:
        module = inspect.getmodule(getattr(spec.build, "func", spec.build))
        if spec.paper == paper and module:
            members = [part for _, part in inspect.getmembers(module, inspect.isfunction)]
            homes = [module, importlib.import_module(module.__name__.rsplit(".", 1)[0])]
            found += [spec.source, *(inspect.getdoc(part) or "" for part in (*homes, *members))]
    return "\n".join(dict.fromkeys(found))


def printed(number: str, docs: str) -> bool:
    """Whether a number is in a text, by itself or within a range such as (9a)–(9c), (2)–(2o) or (1)–(5)."""
    if re.search(rf"\b{number}\b", docs):
        return True
    digits, letter = re.fullmatch(r"(\d+)([a-z]?)", number).groups()  # type: ignore[union-attr]
    for first, a, last, b in re.findall(r"\(?\b(\d+)([a-z]?)\)?–\(?(\d+)([a-z]?)\b", docs):
        if letter and first == last == digits and a <= letter <= b:
            return True
        if not letter and int(first) <= int(digits) <= int(last):
            return True
    return False


@each_model
def test_a_solve_reports_the_size_of_the_statement(spec: ModelSpec) -> None:
    formulation = FORMULATIONS.get(spec.id)
    if formulation.solved:
        assert spec.procedure is not None
        return
    seen = view(spec.paper, formulation.example)
    assert spec.skip(seen) is None
    assert spec.too_large(seen) is None
    size = spec.run(seen, SolveOptions(time_limit_s=0.3)).solution.size
    assert (size.rows, size.columns, size.nonzeros, size.integers) == shape(compiled(spec.id))


@pytest.mark.parametrize("name", ["hadar.p1", "hadar.p2.columns", "oef.gavel", "synergy.ilp1", "zhou.ra.dual"])
def test_sizes_are_those_of_the_compiled_model(name: str) -> None:
    sizes = harness.explain(name).sizes[name]
    assert (sizes.rows, sizes.columns, sizes.nonzeros, sizes.integers) == shape(compiled(name))
    assert sum(sizes.parts.values()) == (sizes.rows or 0) + (sizes.columns or 0)
    assert sizes.instance == FORMULATIONS.get(name).example


def test_models_that_generate_columns_say_how_many_there_are() -> None:
    for spec in MODELS:
        assert (FORMULATIONS.get(spec.id).implied is not None) == (".columns" in spec.id)


def test_implied_columns_are_counted_as_they_are_enumerated() -> None:
    gangs = view("hadar", "paper/hadar-fig1?slot_s=2")
    assert round(10 ** counting.gang_schedules(gangs)[0]) == len(schedules(gangs).job)
    for arch in ("ps", "ra"):
        a = view("zhou", "gen/20jobs?jobs=3").architectures[arch]
        for jobs in (completing(a), weighing(a)):
            listed = elastic.schedules(jobs.machines, jobs.options, jobs.earliest, jobs.slots)
            assert round(10 ** counting.elastic_schedules(jobs)[0]) == len(listed.job)
    seen = view("admission", "paper/walkthrough")
    for problem in (admission.UTILITY.id, admission.FROM_ARRIVAL.id):
        listed = elastic.schedules(seen.machines, seen.options, seen.first_start(problem), seen.deadline)
        assert round(10 ** counting.elastic_schedules(admitting(seen, problem))[0]) == len(listed.job)


def test_gangs_with_many_mixes_are_counted_from_below(monkeypatch: pytest.MonkeyPatch) -> None:
    gangs = view("hadar", "paper/hadar-fig1")
    whole, partly = counting.gang_schedules(gangs)
    assert not partly
    monkeypatch.setattr(counting, "BUDGET", 3)
    less, partly = counting.gang_schedules(gangs)
    assert partly
    assert less < whole


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        (r"\sum_j \sum_{t \le f} w_{j,t,r} \cdot X_j^r \ge E_j N_j", "Σ_j Σ_{t ≤ f} w[j,t,r]·X_j^r ≥ E_j N_j"),
        (r"P_{j,t} = P_{j,t+1} + v_{j,t}", "P[j,t] = P[j,t+1] + v[j,t]"),
        (r"\frac{1}{\pi_l} \cdot \frac{a + b}{c}", "1/π_l·(a + b)/c"),
        (r"x \in \{0, \ldots, \min(W_j, C^r)\}", "x ∈ {0, …, min(W_j, C^r)}"),
        (r"-1 \le x - y \le (-z)", "−1 ≤ x − y ≤ (−z)"),
        (r"\hat{t}_l + t^- + 2^{i-1}", "t̂_l + t⁻ + 2^(i−1)"),
        (r"\max_s \varphi_j(s)", "max_s φ_j(s)"),
        (r"\left( \sum_t b_t \right)", "(Σ_t b_t)"),
        (r"U_{\max}^r \text{ of } k \colon q = 1", "U_max^r of k: q = 1"),
    ],
)
def test_latex_becomes_plain(latex: str, plain: str) -> None:
    assert to_plain(latex) == plain


@pytest.mark.parametrize("latex", [r"\sum_{j", "a}", r"\frac{1}", r"\unknown", "x_"])
def test_broken_latex_is_an_error(latex: str) -> None:
    with pytest.raises(MathematicsError):
        to_plain(latex)


def test_a_dollar_needs_its_partner() -> None:
    assert prose("costs $k^r_t$ per slot") == "costs k^r_t per slot"
    with pytest.raises(MathematicsError, match="partner"):
        prose("costs $5")


def test_names_are_models_families_or_patterns() -> None:
    assert find("hadar.p1") == ["hadar.p1"]
    assert {"hadar.p2.enumerated", "hadar.p2.columns"} < set(find("hadar.p2"))
    assert set(find("zhou.??.dual")) == {"zhou.ps.dual", "zhou.ra.dual"}
    assert find("synergy.tune") == ["synergy.tune"]
    with pytest.raises(UnknownNameError, match=r"did you mean hadar\.p2\.columns"):
        find("hadar.p2.column")


def test_a_family_shows_variants_in_short() -> None:
    text = harness.explain("hadar.p2").text
    assert "As hadar.p2.enumerated. Every job completes" in text
    assert text.count("subject to") == 2
    assert "columns implied: 214,074" in text
    alone = harness.explain("hadar.p2.columns.complete").text
    assert "Σ_{s ∈ S_j'} x[j,s] = 1" in alone


def test_text_has_equations_numbers_and_sizes() -> None:
    text = harness.explain("hadar.p1").text
    assert re.search(r"Σ_j w\[j,t,r\] ≤ C\^r    for all t, r +\(1d\) +×24", text)
    assert "219 rows, 184 columns, 137 of them integer, 697 nonzeros" in text
    assert max(map(len, text.splitlines())) <= 120


def test_parameters_that_only_a_simulation_takes_are_told_apart() -> None:
    both, alone = harness.explain("synergy.tune.srtf").text.split("parameters of its simulation")
    assert "order = demand: demand or policy" in both
    assert "order = demand" not in alone
    assert "profiles = true: true or measured" in alone
    assert "simulation" not in harness.explain("synergy.tune").text


def test_large_models_are_not_built_unasked() -> None:
    sizes = harness.explain("hadar.p1", "gen/20jobs").sizes["hadar.p1"]
    assert sizes.rows is None
    assert "above its stated size" in sizes.sentence
    built = harness.explain("oef.cooperative.full", "gen/oef-scale?tenants=160", large=True).sizes
    assert built["oef.cooperative.full"].rows == 160 * 159 + 10


def test_an_instance_without_the_view_is_a_reason() -> None:
    sizes = harness.explain("hadar.p1", "paper/oef-eq1").sizes["hadar.p1"]
    assert sizes.rows is None
    assert sizes.reason


def test_latex_balances() -> None:
    latex = harness.explain("oef").latex + harness.explain("zhou.ra.*line").latex
    stack: list[str] = []
    for what, environment in re.findall(r"\\(begin|end)\{([a-z*]+)\}", latex):
        if what == "begin":
            stack.append(environment)
        else:
            assert stack.pop() == environment
    assert not stack
    assert latex.count("{") - latex.count(r"\{") == latex.count("}") - latex.count(r"\}")
    assert not re.search(r"(?<!\\)[%#]", latex)
    # \intertext stands right after a line break, and no formula ends with one.
    assert not re.search(r"(?<!\\\\) \\intertext", latex)
    assert not re.search(r"\\\\\s*\\end\{align", latex)


def test_notebooks_get_html_and_markdown() -> None:
    found = harness.explain("oef.cooperative", instances.load("paper/oef-eq6"))
    page = found._repr_html_()
    assert r"\tag{10c}" in page
    assert page.count("<p>") == page.count("</p>")
    assert "<script" not in page
    assert "$$" in found._repr_markdown_()
    assert r"\begin{align*}" in found._repr_latex_()


def test_strangers_text_is_harmless() -> None:
    known = instances.load("paper/oef-eq1")
    text = (
        known.model_dump_json().replace("GPU1", "A%_$<i>\u202e").replace('"name":"paper/oef-eq1"', '"name":"<b>boo$"')
    )
    hostile = type(known).model_validate_json(text)
    assert hostile.name == "<b>boo$"
    found = harness.explain("oef.efficiency", hostile)
    assert "\u202e" not in found.text
    assert "<b>boo" not in found._repr_html_()
    assert "<i>" not in found._repr_html_()
    assert "<code>3 tenants share 1 A%_$&lt;i&gt;" in found._repr_html_()  # MathJax leaves code alone
    assert r"A\%\_\$<i>" in found.latex


def test_command_line(command: Command) -> None:
    run = command("explain", "oef.gavel", "--format", "json", "--instance", "paper/oef-eq3")
    assert run.returncode == 0
    (told,) = json.loads(run.stdout)
    assert told["sizes"]["rows"] == 5
    rows = [line for block in told["blocks"] if block["kind"] == "rows" for line in block["lines"]]
    assert {row["equation"] for row in rows} == {"3", "4b"}
    assert command("explain", "hadar.online").stdout.count("2α") == 1


def test_an_unknown_name_is_one_line(command: Command) -> None:
    run = command("explain", "oef.coop")
    assert run.returncode == 2
    assert "did you mean oef.cooperative" in run.stderr
