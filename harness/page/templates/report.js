"use strict";
// Sorts a table by the column whose heading is pressed: numbers by value, text by name, what is absent last.
for (const button of document.querySelectorAll("table.sortable th button")) {
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
// Printed pages show everything.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
