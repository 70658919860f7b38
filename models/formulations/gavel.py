"""Statement of Gavel's makespan policy as a fluid LP (Narayanan et al., OSDI 2020, §4.2)."""

from __future__ import annotations

from schedgap.models.explain import FORMULATIONS, Formulation, Row, Symbol

FORMULATIONS.register(
    Formulation(
        id="gavel.makespan_fluid",
        decides=(
            "Which part of every job's work is done on which GPU type, so that all work is done as early as possible."
        ),
        sets=(Symbol(r"j \in J", "jobs"), Symbol(r"r \in R", "GPU types")),
        data=(
            Symbol(r"W_j", "GPUs of the gang"),
            Symbol(r"d_j^r", r"time that the gang needs for all of its work on type $r$, $E_j/(W_j \cdot X_j^r)$"),
            Symbol(r"a_j", "start of the slot in which the job arrives"),
            Symbol(r"C^r", "GPUs of type $r$"),
        ),
        variables=(
            Symbol(r"M \ge 0", "the makespan", "makespan"),
            Symbol(r"x_{j,r} \ge 0", "part of the work of $j$ that is done on type $r$", "x"),
        ),
        objective=Row("M"),
        constraints=(
            Row(r"\sum_r x_{j,r} \ge 1", every="j", note="All work is done.", parts=("work_done",)),
            Row(
                r"a_j + \sum_r d_j^r \cdot x_{j,r} \le M",
                every="j",
                note="One part after another, from the arrival on.",
                parts=("one_after_another",),
            ),
            Row(
                r"\sum_j W_j \cdot d_j^r \cdot x_{j,r} \le C^r \cdot (M - \min_i a_i)",
                every="r",
                note="GPU seconds of a type.",
                parts=("gpu_seconds",),
            ),
        ),
        duals=(
            "Those of the last two families say what makes the makespan as long as it is: jobs that are long alone, or "
            "GPU types that have too much to do."
        ),
        example="paper/hadar-fig1",
    )
)
