// When charts are drawn: as they come into sight, and the others whenever there is time, so that a page of hundreds
// opens at once and still is whole soon after.

const SLICE_MS = 12;
const waiting = new Set();
let scheduled = false;

function drawLater(chart) {
  waiting.add(chart);
  schedule();
}

function schedule() {
  if (scheduled) return;
  scheduled = true;
  if (window.requestIdleCallback) requestIdleCallback(catchUp, { timeout: 500 });
  else setTimeout(catchUp);
}

/** Draws charts that wait, for a moment; then lets the page breathe. */
function catchUp() {
  scheduled = false;
  const end = performance.now() + SLICE_MS;
  for (const chart of waiting) {
    chart.draw();
    if (performance.now() > end) break;
  }
  if (waiting.size) schedule();
}

const sight = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      const chart = charts.find((one) => one.plot === target);
      chart.near = isIntersecting;
      if (isIntersecting && waiting.has(chart)) chart.draw();
    }
  },
  { rootMargin: "600px" },
);
