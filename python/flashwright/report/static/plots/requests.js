// A bar a request: service time, and on top of it the time in the queue. All panels of a page have one scale.

const requests = {
  height: () => (Chart.onPaper ? 190 : 220),
  /** The times of each request that are shown, the first part at the bottom. */
  *stacks(chart, { view } = chart) {
    const kept = view.parts.map((part) => !chart.hiddenParts.has(part.name));
    const times = view.times.map((name) => columns[name]);
    for (let i = 0; i < times[0].length; i += 1) yield times.map((values, k) => (kept[k] ? values[i] : 0));
  },
  bounds(chart) {
    const views = chart.siblings().map((other) => other.view);
    const first = Math.min(...views.map((view) => view.first));
    const end = Math.max(...views.map((view) => view.first + columns[view.erases].length));
    let longest = 0;
    for (const other of chart.view.own ? [chart] : chart.siblings()) {
      for (const parts of requests.stacks(chart, other)) longest = Math.max(longest, parts[0] + parts[1]);
    }
    return [chart.x ?? [first - 0.5, end - 0.5], chart.y ?? [0, (longest || 1) * 1.1]];
  },
  paint(chart, group, sx, sy, area) {
    const { view } = chart;
    const erases = columns[view.erases];
    const paths = view.parts.map(() => []);
    const half = Math.min(0.4, 12 / (sx(1) - sx(0)));
    let i = 0;
    const marks = [];
    for (const parts of requests.stacks(chart)) {
      const [left, right] = [sx(view.first + i - half), sx(view.first + i + half)].map((x) => x.toFixed(1));
      let at = 0;
      parts.forEach((value, k) => {
        if (value > 0) {
          const from = at ? sy(at).toFixed(1) : area.bottom;
          paths[k].push(`M${left} ${from}V${sy(at + value).toFixed(1)}H${right}V${from}Z`);
        }
        at += value;
      });
      if (erases[i] > 0) marks.push(`M${sx(view.first + i).toFixed(1)} ${(sy(at) - 2).toFixed(1)}l-3 -6h6z`);
      i += 1;
    }
    paths.forEach((path, k) => {
      svg(group, "path", { d: path.join(""), class: "bar", fill: hue(view.parts[k].colour) });
    });
    if (marks.length) svg(group, "path", { d: marks.join(""), class: "mark" });
  },
  read(chart, px, py, sx) {
    const { view } = chart;
    const wanted = Math.round(sx.invert(px));
    const i = wanted - view.first;
    if (columns[view.erases][i] === undefined) return null;
    const of = (name) => columns[view[name]][i];
    const rows = view.parts.map((part, k) => {
      return { colour: hue(part.colour), name: part.name, value: shown(columns[view.times[k]][i], "ns") };
    });
    rows.reverse(); // as they lie on each other
    for (const { name, values } of view.counts) {
      rows.push({ colour: "transparent", name, value: grouped(columns[values][i], 0) });
    }
    const pages = of("pages");
    const title = `request ${grouped(wanted, 0)}: ${view.kindNames[of("kinds")]}, ${pages} page${pages === 1 ? "" : "s"}`;
    return { x: sx(wanted), title, rows };
  },
};
