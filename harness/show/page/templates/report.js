"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Sort a table by the column whose heading is pressed: numbers by value, text alphabetically, empty cells last.
for (const button of all("table.sortable th button")) {
  button.addEventListener("click", () => {
    const heading = button.closest("th");
    const body = heading.closest("table").tBodies[0];
    const place = heading.cellIndex;
    const ascending = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const key = (row) => row.cells[place].dataset.sort;
    const compare = (a, b) => {
      const x = key(a), y = key(b);
      if (x === "" || y === "") return (x === "") - (y === "");
      const difference = x - y;
      return (ascending ? 1 : -1) * (Number.isNaN(difference) ? x.localeCompare(y) : difference);
    };
    for (const row of [...body.rows].sort(compare)) body.append(row);
  });
}
// On a phone, the most important columns come first: method, gap, status.
if (innerWidth < 640) {
  for (const table of all("main table.sortable")) {
    const first = table.tBodies[0]?.rows[0];
    if (!first?.querySelector(".method")) continue;
    const far = first.querySelector(".gap") ? "gap" : "best_bound"; // a table of bounds has no gaps
    const order = ["status", far, "method"].map((key) => [...first.cells].findIndex((cell) => cell.classList.contains(key)));
    const keys = order.filter((place) => place >= 0).map((place) => first.cells[place]);
    const places = keys.map((cell) => cell.cellIndex);
    for (const row of table.rows) for (const cell of places.map((place) => row.cells[place])) row.prepend(cell);
  }
}
// Printed pages show everything.
addEventListener("beforeprint", () => {
  for (const details of all("details")) details.open = true;
});

// State shared by all charts and tables: the highlighted method and job, the hidden methods, and the current time.
const state = {picked: "", job: "", hidden: [], now: -1};
const rows = all("main tbody tr").filter((row) => row.querySelector("th.method"));
const methodOf = (row) => row.querySelector("th.method").textContent.trim();
const methods = new Set(rows.map(methodOf));
const views = new Map();

function update(change) {
  Object.assign(state, change);
  for (const row of rows) {
    row.classList.toggle("picked", methodOf(row) === state.picked);
    row.hidden = state.hidden.includes(methodOf(row));
  }
  const what = state.job ? `job ${state.job}` : state.picked;
  document.getElementById("picked").textContent = what ? `${what} is highlighted; press it again to undo` : "";
  for (const view of views.values()) {
    for (const [name, value] of Object.entries(state)) view.signal(name, value);
    view.runAsync();
  }
}
const toggle = (key, value) => update({picked: "", job: "", [key]: state[key] === value ? "" : value});

for (const row of rows) {
  row.querySelector("th.method").addEventListener("click", () => toggle("picked", methodOf(row)));
}

const tools = document.getElementById("tools"), filter = document.getElementById("filter");
const papers = all("section[data-paper]"), paper = document.getElementById("paper");
tools.hidden = rows.length < 2;
paper.append(...papers.map((section) => new Option(section.dataset.paper)));
paper.parentNode.hidden = papers.length < 2;
filter.addEventListener("input", () => {
  const wanted = filter.value.trim().toLowerCase();
  update({hidden: [...methods].filter((method) => !method.toLowerCase().includes(wanted))});
});
paper.addEventListener("change", () => {
  for (const section of papers) section.hidden = paper.value !== "" && section.dataset.paper !== paper.value;
  for (const figure of all("figure[data-group]")) {
    const known = papers.some((section) => section.dataset.paper === figure.dataset.group);
    figure.hidden = paper.value !== "" && known && figure.dataset.group !== paper.value;
  }
});

// Live charts replace the static pictures as they scroll into view, at the full available width.
const data = document.getElementById("charts");
const {config, specs} = data ? JSON.parse(data.textContent) : {specs: {}};
const FADED = "(picked && datum.method && datum.method !== picked) || (job && datum.job && datum.job !== job)" +
  " || (now >= 0 && isNumber(datum.end) && (datum.time > now || datum.end <= now))";

function everyPart(spec, visit) {
  if (Array.isArray(spec)) for (const each of spec) everyPart(each, visit);
  else if (spec && typeof spec === "object") {
    visit(spec);
    for (const key of ["layer", "spec", "concat", "hconcat", "vconcat"]) everyPart(spec[key], visit);
  }
}

function prepared(name, room) {
  const spec = structuredClone(specs[name]), narrow = room < 560;
  spec.params = [...(spec.params ?? []), ...Object.entries(state).map(([name, value]) => ({name, value}))];
  delete spec.title; // the caption contains it
  if (narrow && spec.hconcat) [spec.vconcat, spec.hconcat] = [spec.hconcat, undefined];
  if (spec.columns) spec.columns = Math.max(1, Math.min(spec.columns, Math.floor(room / 230)));
  everyPart(spec, (part) => {
    if (part.data) part.transform = [{filter: "indexof(hidden, datum.method) < 0"}, ...(part.transform ?? [])];
    if (!part.mark || !part.encoding || part.encoding.opacity) return;
    part.encoding.opacity = {condition: {test: FADED, value: 0.08}, value: part.mark.opacity ?? 1};
  });
  return spec;
}

const look = (room) => ({
  ...config,
  background: "transparent",
  axis: {...config.axis, labelLimit: Math.min(260, room * 0.36), titleLimit: room * 0.64},
  header: {...config.header, labelLimit: room * 0.9},
  legend: {...config.legend, columns: Math.max(1, Math.floor(room / 210)), labelLimit: Math.min(330, room * 0.7)},
});

async function draw(figure) {
  const name = figure.dataset.chart, card = figure.querySelector(".card"), room = Math.floor(card.clientWidth) - 24;
  if (!specs[name] || room < 100 || figure.dataset.room === String(room)) return;
  figure.dataset.room = room;
  const live = card.querySelector(".live") ?? card.appendChild(document.createElement("div"));
  live.className = "live";
  const spec = prepared(name, room), options = {
    mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, ast: true, config: look(room),
    tooltip: {disableDefaultStyle: true},
  };
  let made = await vegaEmbed(live, spec, options);
  // Names, legends and margins keep their size; plots take the remaining width. Text beside points does not shrink with
  // its plot, so a narrow plot may take several attempts.
  for (let left = 4; left; left--) {
    const width = live.querySelector("svg").getBoundingClientRect().width;
    const beside = spec.columns ?? spec.hconcat?.length ?? 1, more = Math.floor((room - width) / beside);
    if (more >= -4 && (more <= 40 || left < 4)) break;
    everyPart(spec, (part) => {
      if (typeof part.width === "number") part.width = Math.max(70, Math.min(part.width + more, 900));
    });
    made.finalize();
    made = await vegaEmbed(live, spec, options);
  }
  card.classList.add("drawn");
  views.set(name, made.view);
  made.view.addEventListener("click", (event, item) => {
    const datum = item?.datum ?? {};
    if (datum.job !== undefined) toggle("job", datum.job);
    else if (methods.has(datum.method ?? datum.value)) toggle("picked", datum.method ?? datum.value);
  });
  try {
    made.view.addSignalListener("zoom_time", (_, range) => together(figure, range));
    if (!figure.querySelector(".time")) controls(figure);
  } catch { /* this chart is not over time */ }
}

// Charts over the same time axis pan and zoom together, and schedules can be played.
const timeOf = (figure) => specs[figure.dataset.chart] && end(specs[figure.dataset.chart]);
function end(spec) {
  let found = 0;
  everyPart(spec, (part) => { found ||= part.encoding?.x?.field === "time" ? part.encoding.x.scale?.domain?.[1] ?? 0 : 0; });
  return found;
}
let moving = false;
function together(figure, range) {
  if (moving) return;
  moving = true;
  for (const other of all("figure[data-chart]")) {
    const view = views.get(other.dataset.chart);
    if (view && other.dataset.group === figure.dataset.group && timeOf(other)) {
      try { view.signal("zoom_time", range).runAsync(); } catch { /* it has no such axis */ }
    }
  }
  moving = false;
}

function controls(figure) {
  const name = figure.dataset.chart, last = timeOf(figure), bar = document.createElement("div");
  bar.className = "time";
  const button = (text, title, press) => {
    const made = Object.assign(document.createElement("button"), {type: "button", textContent: text, title});
    made.addEventListener("click", press);
    bar.append(made);
    return made;
  };
  const zoom = (factor) => {
    const [a, b] = views.get(name).signal("zoom_time") ?? [0, last], middle = (a + b) / 2, half = (b - a) / 2 * factor;
    const start = Math.max(0, middle - half);
    together(figure, factor > 1 && half * 2 >= last ? null : [start, Math.min(last, start + 2 * half)]);
  };
  button("+", "zoom in (or shift and wheel; drag to pan)", () => zoom(0.5));
  button("−", "zoom out", () => zoom(2));
  const moments = [...new Set(Object.values(specs[name].datasets).flat().flatMap((each) => each.job !== undefined ? each.time : []))];
  if (moments.length > 1) {
    moments.sort((a, b) => a - b);
    const slider = Object.assign(document.createElement("input"), {type: "range", min: -1, max: moments.length - 1, value: -1, title: "time"});
    const go = (i) => { slider.value = i; update({now: i < 0 ? -1 : moments[i] + 1e-9 * last}); };
    let timer;
    const play = button("▶", "play round by round", () => {
      clearInterval(timer);
      timer = play.textContent === "▶" && setInterval(() => (+slider.value < moments.length - 1 ? go(+slider.value + 1) : (clearInterval(timer), go(-1), play.textContent = "▶")), Math.max(60, 12000 / moments.length));
      play.textContent = play.textContent === "▶" ? "⏸" : "▶";
    });
    slider.addEventListener("input", () => go(+slider.value));
    bar.append(slider);
  }
  figure.querySelector(".card").append(bar);
}

if (data && window.vegaEmbed) {
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, {rootMargin: "300px"});
  for (const figure of all("figure[data-chart]")) seen.observe(figure);
  let waiting;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => all("figure[data-room]").forEach(draw), 200);
  });
}
