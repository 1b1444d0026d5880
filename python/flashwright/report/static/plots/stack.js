// Stacked shares, a bar a run.

const ROW = 46;

const stack = {
  height: (chart) => chart.rows().length * ROW + 62,
  bounds(chart) {
    const sums = chart.rows().map((row) => chart.kept(row).reduce((sum, [value]) => sum + value, 0));
    return [chart.x ?? domainOf(sums, chart.view.x), [0, Math.max(chart.rows().length, 1)]];
  },
  paint(chart, group, sx, sy, area) {
    const fits = Math.floor((area.right - area.left) / CHAR);
    chart.rows().forEach((row, nth) => {
      const top = area.top + nth * ROW;
      const total = chart.kept(row).reduce((sum, [value]) => sum + value, 0);
      const label = `${runs.length > 1 ? names[row.run] : "total"}: ${significant(total)}`;
      const short = label.length > fits ? `${label.slice(0, fits - 1)}…` : label;
      svg(group, "text", { x: area.left + 2, y: top + 15 }, short);
      let at = 0;
      for (const [value, part] of chart.kept(row)) {
        const [left, right] = [sx(at), sx(at + value)];
        const box = { x: left, y: top + 20, width: Math.max(right - left, 0), height: ROW - 24 };
        svg(group, "rect", { ...box, class: "part", fill: hue(part.colour) });
        at += value;
      }
    });
  },
  read(chart, px, py, sx, sy) {
    const row = chart.rows()[Math.floor(sy.invert(py))];
    if (!row) return null;
    const rows = chart.kept(row).map(([value, part]) => {
      return { colour: hue(part.colour), name: part.name, value: significant(value) };
    });
    return { title: names[row.run], rows };
  },
};
