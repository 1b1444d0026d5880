// Finds the charts of the page.

/** On paper charts get the width of a page, and the configuration and what figures mean are laid open. */
function printing() {
  const unfolded = [...document.querySelectorAll("#configuration, .meanings")];
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = unfolded.filter((each) => !each.open);
    for (const each of closed) each.open = true;
    Chart.onPaper = true;
    charts.forEach((chart) => chart.draw());
  });
  addEventListener("afterprint", () => {
    for (const each of closed) each.open = false;
    Chart.onPaper = false;
    charts.forEach((chart) => chart.draw());
  });
}

for (const plot of document.querySelectorAll(".plot")) charts.push(new Chart(plot, specs[plot.dataset.chart]));
charts.forEach((chart) => sight.observe(chart.plot));
printing();
