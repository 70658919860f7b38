r"""Rows that every solution in whole columns keeps and the relaxation need not: covers of capacities by blocks.

Of a capacity :math:`C`, let blocks keep :math:`m_b \ge 0` each, and let a *spare* :math:`s \ge 0` remain beside them:
:math:`\sum_b m_b \le C - s`. As soon as a block uses more than it keeps and the spare, others have to go without. So

.. math:: \sum_b \max(\min(u_b, m_b), u_b - s) \le C - s

holds for what blocks use, :math:`u \ge 0` with :math:`\sum_b u_b \le C`. Proof: where all terms are at most
:math:`m_b`, their sum is at most :math:`\sum_b m_b`. Otherwise one of them is :math:`u_b - s`; no other is above its
:math:`u_b`, so that the sum is at most :math:`\sum_b u_b - s`. Either is at most :math:`C - s`. As a block has one
column, each column adds the term of what it uses. A gang that holds half of four GPUs half of the time beside jobs that
hold the rest all the time is within capacity, and breaks such a row.

Where blocks keep nothing, or all that they can use, a term is convex in what a column uses: a price of a row makes
further GPUs of a slot dearer than first ones, which is what pricing of gangs needs. Where the use of a run is known
before it is placed, pricing takes any term, and blocks may keep parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from schedgap.instances.arrays import Array, Bools, Ints


@dataclass(frozen=True, eq=False)
class Covers:
    """``c`` rows.

    Attributes
    ----------
    row, spare
        ``(c,)`` the capacity that each belongs to, and what remains of it, ``s``.
    kept
        ``(c, blocks)`` what blocks keep, ``m``.
    """

    row: Ints
    spare: Ints
    kept: Ints

    def __len__(self) -> int:
        return len(self.row)

    @staticmethod
    def none(blocks: int) -> Covers:
        """Return no rows."""
        return Covers(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, blocks), np.int64))

    def and_(self, others: Covers) -> Covers:
        """Return these rows and others."""
        pairs = zip(vars(self).values(), vars(others).values(), strict=True)
        return Covers(*(np.concatenate(pair) for pair in pairs))

    def use(self, use: sp.csc_array, block: Ints, first: int) -> sp.csc_array:
        """Return what columns add to these rows from `first` on; they use capacities by `use` and are of `block`."""
        taken = use.tocsr()[self.row[first:]].tocoo()
        kept = self.kept[first:][taken.row, block[taken.col]]
        data = np.maximum(np.minimum(taken.data, kept), taken.data - self.spare[first:][taken.row])
        some = data > 0
        return sp.csc_array((data[some], (taken.row[some], taken.col[some])), taken.shape)


def broken(capacity: Array, most: Ints, parts: Bools | None, use: sp.csc_array, block: Ints, share: Array) -> Covers:
    """Return, for each capacity, the row that `share` ``(c,)`` of columns breaks most, where they break any.

    Parameters
    ----------
    capacity
        ``(m,)`` whole numbers.
    most
        ``(blocks,)`` what a block uses at most of a capacity.
    parts
        ``(m,)`` capacities of which blocks may keep any part, and which alone have covers; ``None`` for all of them,
        but blocks keep nothing or all that they can use.
    use, block
        The columns.
    """
    from schedgap.models.columns import _kernels as kernels

    rows = use.tocsr()
    some = np.arange(len(capacity)) if parts is None else np.flatnonzero(parts)
    given = some, capacity.astype(np.int64), most, parts is not None
    row, spare, kept = kernels.covers(*given, rows.indptr, rows.indices, rows.data, block, share)
    return Covers(row, spare, kept)
