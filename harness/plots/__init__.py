"""Figures of a run, drawn without pyplot, the same for the same run. Every file here registers its own."""

from schedgap.harness.drawing import write_figures
from schedgap.harness.plots.figures import FIGURES, Drawn, FigureInput, FigureSpec, draw, draw_all, save_all
from schedgap.instances.discovery import import_submodules

import_submodules(__name__)

__all__ = ["FIGURES", "Drawn", "FigureInput", "FigureSpec", "draw", "draw_all", "save_all", "write_figures"]
