// Finds the charts of the page.

/** On paper charts get the width of a page, and the configuration is laid open. */
function printing() {
  const configuration = document.getElementById("configuration");
  let wasOpen = false;
  addEventListener("beforeprint", () => {
    if (configuration) {
      wasOpen = configuration.open;
      configuration.open = true;
    }
    Chart.onPaper = true;
    charts.forEach((chart) => chart.draw());
  });
  addEventListener("afterprint", () => {
    if (configuration) configuration.open = wasOpen;
    Chart.onPaper = false;
    charts.forEach((chart) => chart.draw());
  });
}

for (const plot of document.querySelectorAll(".plot")) charts.push(new Chart(plot, specs[plot.dataset.chart]));
charts.forEach((chart) => sight.observe(chart.plot));
printing();
