"""Figures of a run, drawn without pyplot, the same for the same run. Every file here registers its own."""

from harness.drawing import write_figures
from harness.plots.figures import FIGURES, Drawn, FigureInput, FigureSpec, draw, draw_all, save_all
from instances.discovery import import_submodules

import_submodules(__name__)

__all__ = ["FIGURES", "Drawn", "FigureInput", "FigureSpec", "draw", "draw_all", "save_all", "write_figures"]
