"""An explanation as blocks, which the formats print: mathematics in LaTeX, prose with formulas between dollars."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field

from schedgap.harness.explain.sizes import Sizes
from schedgap.harness.text import clean, seconds
from schedgap.heuristics.registry import HeuristicSpec
from schedgap.heuristics.simulator import POLICIES
from schedgap.heuristics.statements import statement
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.models.explain import Formulation, Row, Symbol
from schedgap.models.registry import ModelSpec


@dataclass(frozen=True)
class Line:
    """A symbol with its meaning, or a row with what it is repeated for, its number and how often it is there."""

    latex: str
    text: str = ""
    every: str = ""
    equation: str = ""
    count: str = ""


@dataclass(frozen=True)
class Block:
    """A part of an explanation.

    Attributes
    ----------
    kind
        ``"prose"`` (paragraphs), ``"list"``, ``"symbols"`` or ``"rows"``; ``"plain"`` is for paragraphs with strangers'
        text, in which a dollar is a dollar.
    label
        Heading, empty for none.
    """

    kind: str
    label: str
    paragraphs: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Document:
    """One model's or heuristic's explanation.

    Attributes
    ----------
    id, title
        Its name, and what it is in a line.
    blocks
        Its parts.
    sizes
        Sizes of a model.
    """

    id: str
    title: str
    blocks: tuple[Block, ...]
    sizes: Sizes | None = field(default=None)


def of_model(spec: ModelSpec, formulation: Formulation, sizes: Sizes) -> Document:
    """Return the explanation of a model."""
    goal = {"max": "maximise", "min": "minimise"}[formulation.sense or spec.sense]
    parts = sizes.parts
    blocks = [
        Block("prose", "", (formulation.decides, f"Source: {spec.source}.")),
        _symbols("sets", formulation.sets, {}),
        _symbols("data", formulation.data, {}),
        _symbols("variables", formulation.variables, parts),
        Block("rows", goal, lines=(_row(formulation.objective, {}),)),
        Block("rows", "subject to", lines=tuple(_row(row, parts) for row in formulation.constraints)),
        Block("prose", "duals", (formulation.duals,)),
        Block("prose", "how it is solved", (formulation.solved,)),
        Block("list", "errata and departures", formulation.errata),
        _size_block(sizes),
    ]
    return Document(spec.id, _title(spec), tuple(b for b in blocks if any(b.paragraphs) or b.lines), sizes)


def of_variant(spec: ModelSpec, formulation: Formulation, sizes: Sizes) -> Document:
    """Return the short explanation of a model whose base is explained beside it."""
    words = (f"As {formulation.variant_of}. {formulation.difference}", f"Source: {spec.source}.")
    return Document(spec.id, _title(spec), (Block("prose", "", words), _size_block(sizes)), sizes)


def of_heuristic(spec: HeuristicSpec, instance: Instance) -> Document:
    """Return the explanation of a heuristic; its guarantee is evaluated on the instance."""
    claims = ", ".join(claim.replace("_", " ") for claim in spec.claims)
    told = tuple(f"{name}: {text}" for name, text in spec.documented())
    blocks = [
        Block("prose", "", (f"Source: {spec.source}.",)),
        Block("list", "algorithm", statement(base_id(spec.id))),
        Block("plain", "parameters", told),
        Block("plain", "parameters of its simulation", tuple(line for line in _simulated(spec) if line not in told)),
        Block("plain", "algorithm", () if statement(base_id(spec.id)) else (_documented(spec),)),
        Block("plain", "guarantee", (_guarantee(spec, instance),)),
        Block("prose", "checked on every decision", (claims,)),
    ]
    return Document(spec.id, _title(spec), tuple(b for b in blocks if any(b.paragraphs)))


def _simulated(spec: HeuristicSpec) -> tuple[str, ...]:
    """Return the parameters of the policy of the same id."""
    policies = (policy for policy in POLICIES if policy.id == base_id(spec.id))
    return tuple(f"{name}: {text}" for policy in policies for name, text in policy.documented())


def _documented(spec: HeuristicSpec) -> str:
    """Return how the function of a heuristic that nobody has stated documents itself."""
    return clean(inspect.getdoc(getattr(spec.run, "func", spec.run)) or "Not documented.", 2000)


def _guarantee(spec: HeuristicSpec, instance: Instance) -> str:
    name = clean(instance.name, 120)
    try:
        found = spec.guarantee(PAPERS.get(spec.paper).view(instance))
    except NotApplicableError as error:
        return f"None on {name}: {clean(error, 300)}."
    if found is None:
        return "None."
    bound = f": at most {found.factor:.4g} times from the optimum" if found.factor else ""
    return f"{clean(found.text, 80)} on {name}{bound}."


def _title(spec: ModelSpec | HeuristicSpec) -> str:
    problem = PAPERS.get(spec.paper).problem(spec.problem)
    goal = {"max": "maximise", "min": "minimise"}[problem.sense]
    return f"{spec.kind} · {goal} {problem.id}: {problem.title} ({problem.unit})"


def _symbols(label: str, symbols: tuple[Symbol, ...], parts: dict[str, int]) -> Block:
    return Block(
        "symbols", label, lines=tuple(Line(s.latex, s.meaning, count=_count(parts, (s.part,))) for s in symbols)
    )


def _row(row: Row, parts: dict[str, int]) -> Line:
    return Line(row.latex, row.note, row.every, row.equation, _count(parts, row.parts))


def _count(parts: dict[str, int], names: tuple[str, ...]) -> str:
    total = sum(parts.get(name, 0) for name in names)
    return f"×{total:,}" if total else ""


def _size_block(sizes: Sizes) -> Block:
    took = f" Built and compiled in {seconds(sizes.build_s)}." if sizes.build_s is not None else ""
    words = [f"On {sizes.instance}: {sizes.sentence}.{took}"]
    if sizes.rows is None and sizes.implied is not None:
        words.append(f"Columns implied: {sizes.implied_text}.")
    return Block("plain", "size", (*words, sizes.caption))
