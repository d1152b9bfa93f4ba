"use strict";
// Sorts and filters the table of audits, and opens sections. The page is complete without this script.
const table = document.querySelector("table.audits");
if (table) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const headings = Array.from(table.tHead.rows[0].cells);
  const value = (row, column) => {
    const cell = row.cells[column];
    return "sort" in cell.dataset ? (cell.dataset.sort === "" ? NaN : Number(cell.dataset.sort)) : cell.textContent.trim();
  };
  const compared = (a, b) =>
    typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : Number(a > b) - Number(a < b);
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const isDown = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      const known = rows.filter((row) => !Number.isNaN(value(row, column)));
      const unknown = rows.filter((row) => Number.isNaN(value(row, column)));
      known.sort((a, b) => (isDown ? -1 : 1) * compared(value(a, column), value(b, column)));
      body.append(...known, ...unknown);
    });
  });

  const bar = document.createElement("p");
  bar.className = "filter";
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "name or claim";
  search.setAttribute("aria-label", "Filter audits by name or claim");
  const choice = document.createElement("select");
  choice.setAttribute("aria-label", "Filter audits by verdict");
  for (const verdict of ["every verdict", ...new Set(rows.map((row) => row.dataset.verdict))]) {
    choice.append(new Option(verdict));
  }
  const count = document.createElement("span");
  count.setAttribute("role", "status");
  bar.append("Show ", search, " with ", choice, " ", count);
  table.before(bar);
  const update = () => {
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const isShown =
        row.textContent.toLowerCase().includes(wanted) &&
        (choice.selectedIndex === 0 || row.dataset.verdict === choice.value);
      row.hidden = !isShown;
      shown += isShown;
    }
    count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length}`;
  };
  search.addEventListener("input", update);
  choice.addEventListener("change", update);
}

const sections = Array.from(document.querySelectorAll("details.audit"));
// A link to a section opens it, and closes the index from which it was chosen.
const openTarget = (hash = location.hash) => {
  const target = document.getElementById(hash.slice(1));
  if (target && target.matches("details.audit")) {
    target.open = true;
    target.scrollIntoView();
  }
};
window.addEventListener("hashchange", () => openTarget());
openTarget();
for (const link of document.querySelectorAll('a[href^="#audit-"], a[href^="#check-"]')) {
  link.addEventListener("click", () => {
    const index = link.closest("nav details");
    if (index) index.open = false;
    openTarget(link.hash);
  });
}
// Paper shows every section; browsers without ::details-content need them open.
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = sections.filter((section) => !section.open);
  for (const section of opened) section.open = true;
});
window.addEventListener("afterprint", () => {
  for (const section of opened) section.open = false;
});
if (sections.length > 1) {
  const fold = document.createElement("p");
  fold.className = "fold";
  for (const [text, open] of [["Open all", true], ["Close all", false]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.addEventListener("click", () => {
      for (const section of sections) section.open = open;
    });
    fold.append(button, " ");
  }
  sections[0].before(fold);
}
