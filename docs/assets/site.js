// Show tables that are too wide with narrow columns, or else as lists of rows; and keep identifiers in
// tables in one piece; site.css has the looks.
const tables = [...document.querySelectorAll(".md-typeset table:not([class])")];

for (const table of tables) {
  for (const code of table.querySelectorAll("code")) {
    if (/^\S{1,39}$/.test(code.textContent)) code.classList.add("identifier");
  }
  const labels = [...table.querySelectorAll("thead th")].map(cell => cell.textContent.trim());
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.cells].forEach((cell, i) => { cell.dataset.label = labels[i] ?? ""; });
  }
}

function fitTables() {
  for (const table of tables) {
    const page = table.closest(".md-content__inner");
    table.removeAttribute("class");
    for (const look of ["narrow", "stacked"]) {
      if (table.scrollWidth > page.clientWidth) table.className = look;
    }
  }
}

fitTables();
window.addEventListener("resize", fitTables);
