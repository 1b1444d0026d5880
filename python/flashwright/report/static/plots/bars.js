// A bar a die, channel or category; those of several series side by side.

const bars = {
  bounds(chart) {
    const named = chart.view.x.names?.length ?? 0;
    const most = Math.max(named, ...chart.view.series.map((one) => columns[one.y].length));
    const x = chart.x ?? [-0.5, most - 0.5];
    return [x, chart.y ?? domainOf(bars.values(chart, x), chart.view.y, chart.logY)];
  },
  *values(chart, [from, to]) {
    for (const one of chart.visible()) {
      for (let i = Math.max(0, Math.ceil(from)); i <= to && i < columns[one.y].length; i += 1) yield* reachOf(one, i);
    }
    for (const [y] of chart.view.levels ?? []) yield y;
  },
  /** The series that are bars, and the half width that all bars of a place take together. */
  grouped(chart, sx) {
    const drawn = chart.visible().filter((one) => !one.published);
    const room = chart.view.x.names ? 0.8 : Math.min(0.8, 160 / (sx(1) - sx(0)));
    const most = (64 * Math.max(drawn.length, 1)) / (sx(1) - sx(0));
    return [drawn, Math.min(room, most) / 2];
  },
  paint(chart, group, sx, sy, area) {
    const [drawn, half] = bars.grouped(chart, sx);
    const width = (2 * half) / Math.max(drawn.length, 1);
    const usable = (value) => value !== null && (!chart.logY || value > 0);
    drawn.forEach((one, nth) => {
      const path = columns[one.y].map((value, i) => {
        if (!usable(value)) return "";
        const [left, right] = [nth, nth + 1].map((k) => sx(i - half + k * width));
        return `M${left.toFixed(1)} ${area.bottom}V${sy(value).toFixed(1)}H${right.toFixed(1)}V${area.bottom}Z`;
      });
      const pale = (one.colour ?? one.run) >= HUES ? " again" : "";
      svg(group, "path", { d: path.join(""), class: `bar${pale}`, fill: chart.colourOf(one) });
      if (!one.low) return;
      columns[one.y].forEach((_, i) => paintInterval(chart, sx(i - half + (nth + 0.5) * width), one, i, "var(--ink)"));
    });
    for (const one of chart.visible().filter((each) => each.published)) {
      const nth = drawn.findIndex((other) => other.part === one.of);
      const beside = nth < 0 ? 0 : (nth + 0.5) * width - half;
      columns[one.y].forEach((value, i) => {
        const [x, y] = [sx(i + beside), sy(value)];
        if (usable(value) && within(area, x, y)) diamond(chart.over, x, y, "var(--ink)");
      });
    }
  },
  read(chart, px, py, sx) {
    const at = Math.round(sx.invert(px));
    const rows = chart.visible().flatMap((one) => {
      const value = columns[one.y][at];
      if (value === undefined || value === null) return [];
      const colour = one.published ? "var(--ink)" : chart.colourOf(one);
      return [{ colour, name: chart.nameOf(one), value: told(one, at, chart.view.y.format) }];
    });
    const title = chart.view.x.names?.[at] ?? `${chart.view.x.label} ${at}`;
    return rows.length ? { x: sx(at), title, rows } : null;
  },
};
