// On small screens, show tables that are too wide as lists of rows; and keep identifiers in them in one
// piece; site.css has the looks.
const small = window.matchMedia("(max-width: 59.984375em)");
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

function stackWideTables() {
  for (const table of tables) {
    table.classList.remove("stacked");
    if (!table.classList.length) table.removeAttribute("class");
    const page = table.closest(".md-content__inner");
    const wide = table.scrollWidth > page.clientWidth;
    if (small.matches && wide) table.classList.add("stacked");
  }
}

stackWideTables();
window.addEventListener("resize", stackWideTables);
