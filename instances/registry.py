"""Registries of specs by id, with suggestions of similar names for unknown ids."""

from __future__ import annotations

import copy
import fnmatch
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from schedgap.instances import plugins
from schedgap.instances.errors import NotApplicableError, UnknownNameError, UsageError
from schedgap.instances.parameters import Parameter, Parametrised, base_id, configured
from schedgap.instances.text import suggestion

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
"""Outcomes of a method. Solvers report all but ``out of memory`` and ``skipped``, which the harness sets."""

T = TypeVar("T", bound=Any)
"""Anything with an ``id``."""

F = TypeVar("F", bound=Callable[..., Any])


class Registry(Generic[T]):
    """Specs by id, in the order of registration; ids are unique.

    Parameters
    ----------
    kind
        Kind of the entries, in the singular, for messages (``"model"``).

    Attributes
    ----------
    families
        Functions that make specs on demand, by the prefix of their ids before a colon (``exec`` for ``exec:./mine``).
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        self.families: dict[str, Callable[[str], T]] = {}
        plugins.registries[kind] = self

    @property
    def _all(self) -> dict[str, T]:
        """All entries, including those of installed plug-ins."""
        plugins.load_installed()
        return self._entries

    def register(self, spec: T) -> T:
        """Add `spec` and its variants, and return `spec`.

        It raises `UsageError` if an id is taken or (outside the package) the paper or problem of a method does not
        exist, and `ValueError` if no function takes a parameter that the spec declares.
        """
        plugins.make_room(self, spec)
        entries = [spec]
        if isinstance(spec, Parametrised):
            for parameter in spec.parameters:
                spec.default(parameter)
            entries += [configured(spec, variant) for variant in spec.variants]
        for entry in entries:
            if entry.id in self._entries:
                raise UsageError(f"{self.kind} {entry.id!r} is registered already; choose another id")
        self._entries |= {entry.id: entry for entry in entries}
        plugins.note(self, entries)
        return spec

    def decorator(self, make: Callable[..., T], function: str, **usual: Any) -> Callable[..., Callable[[F], F]]:
        """Return a decorator factory that registers functions: ``@heuristic("oef.mine", source="my idea")``.

        The function becomes the field `function` of the spec that `make` returns. `usual` holds defaults of other
        fields. By default, the paper is the first part of the id, and the problem is the paper's first problem.
        """
        has_problem = "problem" in inspect.signature(make).parameters

        def named(id: str, **fields: Any) -> Callable[[F], F]:
            """Return a decorator that registers a function under this id, with these fields of its spec."""
            paper = id.partition(".")[0]

            def register(decorated: F) -> F:
                values = usual | {"paper": paper, function: decorated} | fields
                if has_problem and "problem" not in values:
                    values["problem"] = PAPERS.get(values["paper"]).problems[0].id
                self.register(make(id=id, **values))
                return decorated

            return register

        return named

    def drop(self, id: str) -> None:
        """Remove the entry with this id, if it exists."""
        self._entries.pop(id, None)

    def get(self, name: str) -> T:
        """Return the spec with this id, configured with the settings in the id (:mod:`schedgap.instances.parameters`).

        It raises `UnknownNameError` if there is no such spec or parameter (the message suggests the closest names), and
        `UsageError` if a setting is out of range.
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
        return in_order({spec.id: spec for pattern in patterns for spec in matching(self, pattern)}, self)

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
    """Return the specs whose id matches a shell pattern (``hadar.*``), with its settings (``zhou.*.online?alpha=1``).

    It raises `UsageError` if a matching spec does not take the settings.
    """
    name, _, settings = pattern.partition("?")
    matches = [spec for spec in specs if fnmatch.fnmatchcase(spec.id, name)]
    return [configured(spec, settings) for spec in matches if base_id(spec.id) == spec.id] if settings else matches


def in_order(chosen: Mapping[str, T], specs: Iterable[T]) -> list[T]:
    """Return the chosen specs in the order of `specs`; a configured spec that is not in `specs` follows its method."""
    order = {spec.id: at for at, spec in enumerate(specs)}
    return sorted(chosen.values(), key=lambda spec: (order.get(spec.id, order.get(base_id(spec.id))), spec.id))


def unknown(kind: str, name: str, names: Iterable[str]) -> str:
    """Return the message for an unknown name: it suggests the closest names, or else lists some."""
    name = name if len(name) <= 100 else name[:99] + "…"
    return f"unknown {kind} {name!r}; {suggestion(name, names)}{plugins.trouble()}"


@dataclass(frozen=True)
class Problem:
    """An optimization problem of a paper, which gives objective values their meaning and determines the valid bounds.

    Parameters
    ----------
    id
        ``<paper>.<name>``.
    sense
        Whether a larger (``"max"``) or smaller (``"min"``) objective is better.
    restricts
        Id of a problem with the same objective and a larger feasible set, if any; its bounds are valid here, too.
    cost
        Optional parameter in an id (``hadar.utility?beta=0.5``) for a cost that makes objectives worse. The problem
        with the cost restricts the one without it.
    requires
        What it requires of decisions beyond the problem `base`, as a noun: sentences speak of the price of it
        (``"envy-freeness"``).
    base
        Id of the problem without this requirement, by default the one that it restricts.
    allows
        What this problem allows and the problems that restrict it forbid, as a clause (``"jobs may be interrupted"``).
    """

    id: str
    title: str
    sense: Sense
    unit: str
    restricts: str | None = None
    cost: Parameter | None = None
    _: KW_ONLY
    requires: str = ""
    base: str | None = None
    allows: str = ""

    def __post_init__(self) -> None:
        """Fill in the base."""
        object.__setattr__(self, "base", self.base or self.restricts)

    def less(self, cost: Parameter, query: str) -> Problem:
        """Return the problem with a cost such as ``beta=0.5``; raise `UnknownNameError` if `query` is not its cost."""
        name, _, text = query.partition("=")
        try:
            valid = name == cost.name and cost.read(text, 0.0) is not None
        except ValueError:
            valid = False
        if not valid:
            raise UnknownNameError(f"{self.id}?{query}: write {self.id}?{cost.name}= and {cost.range(0.0)}")
        title = f"{self.title}, less what {query} costs"
        return replace(
            self,
            id=f"{self.id}?{query}",
            title=title,
            restricts=self.id,
            cost=None,
            requires=f"paying for communication ({query})",
            base=self.id,
            allows="",
        )


CACHED_VIEWS = 4
"""Views of a paper that a process caches; all methods, figures and captions of a comparison share one."""


def cached(view: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `view` with a cache of the last views, keyed by the fingerprint and name of the instance."""
    views: dict[tuple[str, str], Any] = {}

    @functools.wraps(view)
    def lookup(instance: Any) -> Any:
        key = (instance.fingerprint, instance.name)
        if key not in views:
            if len(views) >= CACHED_VIEWS:
                del views[next(iter(views))]
            views[key] = view(instance)
        return views[key]

    return lookup


@dataclass(frozen=True)
class PaperSpec:
    """A paper: its view of an instance and its problems.

    Parameters
    ----------
    id
        Short name, the first part of its methods' ids.
    view
        ``view(instance)`` returns the paper's arrays, or raises
        :class:`~schedgap.instances.errors.NotApplicableError` with the reason why it does not apply. The spec caches
        the last views (:func:`cached`).
    decision
        Dataclass of arrays that the paper's models and heuristics return.
    describe
        ``describe(view)`` returns the caption of a comparison: sizes, slots, horizon, what was aggregated.
    usual
        ``usual(instance)`` returns whether its methods run when the user names neither a method nor a paper.
    mixed
        Whether a server may have GPUs of several types; papers without this have no view of such an instance.
    counts
        What the size of an instance is, ``"jobs"`` or ``"tenants"``.
    """

    id: str
    title: str
    view: Callable[[Any], Any]
    problems: tuple[Problem, ...]
    decision: type
    describe: Callable[[Any], str]
    usual: Callable[[Any], bool] = lambda instance: True
    mixed: bool = False
    counts: Literal["jobs", "tenants"] = "jobs"

    def __post_init__(self) -> None:
        """Check the ids of problems; wrap `view` in the check of :meth:`accepted` and a cache."""
        for problem in self.problems:
            if not problem.id.startswith(f"{self.id}."):
                raise UsageError(f"problem {problem.id!r}: its id must begin with its paper: {self.id}.{problem.id}")
        view = self.view
        object.__setattr__(self, "view", cached(functools.wraps(view)(lambda instance: view(self.accepted(instance)))))

    def size(self, instance: Any) -> int:
        """Return the number of jobs or tenants of an instance."""
        return len(getattr(instance, self.counts))

    def accepted(self, instance: Any) -> Any:
        """Return the instance, or raise `NotApplicableError` if it has mixed servers and the paper excludes them."""
        if instance.cluster.mixed and not self.mixed:
            raise NotApplicableError(
                f"{instance.name}: servers have GPUs of several types (servers_of); {self.id} takes one type per server"
            )
        return instance

    def problem(self, name: str) -> Problem:
        """Return the problem with this id, or raise `UnknownNameError` if the paper has no such problem."""
        base, _, query = name.partition("?")
        for problem in self.problems:
            if problem.id == name:
                return problem
            if problem.id == base and problem.cost and query:
                return problem.less(problem.cost, query)
        raise UnknownNameError(unknown("problem", name, [p.id for p in self.problems]))

    def wider(self, name: str) -> list[str]:
        """Return the ids of a problem and of all problems that it restricts; bounds on these hold for it, too."""
        ids: list[str] = []
        current: str | None = name
        while current is not None:
            ids.append(current)
            current = self.problem(current).restricts
        return ids

    def related(self, name: str, other: str) -> bool:
        """Return whether two problems measure the same objective: both restrict the same problem, or one the other."""
        return self.wider(name)[-1] == self.wider(other)[-1]


PAPERS: Registry[PaperSpec] = Registry("paper")


def no_reason(view: object) -> str | None:
    """Return ``None``: there is no reason to skip the method."""
    return None


@dataclass(frozen=True)
class MethodSpec(Parametrised):
    """Common base of the specs of models and heuristics, which take their paper's view and return its decision.

    Parameters
    ----------
    problem
        Id of the problem its decisions belong to.
    aims
        Id of a narrower problem that the method is made for, if its decisions need not satisfy all of that problem's
        constraints: its loss is measured against that problem's optimum.
    claims
        Properties that its decisions must have (``"sharing_incentive"``); the verifier checks each.
    skip
        ``skip(view)`` returns the reason why the method cannot run, or ``None``.
    too_large
        ``too_large(view)`` returns the limit that the view exceeds, so that it runs only with ``--all``, or ``None``.
    by_name
        Whether it runs only where it is named in full: it is in no paper, and does anew what another method does first.
    """

    problem: str
    _: KW_ONLY
    aims: str = ""
    claims: tuple[str, ...] = ()
    skip: Callable[[Any], str | None] = no_reason
    too_large: Callable[[Any], str | None] = no_reason
    by_name: bool = False

    def view(self, instance: Any) -> Any:
        """Return the paper's view of an instance, or a copy for a method of a plug-in, which may write to its arrays.

        All other methods and the figures share one view, and would read what a careless plug-in wrote to it.
        """
        view = PAPERS.get(self.paper).view(instance)
        return copy.deepcopy(view, {id(instance): instance}) if plugins.owners([self.id]) else view
