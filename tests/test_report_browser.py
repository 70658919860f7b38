"""The page in a real browser: it opens without errors, sorts tables, and is readable on a phone too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from report_runs import hostile_run, large_run, oef_run, sweep_run, troubled_run
from test_hadar_plots import run_of

from schedgap.harness.show.drawing import figures
from schedgap.harness.show.page import to_html
from schedgap.harness.studies.compare.row import Comparison
from schedgap.instances.catalogue import load

WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui", reason="selenium is not installed").WebDriverWait

pytestmark = pytest.mark.browser

CONTRAST = """
const parse = (text) => [...text.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
const light = (c) => { const v = c / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const luminance = (c) => 0.2126 * light(c[0]) + 0.7152 * light(c[1]) + 0.0722 * light(c[2]);
const background = (e) => {
  for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c[3] > 0) return c;
  }
  return matchMedia('(prefers-color-scheme: dark)').matches ? [0, 0, 0, 1] : [255, 255, 255, 1];
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  const text = walker.currentNode.data.trim();
  if (!text || element.closest('script, svg') || !element.getClientRects().length) continue;
  const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(background(element))];
  found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), text.slice(0, 40)]);
}
return found.sort((x, y) => x[0] - y[0]);
"""

LETTERS = """
const parse = (text) => [...text.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
const light = (c) => { const v = c / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const luminance = (c) => 0.2126 * light(c[0]) + 0.7152 * light(c[1]) + 0.0722 * light(c[2]);
const behind = (x, y) => {
  for (const e of document.elementsFromPoint(x, y)) {
    if (e.closest('text')) continue;
    const style = getComputedStyle(e);
    const colour = e.closest('svg') && e.tagName !== 'svg' ? style.fill : style.backgroundColor;
    if (colour !== 'none' && !colour.startsWith('url') && parse(colour)[3] > 0) return parse(colour);
  }
  return null;
};
const found = [];
for (const text of document.querySelectorAll('figure svg text')) {
  if (!text.getClientRects().length || !text.textContent.trim()) continue;
  text.scrollIntoView({behavior: 'instant', block: 'center'});
  const box = text.getBoundingClientRect();
  const back = behind(box.x + box.width / 2, box.y + box.height / 2);
  if (!back) continue;
  const [a, b] = [luminance(parse(getComputedStyle(text).fill)), luminance(back)];
  found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), text.textContent]);
}
return found.sort((x, y) => x[0] - y[0]);
"""


def both_papers() -> Comparison:
    """Return a run of two papers, one of them with schedules."""
    order = [0, 1, 2]
    run, other = oef_run(), run_of(load("paper/hadar-fig1"), p1=[1, 0, 2], online=order)
    run.rows += [row.replace(best_bound=50.0, gap=0.1, ratio=1.1, ratio_is_upper=True) for row in other.rows]
    run.instances.update(other.instances)
    run.decisions.update(other.decisions)
    return run


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    html = {
        "troubled": to_html(troubled_run()),
        "hostile": to_html(hostile_run()),
        "large": to_html(large_run(20), figures(large_run(20), "envy")),
        "sweep": to_html(sweep_run(4), []),
        "both": to_html(both_papers()),
    }
    for name, text in html.items():
        (folder / f"{name}.html").write_text(text)
    return {name: folder / f"{name}.html" for name in html}


def show(driver: Any, page: Path, width: int = 1280, scheme: str = "light", media: str = "screen") -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    driver.get(page.as_uri())


def column(driver: Any, table: int, key: str) -> list[str]:
    script = (
        "const [place, key] = arguments; const table = document.querySelectorAll('table')[place];"
        "return [...table.querySelectorAll('td.' + key)].map(cell => cell.dataset.sort)"
    )
    found: list[str] = driver.execute_script(script, table, key)
    return found


def press(driver: Any, header: str, key: str | None = None) -> str:
    """Press a heading of the first table by mouse or key; return its aria-sort."""
    xpath = f"(//table)[1]//th[button[normalize-space()='{header}']]"
    cell = driver.find_element("xpath", xpath)
    button = cell.find_element("tag name", "button")
    button.send_keys(key) if key else button.click()
    return str(cell.get_attribute("aria-sort"))


@pytest.mark.parametrize("name", ["troubled", "hostile", "large", "sweep"])
def test_opens_without_a_word_in_the_console(driver: Any, pages: dict[str, Path], name: str) -> None:
    driver.get_log("browser")
    show(driver, pages[name])
    assert driver.get_log("browser") == []
    assert driver.find_element("id", "headline").is_displayed()


def test_the_policy_stops_foreign_scripts_and_requests(driver: Any, pages: dict[str, Path]) -> None:
    show(driver, pages["troubled"])
    stopped = driver.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        "document.body.append(s); return window.ran === undefined;"
    )
    assert stopped
    driver.get_log("browser")


def test_headings_sort_by_mouse_and_by_key(driver: Any, pages: dict[str, Path]) -> None:
    show(driver, pages["troubled"])
    assert press(driver, "gap") == "ascending"
    gaps = column(driver, 0, "gap")
    numbers = [float(text) for text in gaps if text]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]
    assert gaps[-2:] == ["", ""]
    assert press(driver, "gap", "\ue007") == "descending"
    assert [float(text) for text in column(driver, 0, "gap") if text] == numbers[::-1]
    assert column(driver, 0, "gap")[-2:] == ["", ""]
    assert press(driver, "kind", " ") == "ascending"
    assert column(driver, 0, "kind") == sorted(column(driver, 0, "kind"))
    sorted_by = driver.find_elements("css selector", "th[aria-sort]")
    assert [cell.text.split()[0] for cell in sorted_by] == ["kind"]


@pytest.mark.parametrize("width", [390, 1280])
def test_figures_are_visible(driver: Any, pages: dict[str, Path], width: int) -> None:
    for name, count in (("troubled", 5), ("large", 1)):
        show(driver, pages[name], width)
        boxes = driver.execute_script(
            "return [...document.querySelectorAll('figure .card')].map(card => [...card.querySelectorAll('svg')].find("
            "svg => svg.getBoundingClientRect().width)).map(svg => [svg.getBoundingClientRect().width,"
            "svg.getBoundingClientRect().height, svg.querySelectorAll('path').length])"
        )
        assert len(boxes) == count
        assert all(wide >= 150 and high >= 60 and parts > 10 for wide, high, parts in boxes)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["troubled", "sweep"])
def test_text_stands_out_from_its_background(driver: Any, pages: dict[str, Path], scheme: str, name: str) -> None:
    show(driver, pages[name], scheme=scheme)
    found = driver.execute_script(CONTRAST)
    assert len(found) > 100
    assert found[0][0] >= 4.5, found[:3]
    body, card = driver.execute_script(
        "const c = document.querySelector('.card'); return [getComputedStyle(document.body).backgroundColor,"
        "c && getComputedStyle(c).backgroundColor]"
    )
    assert (body == "rgb(255, 255, 255)") == (scheme == "light")
    assert card in (None, body)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_of_figures_stand_out_too(driver: Any, pages: dict[str, Path], scheme: str) -> None:
    show(driver, pages["troubled"], scheme=scheme)
    found = driver.execute_script(LETTERS)
    assert len(found) > 60
    assert found[0][0] >= 4.5, found[:3]


@pytest.mark.parametrize("name", ["troubled", "hostile", "large", "sweep"])
def test_no_sideways_scrolling_on_a_phone(driver: Any, pages: dict[str, Path], name: str) -> None:
    show(driver, pages[name], 390)
    assert driver.execute_script("return [innerWidth, document.documentElement.scrollWidth]") == [390, 390]


def wait(driver: Any, script: str, *arguments: Any) -> Any:
    """Run a script in the page until it returns something true, and return that."""
    return WebDriverWait(driver, 60).until(lambda driver: driver.execute_script(script, *arguments))


def opened(driver: Any, pages: dict[str, Path], width: int = 1280) -> None:
    """Open the page of two papers, with all charts drawn."""
    show(driver, pages["both"], width)
    driver.execute_script(
        "for (const d of document.querySelectorAll('details')) d.open = true;"
        "for (const f of document.querySelectorAll('figure')) draw(f);"
    )
    wait(driver, "return [...document.querySelectorAll('figure .card')].every(card => card.matches('.drawn'))")


FADED = """
const [chart] = arguments, found = {};
for (const mark of document.querySelectorAll(`[data-chart="${chart}"] .live [class*=role-mark] > *`)) {
  const datum = mark.__data__?.datum;
  if (datum?.method) found[datum.method] = (mark.__data__.opacity ?? 1) < 0.5;
}
return found;
"""


def test_a_table_row_or_a_mark_brings_its_method_out_everywhere(driver: Any, pages: dict[str, Path]) -> None:
    opened(driver, pages)
    driver.execute_script("[...document.querySelectorAll('th.method')].find(c => c.textContent == 'oef.gavel').click()")
    for chart in ("oef-gap", "oef-efficiency"):
        wait(driver, f"return (() => {{{FADED}}})('{chart}')['oef.efficiency']".replace("arguments", f"['{chart}']"))
        faded = driver.execute_script(FADED, chart)
        assert not faded.pop("oef.gavel")
        assert all(faded.values())
    assert driver.execute_script("return document.querySelectorAll('tr.picked').length") >= 1
    driver.execute_script(
        "const mark = [...document.querySelectorAll('[data-chart=\"oef-gap\"] .live path')]"
        ".find(m => m.__data__?.datum?.method === 'oef.gavel');"
        "mark.dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    wait(driver, "return state.picked === ''")
    assert not any(driver.execute_script(FADED, "oef-gap").values())


def test_hovering_names_the_method_and_its_numbers(driver: Any, pages: dict[str, Path]) -> None:
    opened(driver, pages)
    driver.execute_script(
        "const mark = [...document.querySelectorAll('[data-chart=\"oef-gap\"] .live path')]"
        ".find(m => m.__data__?.datum?.method === 'oef.gavel');"
        "const box = mark.getBoundingClientRect(), at = {bubbles: true, clientX: box.x + 2, clientY: box.y + 2};"
        "for (const kind of ['pointerover', 'mouseover', 'pointermove', 'mousemove'])"
        " mark.dispatchEvent(new MouseEvent(kind, at));"
    )
    told = wait(driver, "return document.querySelector('#vg-tooltip-element.visible')?.textContent")
    assert "oef.gavel" in told
    assert "11.8 %" in told


def test_filter_and_switch_reduce_tables_and_charts_together(driver: Any, pages: dict[str, Path]) -> None:
    opened(driver, pages)
    driver.find_element("id", "filter").send_keys("GaV")
    wait(driver, "return document.querySelectorAll('main tbody tr[hidden]').length")
    shown = driver.execute_script(
        "return [...document.querySelectorAll('main tbody tr:not([hidden]) th.method')].map(c => c.textContent)"
    )
    assert set(shown) == {"oef.gavel"}
    wait(driver, f"return Object.keys((() => {{{FADED}}})()).length === 1".replace("arguments", "['oef-gap']"))
    assert set(driver.execute_script(FADED, "oef-gap")) == {"oef.gavel"}
    driver.execute_script(
        "const paper = document.getElementById('paper'); paper.value = 'hadar';paper.dispatchEvent(new Event('change'))"
    )
    papers = driver.execute_script(
        "return [...document.querySelectorAll('section[data-paper]')].filter(s => !s.hidden).map(s => s.dataset.paper)"
    )
    assert papers == ["hadar"]


def test_charts_of_one_time_axis_zoom_together_and_schedules_play(driver: Any, pages: dict[str, Path]) -> None:
    opened(driver, pages)
    driver.execute_script("document.querySelector('[data-chart=\"hadar-gantt\"] .time button').click()")
    zoomed = wait(driver, "return views.get('hadar-gantt').signal('zoom_time')")
    for other in ("hadar-utilisation", "hadar-prices"):
        assert driver.execute_script(f"return views.get('{other}').signal('zoom_time')") == zoomed
    faded = (
        "[...document.querySelectorAll('[data-chart=\"hadar-gantt\"] .live path')].filter(m => m.__data__?.datum?.job"
    )
    driver.execute_script(
        "const slider = document.querySelector('[data-chart=\"hadar-gantt\"] .time input'); slider.value = 0;"
        "slider.dispatchEvent(new Event('input'))"
    )
    wait(driver, f"return {faded} && m.__data__.opacity < 0.5).length")
    assert driver.execute_script(
        f"return {faded} && m.__data__.opacity >= 0.5).every(m => m.__data__.datum.time === 0)"
    )
    driver.execute_script("update({now: -1}); toggle('job', 'J1')")
    wait(driver, f"return {faded} && m.__data__.opacity < 0.5).length")
    assert driver.execute_script(
        f"return {faded} && m.__data__.opacity >= 0.5).every(m => m.__data__.datum.job === 'J1')"
    )


def test_a_phone_has_narrow_charts_and_method_gap_and_status_first(driver: Any, pages: dict[str, Path]) -> None:
    opened(driver, pages, 390)
    beyond = driver.execute_script(
        "return [...document.querySelectorAll('.card.drawn')].map(c => c.scrollWidth - c.clientWidth)"
    )
    assert max(beyond) <= 0  # no chart is wider than its card, with its legend and with what stands beside points
    heads = driver.execute_script(
        "return [...document.querySelector('table').tHead.rows[0].cells].map(c => c.textContent)"
    )
    assert heads[:3] == ["method", "gap", "status"]


def test_print_shows_whole_tables_on_white(driver: Any, pages: dict[str, Path]) -> None:
    show(driver, pages["sweep"], 794, scheme="dark", media="print")
    page, window = driver.execute_script("const e = document.documentElement; return [e.scrollWidth, e.clientWidth]")
    assert page == window
    hidden = driver.execute_script(
        "return [...document.querySelectorAll('.scroll')].map(e => e.scrollHeight - e.clientHeight)"
    )
    assert hidden
    assert max(hidden) <= 1
    controls = "return [...document.querySelectorAll('thead button')].map(b => b.getBoundingClientRect().width)"
    assert not any(driver.execute_script(controls))  # headers with controls are not repeated on other pages
    colours = driver.execute_script("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")
    assert colours == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
