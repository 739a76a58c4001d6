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
    const page = table.closest(".md-content__inner");
    const fits = () => table.scrollWidth + 2 <= page.clientWidth;  // with its borders
    table.removeAttribute("class");  // Material styles tables without a class
    table.removeAttribute("data-narrow");
    if (!fits()) table.dataset.narrow = "";
    if (!fits()) table.className = "stacked";
  }
}

fitTables();
window.addEventListener("resize", fitTables);
