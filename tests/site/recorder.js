// Runs before every other script of a page.
window.recordedErrors = [];
addEventListener("error", event => {
  const source = event.target.src ?? event.target.href;
  recordedErrors.push(source ? `${source} does not load` : `${event.message} ${event.filename}`);
}, true);
addEventListener("unhandledrejection", event => recordedErrors.push(String(event.reason)));
const { error } = console;
console.error = (...values) => { recordedErrors.push(values.join(" ")); error(...values); };
