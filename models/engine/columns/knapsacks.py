r"""Knapsack cuts: facets of what fits into one capacity when every block takes a whole number of units.

Let block b use :math:`u_b` units of a capacity C, by the one column that it takes. A *knapsack cut* is

.. math:: \sum_b a_b(u_b) \le A, \qquad A = \max \{ \sum_b a_b(u_b) : \sum_b u_b \le C, \; u_b \in \{0, 1, \dots\} \}

with weights :math:`a_b` that do not fall with the use. All integer solutions satisfy it by the choice of A, which a
dynamic program over the capacity computes; a relaxation may not. For example, three jobs of two GPUs each, with share
1/2 of a column of their own, fit into C = 3; with :math:`a_b(2) = 1`, at most one of them does, and the row says
:math:`3/2 \le 1`. Covers (:mod:`.covers`) are the cuts with weights :math:`\max(\min(u, m_b), u - s)`.

Separation is exact on the few blocks that use a capacity in the relaxation: a linear program finds the weights that the
shares violate most, with a row for each set of uses that fits; sets are added as the dynamic program finds them. Its
dual covers the shares by as few sets as possible, and is solved by a compiled simplex method, since a solver's overhead
for so small a program took half of the time of a root. Weights of all other uses are lifted: each is as large as the
rest allows, one block after another.

Pricing has to know the use of a run before it places the run, since it can then pay any weights.

References
----------
Balas (1975), "Facets of the knapsack polytope"; Boyd (1994), "Fenchel cutting planes for integer programs", for exact
separation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Bools, Ints

SCALE = 2520
"""Weights are whole numbers of 1/SCALE of the largest one, so that halves, thirds, … and tenths are exact."""

VIOLATED = 0.01
"""Smallest violation, relative to A, for which a cut is added."""

LEAST = 1e-9
"""Least share of a column that counts."""


@dataclass(frozen=True, eq=False)
class Knapsacks:
    """A batch of ``c`` knapsack cuts.

    Attributes
    ----------
    row, limit
        ``(c,)`` capacity of each cut, and its right-hand side, ``A``.
    which
        ``(c,)`` index of the weights of each cut.
    weights
        ``(w, blocks, levels)`` whole weights by use, 0, 1, …; a larger use than the last one has the last weight.
    """

    row: Ints
    limit: Ints
    which: Ints
    weights: Ints

    def __len__(self) -> int:
        return len(self.row)

    def and_(self, others: Knapsacks) -> Knapsacks:
        """Return these cuts followed by `others`."""
        which = np.concatenate([self.which, others.which + len(self.weights)])
        weights = np.concatenate([self.weights, others.weights])
        return Knapsacks(
            np.concatenate([self.row, others.row]), np.concatenate([self.limit, others.limit]), which, weights
        )

    def take(self, chosen: Bools) -> Knapsacks:
        """Return the cuts selected by a mask, with only their weights."""
        used, which = np.unique(self.which[chosen], return_inverse=True)
        return Knapsacks(self.row[chosen], self.limit[chosen], which, self.weights[used])

    def limits(self, capacity: Array) -> Array:
        """Return ``(c,)`` the right-hand sides."""
        return self.limit.astype(float)

    def weight(self, cut: Ints, block: Ints, use: Ints) -> Ints:
        """Return the weights of uses by blocks in cuts; the arrays broadcast."""
        return np.asarray(self.weights[self.which[cut], block, np.minimum(use, self.weights.shape[2] - 1)])

    def use(self, use: sp.csc_array, block: Ints, first: int) -> sp.csc_array:
        """Return the coefficients of columns in the cuts from number `first` on.

        The columns belong to the blocks `block` ``(c,)`` and use the capacities by `use`.
        """
        taken = use.tocsr()[self.row[first:]].tocoo()
        units = np.rint(taken.data).astype(np.int64)
        data = self.weight(first + taken.row.astype(np.int64), block[taken.col], units).astype(float)
        nonzero = data > 0
        return sp.csc_array((data[nonzero], (taken.row[nonzero], taken.col[nonzero])), taken.shape)


def separated(
    capacity: Array, most: Ints, rows: Ints, use: sp.csc_array, block: Ints, share: Array, budget: clock.Budget
) -> Knapsacks | None:
    """Return, for each of some capacities, the knapsack cut that the shares of columns violate most, if any.

    Parameters
    ----------
    capacity
        ``(m,)`` capacities; only whole units count.
    most
        ``(blocks,)`` largest use of a capacity by a block.
    rows
        The capacities that may have cuts: their use is known before a run is placed.
    use, block, share
        The columns, with their shares in the relaxation.
    budget
        Separation ends once its time is used.
    """
    by_row, levels = use.tocsr(), int(most.max(initial=0)) + 1
    # Blocks that use much come first when weights are lifted.
    often = np.bincount(block, np.asarray(use.sum(axis=0)).ravel() * share, len(most))
    order = np.argsort(-often, kind="stable")
    found: dict[bytes, tuple[int, int] | None] = {}
    cuts: list[tuple[int, int, int]] = []
    weights: list[Ints] = []
    for row in rows.tolist():
        if budget.left_s <= 0:
            break
        mine = slice(by_row.indptr[row], by_row.indptr[row + 1])
        column = by_row.indices[mine]
        key = block[column] * levels + np.rint(by_row.data[mine]).astype(np.int64)
        keys, at = np.unique(key[share[column] > LEAST], return_inverse=True)
        shares = np.asarray(np.bincount(at, share[column][share[column] > LEAST], len(keys)), float)
        owner, units, room = keys // levels, keys % levels, int(capacity[row])
        if units @ shares <= room - units.max(initial=0):
            continue  # any weights would fit
        # Runs last, so that the same shares often use several slots after one another.
        same = np.concatenate([[room], keys, np.round(shares * 1e6)]).tobytes()
        if same not in found:
            table = _weights(room, most, owner, units, shares, order, levels)
            found[same] = None if table is None else (len(weights), table[1])
            if table is not None:
                weights.append(table[0])
        if (known := found[same]) is not None:
            cuts.append((row, known[1], known[0]))
    if not cuts:
        return None
    row_, limit, which = np.array(cuts, np.int64).T
    return Knapsacks(row_, limit, which, np.stack(weights))


def _weights(
    room: int, most: Ints, owner: Ints, units: Ints, shares: Array, order: Ints, levels: int
) -> tuple[Ints, int] | None:
    """Return the weights ``(blocks, levels)`` and the limit of the cut that shares violate most, or ``None``."""
    from schedgap.models.engine.columns import _kernels as kernels

    part = kernels.violated(room, owner, units, shares, 1 + VIOLATED, PIVOTS)
    if not part.any():
        return None
    scaled = np.floor(part * SCALE + 1e-6).astype(np.int64)
    weights, limit = kernels.lifted(room, most, owner, units, scaled, order, levels)
    value = float(weights[owner, units] @ shares)
    return (weights, limit) if value > limit * (1 + VIOLATED) else None


PIVOTS = 500
"""Most pivots of the linear program of a separation; weights that some set exceeds have a larger limit."""
