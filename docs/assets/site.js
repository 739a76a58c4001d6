// The button of a block copies its input: no prompts and no output. Output in columns, and arrays,
// scroll on narrow screens.
for (const code of document.querySelectorAll(".md-typeset pre > code")) {
  const input = [], output = [];
  for (const line of code.textContent.split("\n")) {
    const [prompt] = line.match(/^(>>>|\.\.\.|\$)( |$)/) ?? [];
    if (prompt === undefined) output.push(line);
    else input.push(line.slice(prompt.length));
  }
  const prompts = code.querySelector(".gp") !== null;
  if (prompts) code.dataset.copy = input.join("\n");
  const printed = prompts || code.closest(".language-text") !== null;
  if (printed && output.some(line => /\S {2,}\S|^ {2,}\[/.test(line))) code.classList.add("aligned");
}

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
