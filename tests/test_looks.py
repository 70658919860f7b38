"""Methods are told apart in figures by colour, by dashes and marks, in grey and by colour-blind readers."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib import pyplot

import schedgap as sg
from schedgap.harness.show.looks import PALETTE, looks
from schedgap.instances.arrays import Array

TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]

SIGHTS = {
    "normal": np.eye(3),
    "no long waves": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no middle waves": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "no short waves": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
"""What is seen of linear RGB: Machado, Oliveira and Fernandes (2009), table of severity 1.0."""


def lab(colour: str, sight: str = "normal") -> Array:
    """Return CIELAB of a colour as it is seen."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(SIGHTS[sight]) @ linear, 0, 1)
    x = np.asarray(TO_XYZ) @ seen / [0.95047, 1, 1.08883]
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHTS)
def test_colours_differ_for_every_sight(sight: str) -> None:
    least = min(float(np.linalg.norm(lab(a, sight) - lab(b, sight))) for a, b in combinations(PALETTE, 2))
    assert least >= (9.5 if sight != "normal" else 20)


def test_colours_are_seen_on_white_and_on_black() -> None:
    lightness = [lab(one)[0] for one in PALETTE]
    assert min(lightness) >= 39
    assert max(lightness) <= 67


def test_thirty_methods_differ_in_colour_or_dashes_and_in_grey() -> None:
    known = list(looks(f"m{i}" for i in range(30)).values())
    assert len({(one.colour, one.dash) for one in known}) == 30
    assert len({(one.dash, one.mark) for one in known}) == 30
    for a, b in combinations(known, 2):
        if a.dash == b.dash:
            assert abs(lab(a.colour)[0] - lab(b.colour)[0]) > 6
    for a, b in pairwise(known):
        assert (a.colour != b.colour, a.dash != b.dash, a.mark != b.mark) == (True, True, True)


def test_a_name_has_one_look_however_often_it_comes() -> None:
    assert looks(["a", "b", "a", "c"]) == looks(["a", "b", "c"])


def test_twenty_lines_of_a_figure_differ_and_stand_in_its_legend() -> None:
    import pandas as pd

    rows = [{"method": f"m{i}", "gap": 0.01 * i + 0.001 * j, "p.load": j} for i in range(20) for j in range(3)]
    table = pd.DataFrame(rows)
    for ax in (sg.plot.ecdf(table), sg.plot.along(table, "p.load")):
        drawn = [line for line in ax.get_lines() if len(np.asarray(line.get_xdata()))]
        assert len({(line.get_color(), line.get_linestyle(), str(line._dash_pattern)) for line in drawn}) == 20  # type: ignore[attr-defined]
        legend = ax.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == [f"m{i}" for i in range(20)]
        box = legend.get_window_extent()
        assert box.height <= ax.figure.bbox.height
    pyplot.close("all")
