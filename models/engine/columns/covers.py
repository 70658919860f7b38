r"""Cover cuts: rows that every integer solution satisfies and the LP relaxation may violate.

Reserve :math:`m_b \ge 0` of a capacity :math:`C` for each block, and leave a *spare* :math:`s \ge 0`:
:math:`\sum_b m_b \le C - s`. A block that uses more than its reserve and the spare together leaves less than their
reserves to the other blocks. So

.. math:: \sum_b \max(\min(u_b, m_b), u_b - s) \le C - s

holds for the uses of the blocks, :math:`u \ge 0` with :math:`\sum_b u_b \le C`. Proof: if all terms are at most
:math:`m_b`, their sum is at most :math:`\sum_b m_b`. Otherwise one of them is :math:`u_b - s`, and no other exceeds its
:math:`u_b`, so the sum is at most :math:`\sum_b u_b - s`. Both are at most :math:`C - s`. Since a block takes one
column, the coefficient of a column is this term for the column's use. For example, a gang of four with share 1/2 and
two single-GPU jobs with share 1 fit in a capacity of 4 and violate such a row.

The reserve of every block is either nothing or its largest use. The coefficient is then convex in the use of a column:
the price of a cover makes additional GPUs of a slot dearer than the first ones, as the pricing of gangs requires.
Where pricing can handle any coefficients, :mod:`.knapsacks` has stronger cuts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from schedgap.instances.arrays import Array, Bools, Ints


@dataclass(frozen=True, eq=False)
class Covers:
    """A batch of ``c`` cover cuts.

    Attributes
    ----------
    row, spare
        ``(c,)`` capacity of each cut, and its spare ``s``.
    kept
        ``(c, blocks)`` reserves of the blocks, ``m``.
    """

    row: Ints
    spare: Ints
    kept: Ints

    def __len__(self) -> int:
        return len(self.row)

    @staticmethod
    def none(blocks: int) -> Covers:
        """Return an empty batch."""
        return Covers(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, blocks), np.int64))

    def and_(self, others: Covers) -> Covers:
        """Return these covers followed by `others`."""
        pairs = zip(vars(self).values(), vars(others).values(), strict=True)
        return Covers(*(np.concatenate(pair) for pair in pairs))

    def take(self, chosen: Bools) -> Covers:
        """Return the cuts selected by a mask."""
        return Covers(self.row[chosen], self.spare[chosen], self.kept[chosen])

    def limits(self, capacity: Array) -> Array:
        """Return ``(c,)`` the right-hand sides, given the capacities ``(m,)``."""
        return np.asarray(capacity[self.row] - self.spare)

    def use(self, use: sp.csc_array, block: Ints, first: int) -> sp.csc_array:
        """Return the coefficients of columns in the covers from number `first` on.

        The columns belong to the blocks `block` ``(c,)`` and use the capacities by `use`.
        """
        taken = use.tocsr()[self.row[first:]].tocoo()
        kept = self.kept[first:][taken.row, block[taken.col]]
        data = np.maximum(np.minimum(taken.data, kept), taken.data - self.spare[first:][taken.row])
        nonzero = data > 0
        return sp.csc_array((data[nonzero], (taken.row[nonzero], taken.col[nonzero])), taken.shape)


def broken(capacity: Array, most: Ints, use: sp.csc_array, block: Ints, share: Array) -> Covers:
    """Separate cover cuts: return, for each capacity, the cut that the shares ``(c,)`` of columns violate most, if any.

    Parameters
    ----------
    capacity
        ``(m,)`` whole numbers.
    most
        ``(blocks,)`` largest use of a capacity by a block.
    use, block, share
        The columns: what they use, their blocks and their shares.
    """
    from schedgap.models.engine.columns import _kernels as kernels

    rows = use.tocsr()
    # Indices are of 32 or 64 bits, as scipy likes; the kernel would be compiled for both.
    columns = rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data, block, share
    return Covers(*kernels.covers(capacity.astype(np.int64), most, *columns))
