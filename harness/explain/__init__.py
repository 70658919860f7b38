"""What a model or a heuristic says: the docstrings that state it, its parameters, and how large it is.

>>> from schedgap import harness
>>> print(harness.explain("oef.efficiency").text)  # doctest: +SKIP
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from schedgap.harness.explain import formats
from schedgap.harness.explain.docstrings import Block, blocks, documentation, home_of
from schedgap.harness.explain.formats import Document
from schedgap.harness.explain.sizes import Sizes, measure
from schedgap.harness.text import clean, seconds
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.registry import HeuristicSpec
from schedgap.heuristics.simulator import POLICIES
from schedgap.instances import load
from schedgap.instances.errors import NotApplicableError, UnknownNameError
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import PAPERS, unknown
from schedgap.instances.schema import Instance
from schedgap.models import MODELS, ModelSpec

__all__ = ["Explanation", "Sizes", "explain", "find", "stated"]


@dataclass(frozen=True)
class Explanation:
    """Explanations of one or several methods; a notebook shows it with its mathematics set.

    Attributes
    ----------
    documents
        One per method.
    """

    documents: tuple[Document, ...]

    @property
    def text(self) -> str:
        """As plain text."""
        return "\n".join(map(formats.to_text, self.documents))

    @property
    def markdown(self) -> str:
        """As Markdown with mathematics."""
        return "\n".join(map(formats.to_markdown, self.documents))

    @property
    def latex(self) -> str:
        """As LaTeX for a document with ``amsmath``."""
        return "\n".join(map(formats.to_latex, self.documents))

    @property
    def json(self) -> str:
        """As JSON."""
        return formats.to_json(self.documents)

    @property
    def sizes(self) -> dict[str, Sizes]:
        """Sizes by model."""
        return {d.id: d.sizes for d in self.documents if d.sizes}

    def _repr_markdown_(self) -> str:
        return self.markdown

    def _repr_latex_(self) -> str:
        return self.latex


def explain(
    name: str,
    instance: str | Instance | None = None,
    *,
    large: bool = False,
    on_model: Callable[[str, str], None] | None = None,
) -> Explanation:
    """Explain a model, a heuristic or a family of them.

    Parameters
    ----------
    name
        Id (``hadar.p1``), beginning of ids (``hadar.p2``) or pattern (``oef.*``).
    instance
        Reference or instance on which the model is built; a small one that fits it by default.
    large
        Build models above the size that they state, too.
    on_model
        Called with the model and the instance before each model is built.

    Raises
    ------
    UnknownNameError
        If nothing has that name; the message names the nearest known ones.
    """
    given = load(instance) if isinstance(instance, str) else instance
    shown: set[str] = set()
    documents = []
    for one in find(name):
        spec = MODELS.get(one) if one in MODELS else HEURISTICS.get(one)
        where = given or load(_example(spec))
        if on_model and isinstance(spec, ModelSpec):
            on_model(one, where.name)
        sizes = measure(spec, where, large) if isinstance(spec, ModelSpec) else None
        found = tuple(block for block in _blocks(spec, where, sizes, shown) if block.text)
        documents.append(Document(spec.id, _title(spec), found, sizes))
    return Explanation(tuple(documents))


def find(name: str) -> list[str]:
    """Return the ids that a name means: itself, what begins with it, or what matches it; models first.

    Raises
    ------
    UnknownNameError
        If there are none.
    """
    known = [*MODELS.ids(), *HEURISTICS.ids()]
    if base_id(name) in known:
        return [name]
    found = [i for i in known if i.startswith(f"{name}.")] or [i for i in known if fnmatch.fnmatchcase(i, name)]
    if not found:
        families = {i.rsplit(".", k)[0] for i in known for k in range(1, i.count(".") + 1)}
        raise UnknownNameError(unknown("model or heuristic", name, [*known, *sorted(families - set(known))]))
    return found


def _example(spec: ModelSpec | HeuristicSpec) -> str:
    """Return the small instance of a model; for a heuristic that of the paper's first model, if it has one."""
    models = [spec] if isinstance(spec, ModelSpec) else [model for model in MODELS if model.paper == spec.paper]
    return models[0].example if models else ModelSpec.example


def stated(spec: ModelSpec | HeuristicSpec) -> dict[str, str]:
    """Return the docstrings that state a method, by what they document; see :mod:`schedgap.models`."""
    if isinstance(spec, HeuristicSpec):
        return documentation(spec.run)
    return documentation(spec.build, home_of(spec.build, spec.paper))


def _blocks(
    spec: ModelSpec | HeuristicSpec, instance: Instance, sizes: Sizes | None, shown: set[str]
) -> Iterator[Block]:
    """Yield the parts of an explanation; docstrings that stand in an explanation before it are only named."""
    yield Block("prose", f"Source: {spec.source}.")
    known = stated(spec)
    for origin, doc in known.items():
        yield Block("origin", origin)
        name = origin.partition("(")[0]
        yield from [Block("prose", "As above.")] if name in shown else _counted(blocks(doc), sizes)
        shown.add(name)
    yield from [] if known else [Block("prose", "Not documented.")]
    if isinstance(spec, ModelSpec) and spec.procedure:
        yield from _listed("How it is solved", _solved(spec.procedure))
    told = [f"{name}: {text}" for name, text in spec.documented()]
    yield from _listed("Parameters", map(_plain, told))
    if isinstance(spec, HeuristicSpec):
        simulated = [f"{n}: {t}" for p in POLICIES if p.id == base_id(spec.id) for n, t in p.documented()]
        yield from _listed(
            "Parameters of its simulation", map(_plain, (line for line in simulated if line not in told))
        )
        yield from _listed("Guarantee", [_plain(_guarantee(spec, instance))])
        yield from _listed("Checked on every decision", [_plain(c.replace("_", " ")) for c in spec.claims])
    if sizes:
        yield from _listed("Size", map(_plain, _size_lines(sizes)))


def _listed(heading: str, found: Any) -> Iterator[Block]:
    """Yield blocks under a heading, nothing if there are none."""
    told = list(found)
    if told:
        yield from (Block("heading", heading), *told)


def _solved(procedure: Any) -> Iterator[Block]:
    """Yield what docstrings say before their first section."""
    for doc in documentation(procedure, modules=False).values():
        yield from takewhile(lambda block: block.kind != "heading", blocks(doc))


def _plain(text: str) -> Block:
    return Block("plain", text)


def _counted(found: list[Block], sizes: Sizes | None) -> Iterator[Block]:
    """Yield blocks, rows and variables with how often they are there on the instance."""
    for block in found:
        total = sum(sizes.parts.get(name, 0) for name in block.names) if sizes else 0
        yield replace(block, count=f"×{total:,}") if total else block


def _guarantee(spec: HeuristicSpec, instance: Instance) -> str:
    """Return the guarantee, evaluated on an instance."""
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


def _size_lines(sizes: Sizes) -> list[str]:
    took = f" Built and compiled in {seconds(sizes.build_s)}." if sizes.build_s is not None else ""
    implied = sizes.rows is None and sizes.implied is not None
    words = [f"On {sizes.instance}: {sizes.sentence}.{took}", f"Columns implied: {sizes.implied_text}." * implied]
    return [line for line in (*words, sizes.caption) if line]
