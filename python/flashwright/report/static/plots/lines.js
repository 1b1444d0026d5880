// Lines, points and histograms.

function* pointsWithin(chart, domain) {
  for (const line of chart.visible()) {
    const xs = columns[line.x];
    for (let i = 0; i < xs.length; i += 1) {
      if (xs[i] === null || (domain && (xs[i] < domain[0] || xs[i] > domain[1]))) continue;
      for (const y of reachOf(line, i)) yield [xs[i], y];
    }
  }
  for (const [x] of chart.view.marks ?? []) if (!domain) yield [x, null];
  for (const [y] of chart.view.levels ?? []) yield [null, y];
}

function* nth(pairs, n) {
  for (const pair of pairs) yield pair[n];
}

function linePath(line, sx, sy, usable) {
  const [xs, ys] = [columns[line.x], columns[line.y]];
  let path = "";
  let open = false;
  for (let i = 0; i < xs.length; i += 1) {
    if (xs[i] === null || !usable(ys[i])) {
      if (open) path += line.step && xs[i] !== null ? `H${sx(xs[i]).toFixed(1)}` : "h.01";
      open = false;
      continue;
    }
    const [x, y] = [sx(xs[i]).toFixed(1), sy(ys[i]).toFixed(1)];
    path += open ? (line.step ? `H${x}V${y}` : `L${x} ${y}`) : `M${x} ${y}`;
    open = true;
  }
  return open ? `${path}h.01` : path;
}

const lines = {
  bounds(chart) {
    const view = chart.view;
    const dotted = view.series.some((line) => line.points);
    const x = chart.x ?? domainOf(nth(pointsWithin(chart), 0), { ...view.x, tight: !dotted }, view.x.log);
    const y = chart.y ?? domainOf(nth(pointsWithin(chart, chart.x), 1), view.y, chart.logY);
    return [x, y];
  },
  paint(chart, group, sx, sy, area) {
    const usable = (value) => value !== null && (!chart.logY || value > 0);
    for (const line of chart.visible()) {
      const path = linePath(line, sx, sy, usable);
      const colour = chart.colourOf(line);
      if (line.fill && !chart.logY) svg(group, "path", { d: `${path}V${area.bottom}`, class: "fill", fill: colour });
      if (!line.scattered && !line.published) svg(group, "path", { d: path, class: `line ${chart.lookOf(line)}`, stroke: colour });
      if (line.low) columns[line.x].forEach((x, i) => paintInterval(chart, sx(x), line, i, colour));
      if (!line.points || line.level) continue;
      const r = line.big ? 6 : line.scattered && columns[line.x].length > FEW ? 2 : 3;
      columns[line.x].forEach((x, i) => {
        const y = columns[line.y][i];
        if (!usable(y) || !within(area, sx(x), sy(y))) return;
        if (line.published) diamond(chart.over, sx(x), sy(y), colour);
        else svg(chart.over, "circle", { cx: sx(x), cy: sy(y), r, fill: colour });
      });
    }
  },
  read(chart, px, py, sx) {
    const { x: axis, y: yAxis } = chart.view;
    const wanted = sx.invert(px);
    let nearest = null;
    const found = chart.visible().flatMap((line) => {
      const [xs, ys] = [columns[line.x], columns[line.y]];
      let i = lastAtMost(xs, wanted);
      if (!line.step && i + 1 < xs.length && (i < 0 || sx(xs[i + 1]) - px < px - sx(xs[i]))) i += 1;
      if (i < 0 || ys[i] === null || (axis.bin && i === xs.length - 1)) return [];
      const away = Math.abs(sx(xs[i]) - px);
      if (!line.step && away > 40) return [];
      if (!nearest || away < nearest.away) nearest = { x: xs[i], away };
      return [{ colour: chart.colourOf(line), name: chart.nameOf(line), value: told(line, i, yAxis.format) }];
    });
    if (!nearest) return null;
    const from = Math.ceil(nearest.x);
    const range = axis.bin > 1 ? `${grouped(from, 0)}–${grouped(from + axis.bin - 1, 0)}` : grouped(from, 0);
    const stepped = chart.visible()[0].step;
    const tick = axis.ticks?.find(([at]) => at === nearest.x);
    const title = axis.bin ? range : (tick?.[1] ?? shown(stepped ? wanted : nearest.x, axis.format));
    return { x: stepped ? px : sx(nearest.x), title: `${axis.label}: ${title}`, rows: found };
  },
};
