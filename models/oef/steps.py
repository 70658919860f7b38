"""Steps of the first-order method (:mod:`.first_order`): compiled loops, or any array library, such as one on a card.

The lines of :class:`ByLibrary` are in the array API (the standard of the Consortium for Python Data API Standards) and
run wherever the library runs: numpy, torch and jax on processors, torch and jax on cards. :class:`Compiled` has the
same steps as loops for processors.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.models.oef.envy import Looks, Parts, envied

BLOCK = 2**25
"""Pairs of tenants that are looked at together on a card: 256 MB in double precision."""


class Point(NamedTuple):
    """Bundles ``(n, k)``, multipliers of envy rows ``(m,)``, and prices of types ``(k,)``, of any array library."""

    bundle: Any
    multiplier: Any
    price: Any


class SortedRows(NamedTuple):
    """Envy rows, sorted by who envies: the first row of each tenant ``(n + 1,)``, and who envies whom ``(m,)``."""

    first: Ints
    envious: Ints
    other: Ints


class Steps(Protocol):
    """Steps of the method on given rows, with widths ``(n, k)`` of the steps of bundles."""

    def given(self, point: Point) -> Point:
        """Return the point in arrays of the library."""

    def taken(self, point: Point) -> Point:
        """Return the point in arrays of numpy, in double precision."""

    def moved(self, point: Point, ratio: float) -> Point:
        """Return the next point of the primal-dual hybrid gradient method; `ratio` is that of primal to dual steps."""

    def apart(self, one: Point, two: Point) -> tuple[float, float]:
        """Return the squared distances of two points, of bundles and of multipliers and prices."""

    def mixed(self, part: float, to: Point, point: Point, anchor: Point) -> Point:
        """Return the reflected average with the anchor: `part` of ``2 to − point``, and the rest of the anchor."""

    def prices(self, multiplier: Any) -> float:
        """Return the sum of the prices of all types that follow from multipliers."""


class Library(NamedTuple):
    """How the method computes.

    Attributes
    ----------
    steps
        ``steps(of, rows, width)`` are the steps on these rows.
    envied
        Finds the pairs of tenants of whom one envies the other.
    device
        What it computes on, in words.
    """

    steps: Callable[[Parts, SortedRows, Array], Steps]
    envied: Looks
    device: str


class Compiled:
    """Steps as compiled loops over rows (:mod:`._kernels`)."""

    def __init__(self, of: Parts, rows: SortedRows, width: Array, kind: Any = np.float64) -> None:
        self.worth, self.share, self.gain = (np.asarray(part, kind) for part in of[:3])
        self.rows, self.width, self.kind = rows, width.astype(kind), kind
        self.slope = np.zeros_like(self.worth)

    def given(self, point: Point) -> Point:
        """Return the point in this precision."""
        return Point(*(np.asarray(part, self.kind) for part in point))

    def taken(self, point: Point) -> Point:
        """Return the point in double precision."""
        return Point(*(np.asarray(part, float) for part in point))

    def moved(self, point: Point, ratio: float) -> Point:
        """Return the next point."""
        from schedgap.models.oef import _kernels as kernels

        to = Point(*(np.empty_like(part) for part in point))
        first, _, other = self.rows
        kernels.gathered(self.worth, first, other, point.multiplier, self.slope)
        of_steps = self.width * self.kind(ratio), self.kind(0.5 / ratio), self.kind(1 / ratio)
        kernels.moved(self.worth, self.gain, self.share, first, other, of_steps, tuple(point), self.slope, tuple(to))
        return to

    def apart(self, one: Point, two: Point) -> tuple[float, float]:
        """Return the squared distances."""
        primal, dual = _apart(np, self.width, one, two)
        return float(primal), float(dual)

    def mixed(self, part: float, to: Point, point: Point, anchor: Point) -> Point:
        """Return the reflected average."""
        from schedgap.models.oef import _kernels as kernels

        out = Point(*(np.empty_like(one) for one in to))
        for parts in zip(to, point, anchor, out, strict=True):
            kernels.mixed(self.kind(part), *(one.ravel() for one in parts))
        return out

    def prices(self, multiplier: Any) -> float:
        """Return the sum of prices."""
        from schedgap.models.oef import _kernels as kernels

        kernels.gathered(self.worth, self.rows.first, self.rows.other, multiplier, self.slope)
        return float(((self.gain[:, None] * self.worth + self.slope) / self.share[:, None]).max(axis=0).sum())


class ByLibrary:
    """Steps in the array API.

    The rows of a tenant, and those towards it, are added up as differences of running sums, which are in double
    precision in any case.
    """

    def __init__(self, library: _Namespace, of: Parts, rows: SortedRows, width: Array) -> None:
        self.library, self.size = library, len(rows.other)
        rows = _padded(rows, library.compiles)
        self.more = len(rows.other) - self.size
        self.worth, self.share, self.gain = (library.array(part) for part in of[:3])
        self.width = library.array(width)
        order = np.argsort(rows.other, kind="stable")
        towards = np.searchsorted(rows.other[order], np.arange(len(of.worth) + 1))
        self.sorted = tuple(library.places(part) for part in (*rows, order, rows.envious[order], towards))

    def given(self, point: Point) -> Point:
        """Return the point in arrays of the library."""
        padded = point._replace(multiplier=np.pad(point.multiplier, (0, self.more)))
        return Point(*(self.library.array(part) for part in padded))

    def taken(self, point: Point) -> Point:
        """Return the point in arrays of numpy."""
        found = Point(*(self.library.numpy(part) for part in point))
        return found._replace(multiplier=found.multiplier[: self.size])

    def moved(self, point: Point, ratio: float) -> Point:
        """Return the next point."""
        return Point(*self.library.moved(self.worth, self.share, self.gain, self.sorted, self.width, point, ratio))

    def apart(self, one: Point, two: Point) -> tuple[float, float]:
        """Return the squared distances."""
        primal, dual = self.library.apart(self.width, one, two)
        return float(primal), float(dual)

    def mixed(self, part: float, to: Point, point: Point, anchor: Point) -> Point:
        """Return the reflected average."""
        return Point(*self.library.mixed(part, to, point, anchor))

    def prices(self, multiplier: Any) -> float:
        """Return the sum of prices."""
        return float(self.library.prices(self.worth, self.share, self.gain, self.sorted, multiplier))


class _Namespace:
    """An array library `xp` on a device, in double precision or not; it may compile functions `just_in_time`."""

    def __init__(
        self, xp: Any, single: bool, device: Any = None, just_in_time: Callable[[Any], Any] | None = None
    ) -> None:
        self.compiles, compiled = just_in_time is not None, just_in_time or (lambda function: function)
        self.xp, self.kind, self.device = xp, xp.float32 if single else xp.float64, device
        self.moved = compiled(partial(_moved, xp))
        self.apart = compiled(partial(_apart, xp))
        self.mixed = compiled(_mixed)
        self.prices = compiled(partial(_prices, xp))
        self._envies = compiled(partial(_envies, xp))
        self._next = compiled(partial(_next, xp))

    def array(self, numbers: Any) -> Any:
        """Return numbers as an array of the library."""
        return self.xp.asarray(np.asarray(numbers, float), dtype=self.kind, device=self.device)

    def places(self, places: Ints) -> Any:
        """Return places in arrays as an array of the library."""
        return self.xp.asarray(np.asarray(places, np.int64), device=self.device)

    def numpy(self, array: Any) -> Array:
        """Return an array of the library in numpy, in double precision."""
        array = array.cpu() if hasattr(array, "cpu") else array
        return np.asarray(array if hasattr(array, "__array__") else np.from_dlpack(array), float)

    def envied(self, worth: Array, bundle: Array, most: int, least: float) -> tuple[Ints, Ints, float]:
        """Return what :func:`.envy.envied` returns, from products of blocks."""
        xp, n, at = self.xp, len(worth), 0
        values, bundles, found, largest = self.array(worth), self.array(bundle), [], least
        size = max(1, min(n, BLOCK // n))
        while at < n:
            at = min(at, n - size)  # blocks have one shape, so that the last ones may overlap
            envy = self._envies(values[at : at + size, :], bundles, self.places(np.arange(at, at + size)))
            for _ in range(min(most, n - 1)):
                whom, much, envy = self._next(envy)
                amounts = self.numpy(much)
                who = np.flatnonzero(amounts > least)
                if not len(who):
                    break
                largest = max(largest, float(amounts.max()))
                found.append((at + who) * n + np.asarray(self.numpy(xp.astype(whom, xp.float64)), np.int64)[who])
            at += size
        pairs = np.unique(np.concatenate([np.zeros(0, np.int64), *found]))
        return pairs // n, pairs % n, largest


def library(name: str, single: bool = False) -> Library:
    """Return how to compute: ``compiled`` loops, or with the array library ``numpy``, ``torch`` or ``jax``.

    Torch and jax take a card if they find one. It raises `NotApplicableError` if the library is not installed.
    """
    if name == "compiled":
        kind = np.float32 if single else np.float64
        return Library(partial(Compiled, kind=kind), envied, "processor")
    needed = {"torch": ("torch", "array_api_compat"), "jax": ("jax",)}.get(name, (name,))
    for package in needed:
        if importlib.util.find_spec(package) is None:
            how = "install it as pytorch.org says" if package == "torch" else "pip install 'schedgap[gpu]'"
            raise NotApplicableError(f"{package} is not installed: {how}")
    space, device = _NAMESPACES.get(name, _plain)(name, single)
    return Library(partial(ByLibrary, space), envied if name == "numpy" else space.envied, device)


def _plain(name: str, single: bool) -> tuple[_Namespace, str]:
    return _Namespace(importlib.import_module(name), single), "processor"


def _torch(name: str, single: bool) -> tuple[_Namespace, str]:
    import array_api_compat.torch as xp
    import torch

    card = torch.cuda.is_available()
    return _Namespace(xp, single, "cuda" if card else "cpu"), torch.cuda.get_device_name() if card else "processor"


def _jax(name: str, single: bool) -> tuple[_Namespace, str]:
    import jax

    jax.config.update("jax_enable_x64", True)
    device = jax.devices()[0]
    words = "processor" if device.platform == "cpu" else device.device_kind
    return _Namespace(jax.numpy, single, device, jax.jit), words


_NAMESPACES: dict[str, Callable[[str, bool], tuple[_Namespace, str]]] = {"torch": _torch, "jax": _jax}


def _padded(rows: SortedRows, compiles: bool) -> SortedRows:
    """Return rows of which the last tenant does not envy itself a few times over, so that their number recurs.

    What is compiled just in time is compiled anew for each number of rows. Numbers are a fifth apart.
    """
    first, envious, other = rows
    size = len(other)
    wanted = int(np.ceil(2 ** (np.ceil(4 * np.log2(max(size, 1))) / 4))) if compiles else size
    more = np.full(wanted - size, len(first) - 2)
    return SortedRows(np.append(first[:-1], wanted), np.append(envious, more), np.append(other, more))


def _sums(xp: Any, parts: Any, first: Any) -> Any:
    """Return the sums of parts from each of `first` to the next."""
    running = xp.cumulative_sum(parts, axis=0, dtype=xp.float64, include_initial=True)
    at = xp.take(running, first, axis=0)
    return xp.astype(at[1:, ...] - at[:-1, ...], parts.dtype)


def _slope(xp: Any, worth: Any, rows: Any, multiplier: Any) -> Any:
    """Return ``(n, k)`` what envy rows with these multipliers add to what devices are worth."""
    first, _, _, order, envious, towards = rows
    wanted = xp.take(multiplier, order, axis=0)[:, None] * xp.take(worth, envious, axis=0)
    return worth * _sums(xp, multiplier, first)[:, None] - _sums(xp, wanted, towards)


def _moved(xp: Any, worth: Any, share: Any, gain: Any, rows: Any, width: Any, point: Any, ratio: Any) -> Any:
    bundle, multiplier, price = point
    _, envious, other, *_ = rows
    more = gain[:, None] * worth + _slope(xp, worth, rows, multiplier) - share[:, None] * price[None, :]
    to = _positive(xp, bundle + width * ratio * more)
    ahead = 2 * to - bundle
    better = xp.take(ahead, other, axis=0) - xp.take(ahead, envious, axis=0)
    envy = xp.sum(xp.take(worth, envious, axis=0) * better, axis=1)
    used = xp.sum(share[:, None] * ahead, axis=0)
    return to, _positive(xp, multiplier + envy * (0.5 / ratio)), _positive(xp, price + (used - 1) * (1 / ratio))


def _positive(xp: Any, numbers: Any) -> Any:
    return xp.where(numbers > 0, numbers, xp.zeros_like(numbers))


def _apart(xp: Any, width: Any, one: Any, two: Any) -> Any:
    bundle, rows, prices = (a - b for a, b in zip(one, two, strict=True))
    return xp.sum(bundle * bundle / width), 2 * xp.sum(rows * rows) + xp.sum(prices * prices)


def _mixed(part: Any, to: Any, point: Any, anchor: Any) -> Any:
    return Point(*(part * (2 * t - p) + (1 - part) * a for t, p, a in zip(to, point, anchor, strict=True)))


def _prices(xp: Any, worth: Any, share: Any, gain: Any, rows: Any, multiplier: Any) -> Any:
    most = xp.max((gain[:, None] * worth + _slope(xp, worth, rows, multiplier)) / share[:, None], axis=0)
    return xp.sum(most)


def _envies(xp: Any, worth: Any, bundle: Any, who: Any) -> Any:
    """Return how much each tenant of a block envies each tenant; itself less than anybody."""
    own = xp.sum(worth * xp.take(bundle, who, axis=0), axis=1)
    envy = worth @ bundle.T - own[:, None]
    itself = xp.arange(bundle.shape[0], dtype=who.dtype)[None, :] == who[:, None]
    return xp.where(itself, xp.full_like(envy, -xp.inf), envy)


def _next(xp: Any, envy: Any) -> Any:
    """Return whom each tenant of a block envies most and how much, and the envies without these."""
    whom, much = xp.argmax(envy, axis=1), xp.max(envy, axis=1)
    taken = xp.arange(envy.shape[1], dtype=whom.dtype)[None, :] == whom[:, None]
    return whom, much, xp.where(taken, xp.full_like(envy, -xp.inf), envy)
