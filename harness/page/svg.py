"""Figures as elements of a page: the picture and nothing else of an SVG file."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping

from markupsafe import Markup

SVG_ELEMENTS = {
    "svg",
    "g",
    "path",
    "use",
    "defs",
    "clipPath",
    "rect",
    "image",
    "circle",
    "ellipse",
    "line",
    "text",
}
"""What a figure is made of; anything else (styles, scripts, metadata) is left out."""


def inline_svg(svg: str, prefix: str, alt: str) -> Markup:
    """Return an SVG file as an element of a page: with ids of its own, no styles or scripts, no fixed size.

    Parameters
    ----------
    svg
        The file's text.
    prefix
        Put before every id, so that figures in one page do not refer to each other's parts.
    alt
        Alternative text.
    """
    root = ET.fromstring(svg)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    _strip(root)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = _attributes(element.attrib, prefix, used)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": alt,
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
    }
    return Markup(ET.tostring(root, encoding="unicode"))


def _strip(element: ET.Element) -> None:
    """Remove all descendants that are not part of the picture, and the white space between."""
    for child in list(element):
        if _local(child.tag) in SVG_ELEMENTS:
            child.tail = None
            _strip(child)
        else:
            element.remove(child)
    if _local(element.tag) != "text":
        element.text = None


def _local(name: str) -> str:
    """Return a tag's or attribute's name without its namespace."""
    return name.rsplit("}", 1)[-1]


def _attributes(attributes: Mapping[str, str], prefix: str, used: set[str]) -> dict[str, str]:
    """Return attributes with renamed ids and references, without handlers and references to elsewhere.

    Letters are outlines; what matplotlib calls ``text_1`` gets the class ``text``, by which pages know them.
    """
    kept = {"class": "text"} if attributes.get("id", "").startswith("text_") else {}
    for full, value in attributes.items():
        name = _local(full)
        if name.startswith("on") or name == "class" or (name == "id" and value not in used):
            continue
        if name == "href" and not value.startswith(("#", "data:image/png;base64,")):
            continue
        renamed = prefix + value if name == "id" else re.sub(r"^#", f"#{prefix}", value) if name == "href" else value
        kept[name] = renamed.replace("url(#", f"url(#{prefix}")
    return kept
