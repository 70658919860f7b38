"""The site that `make docs` has built: its links lead to existing places, and it works in a browser offline."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).resolve().parents[2] / "build/docs"
PAGES = sorted(page.relative_to(SITE).as_posix() for page in SITE.rglob("*.html"))


class Reader(HTMLParser):
    """Collects the links of a page, the files that it loads, and the anchors to which others can link."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := found.get(name))}
        if tag == "a":
            self.links.append(found.get("href") or "")
        elif target := found.get("src") or (found.get("href") if tag == "link" else None):
            self.loads.append(target)


@cache
def read(page: str) -> Reader:
    reader = Reader()
    reader.feed((SITE / page).read_text())
    return reader


def test_the_site_is_built() -> None:
    generated = {f"generated/{kind}/hadar.html" for kind in ("formulations", "figures")}
    assert generated | {"index.html", "search.html", "lessons/01-first-gap.html"} <= set(PAGES)


def test_every_link_within_the_site_leads_somewhere() -> None:
    lost = []
    for page in PAGES:
        for link in read(page).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (SITE / page).parent.joinpath(unquote(parts.path)).resolve() if parts.path else SITE / page
            anchors = read(target.relative_to(SITE).as_posix()).anchors if target.suffix == ".html" else set()
            if not target.exists() or (parts.fragment and unquote(parts.fragment) not in anchors):
                lost.append(f"{page}: {link}")
    assert not lost


def test_no_page_loads_anything_from_elsewhere() -> None:
    assert [(page, it) for page in PAGES for it in read(page).loads if urlsplit(it).netloc] == []


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=str(SITE))
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def wait(driver: Any, script: str) -> Any:
    """Run a script in the page until it returns something true, and return that."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(driver, 30).until(lambda d: d.execute_script(f"return {script}"))


def complaints(driver: Any) -> list[str]:
    return [
        entry["message"]
        for entry in driver.get_log("browser")
        if entry["level"] == "SEVERE" and "favicon" not in entry["message"]
    ]


def test_navigation_leads_from_the_first_page_to_a_lesson(driver: Any, address: str) -> None:
    driver.get(f"{address}/index.html")
    driver.execute_script("document.querySelector('.sidebar-tree a[href$=\"01-first-gap.html\"]').click()")
    assert "first gap" in wait(driver, "document.querySelector('h1') && document.querySelector('h1').innerText")
    assert complaints(driver) == []


def test_search_finds_a_model(driver: Any, address: str) -> None:
    driver.get(f"{address}/search.html?q=column+generation")
    found = wait(driver, "[...document.querySelectorAll('#search-results li a')].map(a => a.innerText).join('|')")
    assert found
    assert complaints(driver) == []


def test_formulas_are_set(driver: Any, address: str) -> None:
    driver.get(f"{address}/generated/formulations/hadar.html")
    assert wait(driver, "document.querySelectorAll('mjx-container[display]').length") > 10
    assert driver.execute_script("return document.querySelector('mjx-container').getBoundingClientRect().height") > 5
    assert driver.execute_script("return document.querySelectorAll('mjx-merror').length") == 0
    assert complaints(driver) == []


@pytest.mark.parametrize("page", ["index", "claims", "generated/formulations/hadar", "lessons/01-first-gap", "api"])
def test_a_page_fits_a_phone(page: str, driver: Any, address: str) -> None:
    driver.set_window_size(390, 900)
    driver.get(f"{address}/{page}.html")
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    driver.set_window_size(1400, 900)


def test_figures_are_drawn_on_white(driver: Any, address: str) -> None:
    driver.get(f"{address}/gallery.html")
    paper = "document.querySelector('.cell_output svg [fill=\"var(--page)\"]')"
    assert wait(driver, f"{paper} && getComputedStyle({paper}).fill") == "rgb(255, 255, 255)"
    assert complaints(driver) == []


def test_a_lesson_shows_its_figures(driver: Any, address: str) -> None:
    driver.get(f"{address}/lessons/01-first-gap.html")
    widths = "[...document.querySelectorAll('.cell_output img, .cell_output svg')].map(e => e.clientWidth)"
    assert wait(driver, f"{widths}.some(w => w > 100)")
    assert complaints(driver) == []


def test_sliders_show_their_first_picture(driver: Any, address: str) -> None:
    driver.get(f"{address}/lessons/02-hadar-prices.html")
    text = wait(driver, "document.querySelector('.cell_output') && document.body.innerText")
    assert "Shown for log ratio 2.0, gpus 4, step 1; a notebook has sliders to change these values." in text
    assert "U_max / U_min = 100, so α = 4.61" in text
