"""Explanations of models and heuristics: the docstrings that state them, their parameters, and the size of a model.

>>> import schedgap as sg
>>> print(sg.explain("oef.efficiency").text)  # doctest: +SKIP
"""

from __future__ import annotations

import fnmatch
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from typing import Any

from schedgap.harness.ask.explain import formats
from schedgap.harness.ask.explain.costs import cost
from schedgap.harness.ask.explain.docstrings import Block, blocks, documentation, home_of
from schedgap.harness.ask.explain.formats import Document, Sizes
from schedgap.harness.show.text import clean, number
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.registry import HeuristicSpec
from schedgap.heuristics.simulator import POLICIES
from schedgap.instances import load
from schedgap.instances.errors import NotApplicableError, UnknownNameError, UsageError
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import PAPERS, unknown
from schedgap.instances.schema import Instance
from schedgap.instances.text import some
from schedgap.models import MODELS, ModelSpec

__all__ = ["Explanation", "Sizes", "explain", "find", "stated"]


@dataclass(frozen=True)
class Explanation:
    """Explanations of one or several methods, one document each; notebooks show them with typeset formulas."""

    documents: tuple[Document, ...]

    @property
    def text(self) -> str:
        """The explanations as plain text."""
        return "\n".join(map(formats.to_text, self.documents))

    @property
    def markdown(self) -> str:
        """The explanations as Markdown with formulas for MathJax."""
        return "\n".join(map(formats.to_markdown, self.documents))

    @property
    def latex(self) -> str:
        """The explanations as LaTeX for a document with ``amsmath``."""
        return "\n".join(map(formats.to_latex, self.documents))

    @property
    def json(self) -> str:
        """The explanations as JSON."""
        return formats.to_json(self.documents)

    @property
    def sizes(self) -> dict[str, Sizes]:
        """Sizes of the models by id."""
        return {d.id: d.sizes for d in self.documents if d.sizes}

    def __repr__(self) -> str:
        return f"Explanation({some([document.id for document in self.documents])})"

    def _repr_markdown_(self) -> str:
        return self.markdown

    def _repr_latex_(self) -> str:
        return self.latex


def explain(
    name: str,
    instance: str | Instance | None = None,
    *,
    large: bool = False,
    drop: Sequence[str] = (),
    on_model: Callable[[str, str], None] | None = None,
) -> Explanation:
    """Explain a model, a heuristic, or a family of them.

    Parameters
    ----------
    name
        Id (``hadar.p1``), prefix of ids (``hadar.p2``) or pattern (``oef.*``).
    instance
        Instance, or reference to one, on which models are built; by default, a small one that suits the model.
    large
        Also build models above their stated size.
    drop
        Rows, or families of rows, of a single model; what each of them costs is computed by solving the model with and
        without it (:mod:`schedgap.harness.ask.explain.costs`).
    on_model
        Called with the model and the instance before each model is built.

    Raises
    ------
    UnknownNameError
        If no method matches, or the model has no such row; the message suggests similar names.
    UsageError
        If rows are to be dropped from something that is not one model, solved as it is built.
    """
    given = load(instance) if isinstance(instance, str) else instance
    shown: set[str] = set()
    documents = []
    ids = find(name)
    if drop and not (len(ids) == 1 and ids[0] in MODELS):
        raise UsageError(f"{name}: rows can be dropped from one model, and this is {some(ids)}")
    for id in ids:
        spec = MODELS.get(id) if id in MODELS else HEURISTICS.get(id)
        # By default, a heuristic is explained on the small instance of its paper's first model, if there is one.
        models = [spec] if isinstance(spec, ModelSpec) else [model for model in MODELS if model.paper == spec.paper]
        where = given or load(models[0].example if models else ModelSpec.example)
        if on_model and isinstance(spec, ModelSpec):
            on_model(id, where.name)
        sizes = measure(spec, where, large) if isinstance(spec, ModelSpec) else None
        content = tuple(block for block in _blocks(spec, where, sizes, shown) if block.text)
        if drop and isinstance(spec, ModelSpec):
            content += tuple(_costs(spec, where, drop))
        problem = PAPERS.get(spec.paper).problem(spec.problem)
        goal = {"max": "maximise", "min": "minimise"}[problem.sense]
        title = f"{spec.kind} · {goal} {problem.id}: {problem.title} ({problem.unit})"
        documents.append(Document(spec.id, title, content, sizes))
    return Explanation(tuple(documents))


def find(name: str) -> list[str]:
    """Return the ids that start with or match a name, models first; raise `UnknownNameError` if there are none."""
    ids = [*MODELS.ids(), *HEURISTICS.ids()]
    if base_id(name) in ids:
        return [name]
    matches = [i for i in ids if i.startswith(f"{name}.")] or [i for i in ids if fnmatch.fnmatchcase(i, name)]
    if not matches:
        families = {i.rsplit(".", k)[0] for i in ids for k in range(1, i.count(".") + 1)}
        raise UnknownNameError(unknown("model or heuristic", name, [*ids, *sorted(families - set(ids))]))
    return matches


def stated(spec: ModelSpec | HeuristicSpec) -> dict[str, str]:
    """Return the docstrings in which a method is stated, by the name of the documented object."""
    if isinstance(spec, HeuristicSpec):
        return documentation(spec.run)
    return documentation(spec.build, home_of(spec.build, spec.paper))


def measure(spec: ModelSpec, instance: Instance, large: bool = False) -> Sizes:
    """Build and compile a model on an instance and return its sizes; with `large`, also above its stated size."""
    from schedgap.models.engine.solve import build, compile_model
    from schedgap.models.engine.solve.form import silent

    paper, sizes = PAPERS.get(spec.paper), dict[str, Any](instance=clean(instance.name, 120))
    try:
        view = paper.view(instance)
        sizes["caption"] = clean(paper.describe(view), 400)
        if reason := spec.skip(view):
            return Sizes(**sizes, reason=clean(reason, 300))
        if spec.implied:
            sizes["implied"], sizes["at_least"] = spec.implied(view)
        if not large and (reason := spec.too_large(view)):
            return Sizes(**sizes, reason=f"above its stated size ({clean(reason, 300)}); --all builds it")
        began = time.perf_counter()
        with silent():
            form = compile_model(build(spec.build, view))
    # The model may be empty on this instance, too large for memory, or a plug-in's that cannot be built; the statement
    # is printed in any case.
    except Exception as error:
        return Sizes(**sizes, reason=clean(error, 300) or type(error).__name__)
    return Sizes(
        **sizes,
        rows=int(form.matrix.shape[0]),
        columns=int(form.matrix.shape[1]),
        nonzeros=int(form.matrix.nnz),
        integers=int(form.integer.sum()),
        parts=dict(Counter(part.parent_component().local_name for part in (*form.rows, *form.columns))),
        build_s=time.perf_counter() - began,
    )


def _blocks(spec: ModelSpec | HeuristicSpec, where: Instance, sizes: Sizes | None, shown: set[str]) -> Iterator[Block]:
    """Yield the parts of an explanation; docstrings that an earlier explanation has `shown` are only named."""
    yield Block("prose", f"Source: {spec.source}.")
    docstrings = stated(spec)
    for origin, doc in docstrings.items():
        yield Block("origin", origin)
        name = origin.partition("(")[0]
        yield from [Block("prose", "As above.")] if name in shown else _counted(blocks(doc), sizes)
        shown.add(name)
    yield from [] if docstrings else [Block("prose", "Not documented.")]
    if isinstance(spec, ModelSpec) and spec.procedure:
        docs = documentation(spec.procedure, modules=False).values()
        openings = [takewhile(lambda block: block.kind != "heading", blocks(doc)) for doc in docs]
        yield from _listed("How it is solved", chain(*openings))
    parameters = spec.documented()
    yield from _listed("Parameters", _plain(f"{name}: {text}" for name, text in parameters))
    if isinstance(spec, HeuristicSpec):
        policies = (policy for policy in POLICIES if policy.id == base_id(spec.id))
        more = (pair for policy in policies for pair in policy.documented() if pair not in parameters)
        yield from _listed("Parameters of its simulation", _plain(f"{name}: {text}" for name, text in more))
        yield from _listed("Guarantee", _plain([_guarantee(spec, where)]))
        yield from _listed("Checked on every decision", _plain(c.replace("_", " ") for c in spec.claims))
    if sizes:
        yield from _listed("Size", _plain(sizes.lines))


def _costs(spec: ModelSpec, where: Instance, drop: Sequence[str]) -> Iterator[Block]:
    """Yield blocks that say what each of the rows `drop` costs."""
    view = spec.view(where)
    found = (cost(spec, view, row).sentence for row in drop)
    yield from _listed(f"Cost of rows on {clean(where.name, 120)}", _plain(found))


def _listed(heading: str, found: Iterable[Block]) -> Iterator[Block]:
    """Yield a heading and the blocks, or nothing if there are no blocks."""
    if content := list(found):
        yield from (Block("heading", heading), *content)


def _plain(texts: Iterable[str]) -> list[Block]:
    return [Block("plain", text) for text in texts]


def _counted(found: list[Block], sizes: Sizes | None) -> Iterator[Block]:
    """Yield blocks; a block about a row or variable gets the number of times that it occurs on the instance."""
    for block in found:
        total = sum(sizes.parts.get(name, 0) for name in block.names) if sizes else 0
        yield replace(block, count=f"×{total:,}") if total else block


def _guarantee(spec: HeuristicSpec, instance: Instance) -> str:
    name = clean(instance.name, 120)
    try:
        guarantee = spec.guarantee(spec.view(instance))
    except NotApplicableError as error:
        return f"None on {name}: {clean(error, 300)}."
    if guarantee is None:
        return "None."
    bound = f": at most {number(guarantee.factor, side='at most')} times from the optimum" if guarantee.factor else ""
    if guarantee.factor and spec.shown is not None:
        bound += ", says the theorem; a row states it if its run shows it"
    return f"{clean(guarantee.text, 80)} on {name}{bound}."
