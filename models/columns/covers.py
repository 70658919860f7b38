r"""Rows that every solution in whole columns keeps and the relaxation need not: covers of capacities by blocks.

Of a capacity :math:`C`, let blocks :math:`b \in S` use at most :math:`m_b` each and :math:`C - s` together. As soon as
another block uses more than the *spare* :math:`s`, the blocks of :math:`S` have to go without some. So

.. math:: \sum_{b \in S} u_b + \sum_{b \notin S} \max(0, u_b - s) \le C - s

holds for what blocks use, :math:`u`: where nobody else uses more than :math:`s`, the left side is at most
:math:`\sum_{b \in S} m_b`; where somebody does, it is at most :math:`C - s`. A gang that holds half of four GPUs half
of the time beside jobs that hold the rest all the time is within capacity, and breaks such a row. What a column adds to
a row grows with what it uses and is convex in it: a price of a row makes further GPUs of a slot dearer than first ones.
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
        ``(c,)`` the capacity that each belongs to, and what its blocks leave of it.
    member
        ``(c, blocks)`` its blocks, ``S``.
    """

    row: Ints
    spare: Ints
    member: Bools

    def __len__(self) -> int:
        return len(self.row)

    @staticmethod
    def none(blocks: int) -> Covers:
        """Return no rows."""
        return Covers(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, blocks), bool))

    def and_(self, others: Covers) -> Covers:
        """Return these rows and others."""
        pairs = zip(vars(self).values(), vars(others).values(), strict=True)
        return Covers(*(np.concatenate(pair) for pair in pairs))

    def use(self, use: sp.csc_array, block: Ints, first: int) -> sp.csc_array:
        """Return what columns add to these rows from `first` on; they use capacities by `use` and are of `block`."""
        taken = use.tocsr()[self.row[first:]].tocoo()
        inside = self.member[first:][taken.row, block[taken.col]]
        data = np.where(inside, taken.data, np.maximum(taken.data - self.spare[first:][taken.row], 0.0))
        some = data > 0
        return sp.csc_array((data[some], (taken.row[some], taken.col[some])), taken.shape)


def broken(capacity: Array, most: Ints, use: sp.csc_array, block: Ints, share: Array) -> Covers:
    """Return, for each capacity, the row that `share` ``(c,)`` of columns breaks most, where they break any.

    Parameters
    ----------
    capacity
        ``(m,)`` whole numbers.
    most
        ``(blocks,)`` what a block uses at most of a capacity.
    use, block
        The columns.
    """
    from schedgap.models.columns import _kernels as kernels

    rows = use.tocsr()
    spare, member = kernels.covers(capacity.astype(np.int64), most, rows.indptr, rows.indices, rows.data, block, share)
    row = np.flatnonzero(spare)
    return Covers(row, spare[row], member[row])
