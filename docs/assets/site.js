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
    const around = table.closest("details, .cards > div, .md-content__inner");
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

// The filter of the list of operators: rows that have every word, also in the operator's other names,
// and the sections with such rows.
for (const place of document.querySelectorAll("div.filter")) {
  const filter = document.createElement("input");
  filter.type = "search";
  filter.placeholder = filter.ariaLabel = "Filter, also by names of ONNX";
  place.append(filter);
  const sections = [];
  for (let next = place.nextElementSibling; next; next = next.nextElementSibling) {
    if (next.tagName === "H2") sections.push([]);
    sections.at(-1)?.push(next);
  }
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const section of sections) {
      const rows = section.flatMap(part => [...part.querySelectorAll("tbody tr")]);
      for (const row of rows) {
        row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
      }
      const found = rows.some(row => !row.hidden) || !filter.value;
      for (const part of section) part.hidden = !found;
    }
  });
}
