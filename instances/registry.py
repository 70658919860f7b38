"""Registries that the files fill themselves, with nearest-name suggestions for what is not there."""

from __future__ import annotations

import difflib
import fnmatch
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from schedgap.instances import plugins
from schedgap.instances.errors import NotApplicableError, UnknownNameError, UsageError
from schedgap.instances.parameters import Parameter, Parametrised, base_id, configured

Sense = Literal["max", "min"]

Status = Literal[
    "optimal",
    "feasible",
    "gap left",
    "time limit with incumbent",
    "time limit without incumbent",
    "infeasible",
    "unbounded",
    "interrupted",
    "out of memory",
    "error",
    "skipped",
]
"""How a method ends; solvers know no others, and memory and skipping are the harness's."""

T = TypeVar("T", bound=Any)
"""Anything with an ``id``."""

F = TypeVar("F", bound=Callable[..., Any])


class Registry(Generic[T]):
    """Specs by id, in the order of registration; a second spec of the same id is an error.

    Parameters
    ----------
    kind
        What the entries are, in the singular, for messages (``"model"``).

    Attributes
    ----------
    families
        Functions that make the specs of ids such as ``exec:./mine`` on demand, by what stands before the colon.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        self.families: dict[str, Callable[[str], T]] = {}
        plugins.registries[kind] = self

    @property
    def _all(self) -> dict[str, T]:
        """All entries, those of installed plug-ins included."""
        plugins.load_installed()
        return self._entries

    def register(self, spec: T) -> T:
        """Add `spec`, and its variants, and return it.

        It raises `UsageError` if the id is taken, or, outside of the package, the paper or problem of a method does not
        exist, and `ValueError` if no function takes a parameter that the spec declares.
        """
        plugins.make_room(self, spec)
        entries = [spec]
        if isinstance(spec, Parametrised):
            for parameter in spec.parameters:
                spec.default(parameter)
            entries += [configured(spec, variant) for variant in spec.variants]
        for one in entries:
            if one.id in self._entries:
                raise UsageError(f"{self.kind} {one.id!r} is registered already; choose another id")
        self._entries |= {one.id: one for one in entries}
        plugins.note(self, entries)
        return spec

    def decorator(self, make: Callable[..., T], function: str, **usual: Any) -> Callable[..., Callable[[F], F]]:
        """Return a decorator factory that registers functions: ``@heuristic("oef.mine", source="my idea")``.

        The function becomes the field `function` of the spec that `make` returns. `usual` are other fields, unless the
        decorator names them; the paper is that of the id, the problem its first one.
        """
        has_problem = "problem" in inspect.signature(make).parameters

        def named(id: str, **fields: Any) -> Callable[[F], F]:
            """Register the decorated function under this id, with these fields of its spec; return the function."""
            paper = id.partition(".")[0]

            def register(decorated: F) -> F:
                given = usual | {"paper": paper, function: decorated} | fields
                if has_problem and "problem" not in given:
                    given["problem"] = PAPERS.get(given["paper"]).problems[0].id
                self.register(make(id=id, **given))
                return decorated

            return register

        return named

    def drop(self, ids: Iterable[str]) -> None:
        """Take entries out."""
        for name in ids:
            self._entries.pop(name, None)

    def get(self, name: str) -> T:
        """Return the spec of that id, with settings (:mod:`schedgap.instances.parameters`) where the id has some.

        It raises `UnknownNameError` if there is none, or it has no such parameter; the message names the nearest known
        ones, and `UsageError` if a setting is out of range.
        """
        if name in self._all:
            return self._all[name]
        if make := self.families.get(name.partition(":")[0]):
            return make(name)
        base, _, settings = name.partition("?")
        if base not in self._all:
            raise UnknownNameError(unknown(self.kind, base, self._all))
        return configured(self._all[base], settings)

    def matching(self, patterns: Iterable[str]) -> list[T]:
        """Return the specs that match any pattern, see :func:`matching`, in the order of registration."""
        found = {spec.id: spec for pattern in patterns for spec in matching(self, pattern)}
        return in_order(found, self)

    def ids(self) -> list[str]:
        """Return all ids, in the order of registration."""
        return list(self._all)

    def __iter__(self) -> Iterator[T]:
        return iter(self._all.values())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and base_id(name) in self._all

    def __len__(self) -> int:
        return len(self._all)


def matching(specs: Iterable[T], pattern: str) -> list[T]:
    """Return the specs whose id matches a shell pattern (``hadar.*``), set as it says (``zhou.*.online?alpha=1``).

    It raises `UsageError` if a spec that matches does not take the settings.
    """
    name, _, settings = pattern.partition("?")
    found = [spec for spec in specs if fnmatch.fnmatchcase(spec.id, name)]
    return [configured(spec, settings) for spec in found if base_id(spec.id) == spec.id] if settings else found


def in_order(chosen: Mapping[str, T], specs: Iterable[T]) -> list[T]:
    """Return chosen specs in the order of `specs`; settings that are not among these follow their method."""
    order = {spec.id: at for at, spec in enumerate(specs)}
    return sorted(chosen.values(), key=lambda spec: (order.get(spec.id, order.get(base_id(spec.id))), spec.id))


LISTED = 12
"""Most known names that a message lists; … stands for the others."""


def unknown(kind: str, name: str, names: Iterable[str]) -> str:
    """Return the message for an unknown name, with the nearest known ones."""
    names, name = list(names), name if len(name) <= 100 else name[:99] + "…"
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    some = [*names[:LISTED], "…"] if len(names) > LISTED else names
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(some) or 'none'}"
    return f"unknown {kind} {name!r}; {hint}{plugins.trouble()}"


@dataclass(frozen=True)
class Problem:
    """An optimization problem of a paper: what its methods' objectives mean, and which bounds apply to them.

    Parameters
    ----------
    id
        ``<paper>.<name>``.
    sense
        Whether a larger (``"max"``) or smaller (``"min"``) objective is better.
    restricts
        Id of a problem with the same objective and a larger feasible set, if any: its bounds hold here too.
    cost
        A number that an id may give (``hadar.utility?beta=0.5``) for what objectives then are less, or more, where that
        is worse: a problem that restricts the one without it.
    """

    id: str
    title: str
    sense: Sense
    unit: str
    restricts: str | None = None
    cost: Parameter | None = None

    def less(self, cost: Parameter, query: str) -> Problem:
        """Return the problem with a cost such as ``beta=0.5``; raise `UnknownNameError` if the query is none."""
        name, _, text = query.partition("=")
        try:
            known = name == cost.name and cost.read(text, 0.0) is not None
        except ValueError:
            known = False
        if not known:
            raise UnknownNameError(f"{self.id}?{query}: write {self.id}?{cost.name}= and {cost.range(0.0)}")
        title = f"{self.title}, less what {query} costs"
        return replace(self, id=f"{self.id}?{query}", title=title, restricts=self.id, cost=None)


KEPT = 4
"""Views of a paper that a process keeps: all methods, checks, figures and captions of a comparison share one."""


def kept(view: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `view`, which builds the view of an instance once, by its content and its name."""
    views: dict[tuple[str, str], Any] = {}

    @functools.wraps(view)
    def known(instance: Any) -> Any:
        key = (instance.fingerprint, instance.name)
        if key not in views:
            if len(views) >= KEPT:
                del views[next(iter(views))]
            views[key] = view(instance)
        return views[key]

    return known


@dataclass(frozen=True)
class PaperSpec:
    """A paper: its view of an instance and its problems.

    Parameters
    ----------
    id
        Short name, the first part of its methods' ids.
    view
        ``view(instance)`` returns the paper's arrays, or raises
        :class:`~schedgap.instances.errors.NotApplicableError` with the reason why it has none. Of a spec, it answers
        from the last views where it can (:func:`kept`).
    decision
        Dataclass of arrays that the paper's models and heuristics return.
    describe
        ``describe(view)`` returns the caption of a comparison: sizes, slots, horizon, what was aggregated.
    usual
        ``usual(instance)`` says whether its methods run where neither a method nor a paper is named.
    mixed
        Whether its servers may have GPUs of several types; other papers have no view of such an instance.
    """

    id: str
    title: str
    view: Callable[[Any], Any]
    problems: tuple[Problem, ...]
    decision: type
    describe: Callable[[Any], str]
    usual: Callable[[Any], bool] = lambda instance: True
    mixed: bool = False

    def __post_init__(self) -> None:
        """Keep the last views, of instances that are :meth:`accepted`."""
        made = self.view
        object.__setattr__(self, "view", kept(functools.wraps(made)(lambda instance: made(self.accepted(instance)))))

    def accepted(self, instance: Any) -> Any:
        """Return the instance, or raise `NotApplicableError` if its servers are none that the paper knows."""
        if instance.cluster.mixed and not self.mixed:
            raise NotApplicableError(
                f"{instance.name}: servers have GPUs of several types (servers_of); the servers of {self.id} have one"
            )
        return instance

    def problem(self, name: str) -> Problem:
        """Return the problem of that id, or raise `UnknownNameError` if the paper has no such problem."""
        base, _, query = name.partition("?")
        for problem in self.problems:
            if problem.id == name:
                return problem
            if problem.id == base and problem.cost and query:
                return problem.less(problem.cost, query)
        raise UnknownNameError(unknown("problem", name, [p.id for p in self.problems]))

    def wider(self, name: str) -> list[str]:
        """Return the problem of that id and all that it restricts, whose bounds hold for it and whom it decides."""
        found: list[str] = []
        wanted: str | None = name
        while wanted is not None:
            found.append(wanted)
            wanted = self.problem(wanted).restricts
        return found


PAPERS: Registry[PaperSpec] = Registry("paper")


def no_reason(view: object) -> str | None:
    """Return ``None``: no reason not to run a method."""
    return None


@dataclass(frozen=True)
class MethodSpec(Parametrised):
    """What specs of models and heuristics have in common: a method takes its paper's view and returns its decision.

    Parameters
    ----------
    problem
        Id of the problem its decisions belong to.
    claims
        Properties that its decisions must have (``"sharing_incentive"``); the verifier checks each.
    skip
        ``skip(view)`` returns the reason why it cannot run, or ``None``.
    too_large
        ``too_large(view)`` returns the size above which it runs only on request (``--all``), or ``None``.
    """

    problem: str
    _: KW_ONLY
    claims: tuple[str, ...] = ()
    skip: Callable[[Any], str | None] = no_reason
    too_large: Callable[[Any], str | None] = no_reason
