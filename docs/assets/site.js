// Show tables that are too wide with narrow columns, or else as lists of rows; and keep identifiers in
// tables in one piece; site.css has the looks.
const tables = [...document.querySelectorAll(".md-typeset table:not([class])")];

for (const table of tables) {
  for (const item of table.querySelectorAll("code, a")) {
    if (/^\S{1,49}$/.test(item.textContent)) item.classList.add("identifier");
  }
  const labels = [...table.querySelectorAll("thead th")].map(cell => cell.textContent.trim());
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.cells].forEach((cell, i) => { cell.dataset.label = labels[i] ?? ""; });
  }
}

function fitTables() {
  for (const table of tables) {
    const around = table.closest("details, .md-content__inner");
    const { paddingLeft, paddingRight } = getComputedStyle(around);
    const width = around.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    const fits = () => table.scrollWidth + 2 <= width;  // with its borders
    table.removeAttribute("class");  // Material styles tables without a class
    table.removeAttribute("data-narrow");
    if (!fits()) table.dataset.narrow = "";
    if (!fits()) table.className = "stacked";
  }
}

fitTables();
window.addEventListener("resize", fitTables);
document.addEventListener("toggle", fitTables, true);  // a table in closed details has no width
