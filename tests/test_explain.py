"""``harness explain``: docstrings state every model, and agree with its code, its sizes and its paper's numbers."""

from __future__ import annotations

import inspect
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest
from conftest import Command
from pylatexenc.latexwalker import LatexWalker
from pyomo.core.expr import identify_variables

import schedgap as sg
from schedgap import instances
from schedgap.harness.ask.explain import find, stated
from schedgap.harness.ask.explain.costs import Cost, cost
from schedgap.harness.ask.explain.docstrings import Block, blocks, documentation
from schedgap.harness.ask.explain.formats import plain
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.registry import HeuristicSpec
from schedgap.instances.errors import UnknownNameError
from schedgap.instances.registry import PAPERS
from schedgap.instances.views import admission
from schedgap.models import MODELS, ModelSpec
from schedgap.models.admission.columns import admitting
from schedgap.models.engine import moldable
from schedgap.models.engine.moldable.placements import moldable_schedules
from schedgap.models.engine.solve import SolveOptions, StandardForm, build, compile_model, solve
from schedgap.models.hadar import schedules as counting
from schedgap.models.hadar.schedules import schedules
from schedgap.models.zhou.columns import completing, weighing

ROOT = Path(__file__).resolve().parents[1]
each_model = pytest.mark.parametrize("spec", list(MODELS), ids=lambda s: s.id)


def view(paper: str, reference: str) -> Any:
    return PAPERS.get(paper).view(instances.load(reference))


@cache
def compiled(name: str) -> StandardForm:
    """Return a model as arrays; a concave objective is replaced by the sum of its variables."""
    spec = MODELS.get(name)
    model = build(spec.build, view(spec.paper, spec.example))
    (objective,) = model.component_data_objects(pyo.Objective, active=True)
    if objective.expr.polynomial_degree() is None:
        assert all(variable.lb == 0 for variable in identify_variables(objective.expr))
        objective.expr = sum(identify_variables(objective.expr))
    return compile_model(model)


def shape(form: StandardForm) -> tuple[int, int, int, int]:
    return (*form.matrix.shape, form.matrix.nnz, int(form.integer.sum()))


def names(components: Any) -> set[str]:
    return {c.parent_component().local_name for c in components}


@cache
def blocks_of(name: str) -> list[Block]:
    spec = MODELS.get(name) if name in MODELS else HEURISTICS.get(name)
    return [block for doc in stated(spec).values() for block in blocks(doc)]


def rows_of(name: str) -> list[Block]:
    return [block for block in blocks_of(name) if block.kind == "row"]


def objectives_of(name: str) -> list[str]:
    return [row.text[1:4] for row in rows_of(name) if re.match(r"\\(max|min)\b", row.text)]


def named(name: str, kind: str) -> set[str]:
    return {part for block in blocks_of(name) if block.kind == kind for part in block.names}


def formulas_of(name: str) -> set[str]:
    prose = {block.text for block in blocks_of(name) if block.kind != "row"}
    return {row.text for row in rows_of(name)} | {f for text in prose for f in re.findall(":math:`([^`]*)`", text)}


@each_model
def test_docstrings_state_objective_constraints_and_duals(spec: ModelSpec) -> None:
    assert objectives_of(spec.id)
    assert named(spec.id, "row")
    assert any(block.text.startswith("Duals") for block in blocks_of(spec.id))


def test_every_heuristic_of_a_paper_has_a_statement() -> None:
    for spec in HEURISTICS:
        if spec.source != "README":  # other tests may have registered one
            assert sum(block.kind == "prose" for block in blocks_of(spec.id)) > 1, spec.id


def test_a_heuristic_of_ones_own_shows_its_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    def mine(seen: Any, context: Any) -> None:
        """Give $1 to everybody."""

    own = HeuristicSpec("oef.mine", "oef", "oef.allocation", "baseline", mine, source="README")
    monkeypatch.setitem(HEURISTICS._entries, own.id, own)
    found = sg.explain("oef.mine")
    assert "Give $1 to everybody." in found.text
    assert r"Give \$1 to everybody." in found.latex


def test_a_model_of_ones_own_shows_its_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    def mine(seen: Any) -> Any:
        """Return what nobody has written down.

        - ``x`` :math:`x_l^j`: devices.

        .. math:: \\sum_l x_l^j \\le m_j \\tag{7} \\label{capacity}

        See Also
        --------
        blocks : not part of it.
        """
        return MODELS.get("oef.efficiency").build(seen)

    own = ModelSpec(
        "oef.mine", "oef", "oef.allocation", "exact", mine, MODELS.get("oef.efficiency").decode, source="README"
    )
    monkeypatch.setitem(MODELS._entries, own.id, own)
    text = sg.explain("oef.mine", "paper/oef-eq1").text
    assert "Return what nobody has written down." in text
    assert re.search(r"∑_l x_l\^j ≤ m_j +\(7\) ×2", text)
    assert "`x` x_l^j: devices.  ×6" in text
    assert "── schedgap.harness.ask.explain.docstrings.blocks" in text  # the section names it


def test_every_formula_is_known_latex() -> None:
    formulas = set().union(*(formulas_of(spec.id) for spec in (*MODELS, *HEURISTICS)))
    assert len(formulas) > 150
    for latex in formulas:
        assert plain(latex), latex
        assert "\\" not in plain(latex), latex


def test_a_strict_parser_takes_the_rows() -> None:
    for latex in {row.text for spec in MODELS for row in rows_of(spec.id)}:
        LatexWalker(f"${latex}$", tolerant_parsing=False).get_latex_nodes()


@cache
def sources() -> str:
    """Return the code of all models."""
    return "".join(path.read_text() for path in (ROOT / "models").rglob("*.py"))


@each_model
def test_docstrings_name_the_parts_of_the_code(spec: ModelSpec) -> None:
    form, rows = compiled(spec.id), named(spec.id, "row")
    assert names(form.rows) <= rows
    assert names(form.columns) <= named(spec.id, "item")
    source = sources()
    for part in rows:
        assert f"def {part}(m" in source or f"m.{part} = " in source or part in names(form.rows), part


@each_model
def test_the_sense_is_that_of_the_code(spec: ModelSpec) -> None:
    """The printed objective has the sense, min or max, of the code.

    Builders with several objectives state them all; column generation may maximise the negative of a cost.
    """
    goal = "max" if compiled(spec.id).maximise else "min"
    assert goal in objectives_of(spec.id)
    assert spec.sense == goal or spec.kind == "bound" or any("negative" in b.text for b in blocks_of(spec.id))


@each_model
def test_equation_numbers_are_those_of_the_code(spec: ModelSpec) -> None:
    """Equation numbers of a model's rows occur in its paper's prose, and those in names of constraints are right."""
    told = documented(spec.paper)
    for row in rows_of(spec.id):
        for number in filter(None, re.split(r", |–", row.tag)):
            assert printed(number, told), f"({number}) is in no prose on models of {spec.paper}"
        for part in row.names:
            if number := re.search(r"_(\d+[a-z]?)(?:_\d+)?$", part):
                assert number[1] in row.tag, f"{part} is not ({row.tag})"


@cache
def documented(paper: str) -> str:
    """Return the sources of a paper's models, and the docstrings of their modules and builders without the rows."""
    found = []
    for spec in MODELS:
        if spec.paper == paper:
            module = inspect.getmodule(inspect.unwrap(getattr(spec.build, "func", spec.build)))
            prose = [block.text for block in blocks_of(spec.id) if block.kind != "row"]
            found += [spec.source, inspect.getdoc(module) or "", *prose]
    return "\n".join(dict.fromkeys(found))


def printed(number: str, docs: str) -> bool:
    """Return whether a number is in a text, by itself or within a range such as (9a)–(9c), (2)–(2o) or (1)–(5)."""
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
    """A solve reports the size of the model that the docstring states, unless another procedure solves it."""
    if spec.procedure and documentation(spec.procedure, modules=False):
        return
    seen = view(spec.paper, spec.example)
    assert spec.skip(seen) is None
    assert spec.too_large(seen) is None
    size = spec.run(seen, SolveOptions(nodes=0)).solution.size
    assert (size.rows, size.columns, size.nonzeros, size.integers) == shape(compiled(spec.id))


@pytest.mark.parametrize("name", ["hadar.p1", "hadar.p2.columns", "oef.gavel", "synergy.ilp1", "zhou.ra.dual"])
def test_sizes_are_those_of_the_compiled_model(name: str) -> None:
    sizes = sg.explain(name).sizes[name]
    assert (sizes.rows, sizes.columns, sizes.nonzeros, sizes.integers) == shape(compiled(name))
    assert sum(sizes.parts.values()) == (sizes.rows or 0) + (sizes.columns or 0)
    assert sizes.instance == MODELS.get(name).example


def test_models_that_generate_columns_say_how_many_there_are() -> None:
    endless = {"synergy.columns"}  # Its columns have fractions of rounds.
    counted = {spec.id for spec in MODELS if spec.implied is not None}
    assert counted | endless == {spec.id for spec in MODELS if ".columns" in spec.id}
    assert not counted & endless


def test_implied_columns_are_counted_as_they_are_enumerated() -> None:
    gangs = view("hadar", "paper/hadar-fig1?slot_s=2")
    assert round(10 ** counting.gang_schedules(gangs)[0]) == len(schedules(gangs).job)
    for arch in ("ps", "ra"):
        a = view("zhou", "gen/20jobs?jobs=3").architectures[arch]
        for jobs in (completing(a), weighing(a)):
            listed = moldable.schedules(jobs.machines, jobs.options, jobs.earliest, jobs.slots)
            assert round(10 ** moldable_schedules(jobs)[0]) == len(listed.job)
    seen = view("admission", "paper/walkthrough")
    for problem in (admission.UTILITY.id, admission.FROM_ARRIVAL.id):
        listed = moldable.schedules(seen.machines, seen.options, seen.first_start(problem), seen.deadline)
        assert round(10 ** moldable_schedules(admitting(seen, problem))[0]) == len(listed.job)


def test_gangs_with_many_mixes_are_counted_from_below(monkeypatch: pytest.MonkeyPatch) -> None:
    gangs = view("hadar", "paper/hadar-fig1")
    whole, partly = counting.gang_schedules(gangs)
    assert not partly
    monkeypatch.setattr(counting, "BUDGET", 3)
    less, partly = counting.gang_schedules(gangs)
    assert partly
    assert less < whole


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\sum_j \sum_{t \le f} w_{j,t,r} \cdot X_j^r \ge E_j N_j", "∑_j ∑_{t ≤ f} w_{j,t,r}·X_j^r ≥ E_j N_j"),
        (r"P_{j,t} = P_{j,t+1} + v_{j,t} \quad \forall j, t", "P_{j,t} = P_{j,t+1} + v_{j,t}   for all j, t"),
        (r"\frac{1}{\pi_l} \cdot \frac{a + b}{c}", "1/π_l·(a + b)/c"),
        (r"x \in \{0, \ldots, \min(W_j, C^r)\}", "x ∈ {0, …, min(W_j, C^r)}"),
        (r"\hat{t}_l + t^- + 2^{i-1}", "t̂_l + t^- + 2^{i-1}"),
        (r"\max \sum_s \varphi_j(s)", "max ∑_s φ_j(s)"),
        (r"\left( \sum_{g \ne h} \lceil x_g \rceil \right)", "(∑_{g ≠ h} ⌈x_g⌉)"),
        (r"x \unheardof y", r"x \unheardof y"),
        (r"U_{\max}^r \text{ of } k \colon q = 1", "U_{max}^r of k: q = 1"),
    ],
)
def test_latex_becomes_plain(latex: str, text: str) -> None:
    assert plain(latex) == text


def test_docstrings_become_blocks() -> None:
    doc = """Return a thing.

    Prose with :math:`x` that
    goes on.

    Parameters
    ----------
    first, second
        Two of them.
    third
        Another one.

    Notes
    -----
    - ``x`` :math:`x \\ge 0`: a variable
      on two lines.
    .. math:: x \\le 1
        \\tag{1a} \\label{most_1a}
    .. math::

        x \\ge y

    === ===
    a   b
        c
    === ===
    """
    found = blocks(inspect.cleandoc(doc))
    assert [(block.kind, block.text.partition("\n")[0]) for block in found] == [
        ("prose", "Return a thing."),
        ("prose", "Prose with :math:`x` that goes on."),
        ("heading", "Parameters"),
        ("item", "first, second: Two of them."),
        ("item", "third: Another one."),
        ("heading", "Notes"),
        ("item", r"``x`` :math:`x \ge 0`: a variable on two lines."),
        ("row", r"x \le 1"),
        ("row", r"x \ge y"),
        ("verbatim", "=== ==="),
    ]
    assert (found[7].tag, found[7].names, found[6].names) == ("1a", ["most_1a"], ["x"])


def test_names_are_models_families_or_patterns() -> None:
    assert find("hadar.p1") == ["hadar.p1"]
    assert {"hadar.p2.enumerated", "hadar.p2.columns"} < set(find("hadar.p2"))
    assert set(find("zhou.??.dual")) == {"zhou.ps.dual", "zhou.ra.dual"}
    assert find("synergy.tune") == ["synergy.tune"]
    with pytest.raises(UnknownNameError, match=r"did you mean hadar\.p2\.columns"):
        find("hadar.p2.column")


def test_a_family_states_what_it_shares_once() -> None:
    text = sg.explain("hadar.p2").text
    assert text.count("Hadar: gangs on GPUs of several types") == 1
    assert text.count("max ∑_j") == 2
    assert "columns implied: 214,074" in " ".join(text.split())
    alone = sg.explain("hadar.p2.columns.complete").text
    assert "build_master(complete=True)" in alone
    assert "Whether every job completes: (2b) is then an equation." in alone


def test_text_has_equations_numbers_and_sizes() -> None:
    text = sg.explain("hadar.p1").text
    assert re.search(r"∑_j w_\{j,t,r\} ≤ C\^r   for all t, r +\(1d\) +×24", text)
    assert "243 rows, 208 columns, 137 of them integer, 745 nonzeros" in text
    # The docstring of HadarE's class explains its parameters; those beside it have the payoff of copies, and (10).
    copies = sg.explain("hadar.hadare").text
    assert "μ(copies)" in copies
    assert "PMI · batch_size · pcie_scaling / (model_weight · dataset_size)" in copies


@pytest.mark.parametrize("columns", [80, 200])
def test_text_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = sg.explain("hadar.p1").text.splitlines()
    assert max(map(len, lines)) <= min(columns, 110)


def test_parameters_that_only_a_simulation_takes_are_told_apart() -> None:
    both, alone = sg.explain("synergy.tune.srtf").text.split("Parameters of its simulation")
    assert "order = demand: demand or policy" in both
    assert "order = demand" not in alone
    assert "profiles = true: true or measured" in alone
    assert "simulation" not in sg.explain("synergy.tune").text


def test_large_models_are_not_built_unasked() -> None:
    sizes = sg.explain("hadar.p1", "gen/20jobs").sizes["hadar.p1"]
    assert sizes.rows is None
    assert "above its stated size" in sizes.sentence
    built = sg.explain("oef.cooperative.full", "gen/oef-scale?tenants=160", large=True).sizes
    assert built["oef.cooperative.full"].rows == 160 * 159 + 10


def test_an_instance_without_the_view_is_a_reason() -> None:
    sizes = sg.explain("hadar.p1", "paper/oef-eq1").sizes["hadar.p1"]
    assert sizes.rows is None
    assert sizes.reason


def test_latex_balances() -> None:
    latex = sg.explain("oef").latex + sg.explain("zhou.ra.*line").latex
    stack: list[str] = []
    for what, environment in re.findall(r"\\(begin|end)\{([a-z*]+)\}", latex):
        if what == "begin":
            stack.append(environment)
        else:
            assert stack.pop() == environment
    assert not stack
    assert latex.count("{") - latex.count(r"\{") == latex.count("}") - latex.count(r"\}")
    assert not re.search(r"(?<!\\)[%#]", latex)
    assert not re.search(r"\\\\\s*\\end\{gather", latex)


def test_notebooks_get_markdown_and_latex() -> None:
    found = sg.explain("oef.cooperative", instances.load("paper/oef-eq6"))
    page = found._repr_markdown_()
    assert r"\tag{10c}" in page
    assert page.count("$$") % 2 == 0
    assert "<script" not in page
    assert r"\begin{gather}" in found._repr_latex_()


def test_strangers_text_is_harmless() -> None:
    known = instances.load("paper/oef-eq1")
    text = (
        known.model_dump_json().replace("GPU1", "A%_$<i>\u202e").replace('"name":"paper/oef-eq1"', '"name":"<b>boo$"')
    )
    hostile = type(known).model_validate_json(text)
    assert hostile.name == "<b>boo$"
    found = sg.explain("oef.efficiency", hostile)
    assert "\u202e" not in found.text
    marked = re.sub(r"`[^`\n]*`", "", found._repr_markdown_())  # neither Markdown nor MathJax looks into code
    assert "<b>boo" not in marked
    assert "<i>" not in marked
    assert "`3 tenants on 1 A%_$<i>" in found._repr_markdown_()
    assert r"A\%\_\$<i>" in found.latex


def test_command_line(command: Command) -> None:
    run = command("explain", "oef.gavel", "--format", "json", "--instance", "paper/oef-eq3")
    assert run.returncode == 0
    (told,) = json.loads(run.stdout)
    assert told["sizes"]["rows"] == 5
    rows = [block for block in told["blocks"] if block["kind"] == "row"]
    assert {row["equation"] for row in rows} == {"", "4, 9b, 10b"}  # (3) is an optimum of it, no row
    assert {name: row["count"] for row in rows for name in row["names"]} == {
        "at_least": "×3",
        "at_most_one_device": "",
        "capacity": "×2",
    }
    told = [
        command("explain", method).stdout.count("2α = ") for method in ("hadar.online", "hadar.online?payoff=lifetime")
    ]
    assert told == [0, 1], "Theorem 2 is about the payoff of (8)"


def test_an_unknown_name_is_one_line(command: Command) -> None:
    run = command("explain", "oef.coop")
    assert run.returncode == 2
    assert "did you mean oef.cooperative" in run.stderr


# ---------------------------------------------------------------- what rows cost


def test_a_dual_is_not_what_its_row_costs() -> None:
    """Dropping the row "u2 does not envy u3" of expression (1) gains nothing, although its dual can be up to 3."""
    seen, spec = view("oef", "paper/oef-eq1"), MODELS.get("oef.cooperative")
    found = cost(spec, seen, "no_envy[1,2]")
    assert (found.optimum, found.without) == (pytest.approx(4.5), pytest.approx(4.5))
    assert found.cost == pytest.approx(0, abs=1e-9)
    assert found.dual is not None
    # A stricter row loses 3 per unit, which is the largest optimal dual; a weaker one gains 0 per unit, the least.
    changed = []
    for side in (0.01, -0.01):
        m, w = build(spec.build, seen), seen.speedups[1].tolist()
        m.no_envy[1, 2].deactivate()
        m.changed = pyo.Constraint(expr=sum(w[j] * (m.x[1, j] - m.x[2, j]) for j in m.TYPES) >= side)
        changed.append((4.5 - (solve(m).objective or 0.0)) / side)
    assert changed == [pytest.approx(3, abs=1e-6), pytest.approx(0.0, abs=1e-6)]
    assert 0 <= -found.dual <= 3 + 1e-9


def test_a_family_is_dropped_as_a_whole() -> None:
    """All envy rows are dropped together, which gives the optimum of (4); for a minimisation, the loss is a gain."""
    seen, spec = view("oef", "paper/oef-eq1"), MODELS.get("oef.cooperative")
    found = cost(spec, seen, "no_envy")
    assert (found.rows, found.dual) == (6, None)
    assert found.cost == pytest.approx(0.5)
    assert "no_envy (6 rows): HiGHS finds 4.5, without it 5; it costs 0.5" in found.sentence
    freed = cost(MODELS.get("gavel.makespan_fluid"), view("gavel", "paper/hadar-fig1"), "one_after_another")
    assert freed.cost is not None
    assert freed.optimum is not None
    assert freed.without == pytest.approx(freed.optimum - freed.cost)


def test_explain_shows_what_rows_cost(command: Command) -> None:
    words = ("explain", "oef.cooperative", "--instance", "paper/oef-eq1", "--drop")
    done = command(*words, "no_envy[1,2]")
    assert "Cost of rows on paper/oef-eq1" in done.stdout
    assert (
        "no_envy[1,2]: HiGHS finds 4.5, without it 4.5; it costs 0. One more unit on its right-hand side" in done.stdout
    )
    unknown = command(*words, "no_envies")
    assert unknown.returncode == 2
    assert "unknown row of oef.cooperative 'no_envies'; did you mean no_envy" in unknown.stderr
    several = command("explain", "oef.c*", "--drop", "no_envy")
    assert "rows can be dropped from one model" in several.stderr
    generated = command("explain", "hadar.p2.columns", "--drop", "gpus_2a")
    assert "generates its columns" in generated.stderr
    endless = Cost("capacity", 1, "max", 4.5, None, "optimal", "unbounded")
    assert endless.cost is None
    assert endless.sentence == "capacity: not known; solved with it: optimal, without it: unbounded"
