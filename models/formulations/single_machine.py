"""Statement of the relaxation to one machine, which bounds mean completion times (:mod:`.single_machine`)."""

from __future__ import annotations

from schedgap.models.explain import Formulation, Row, Symbol


def intervals(id: str, *, volume: str, weights: str, mean: bool, example: str) -> Formulation:
    """Return the statement of the bound by mean busy times as an LP over intervals.

    Parameters
    ----------
    id
        Id of the model.
    volume
        What :math:`v_j` is, as LaTeX.
    weights
        The resources that are weighted.
    mean
        Whether completion times count from the arrival, as a mean; weighted and summed otherwise.
    example
        Instance to show.
    """
    total = r"\sum_j w_j \cdot \left( \sum_t b_{j,t} \cdot x_{j,t} + p_j/2 \right)"
    if mean:
        total = r"\frac{1}{n} \cdot \sum_j \left( \sum_t b_{j,t} \cdot x_{j,t} + p_j/2 - a_j \right)"
    return Formulation(
        id=id,
        decides=(
            "A lower bound on completion times, whatever a scheduler does: the cluster as a single machine that may "
            "interrupt jobs and share itself among them."
        ),
        sets=(Symbol(r"j \in J", "jobs"), Symbol(r"t", "intervals of equal length until everything can be done")),
        data=(
            Symbol(r"\alpha \ge 0", f"weights of the {weights}, all totals counted as 1; a small search picks them"),
            Symbol(volume, "volume: how long all of the machine takes for job $j$ at least"),
            Symbol(r"p_j", "time of job $j$ at its fastest"),
            *((Symbol(r"a_j", "its arrival"),) if mean else ()),
            Symbol(r"b_{j,t}", "begin of interval $t$, or the job's start if that is later"),
            Symbol(r"u_{j,t}", "most of its work that a job can do in an interval"),
            Symbol(r"\Delta", "length of an interval"),
            *(() if mean else (Symbol(r"w_j", "weight of job $j$"),)),
        ),
        variables=(
            Symbol(r"x_{j,t} \in [0, u_{j,t}]", "part of the work of job $j$ that is done in interval $t$", "x"),
        ),
        objective=Row(
            total,
            note=(
                "A job completes no earlier than half its shortest duration after its mean busy time (Goemans et al.)."
            ),
        ),
        constraints=(
            Row(r"\sum_t x_{j,t} = 1", every="j", note="All work is done.", parts=("all_done",)),
            Row(r"\sum_j v_j \cdot x_{j,t} \le \Delta", every="t", note="One machine.", parts=("one_machine",)),
        ),
        duals="That of an interval is what more of the machine would save there.",
        solved=(
            "In closed form, without intervals: the best of shortest remaining volume first (Schrage), of mean "
            "busy times "
            "by largest weight per volume, of every job alone, and of mixtures. The LP states the second, for "
            "teaching and "
            "for a test; work counts as done at the begin of an interval, so its optimum is a bound as well."
        ),
        example=example,
    )
