// One bar a die or channel.

const bars = {
  bounds(chart) {
    const most = Math.max(...chart.view.series.map((one) => columns[one.y].length));
    const x = chart.x ?? [-0.5, most - 0.5];
    const values = chart.visible().flatMap((one) => columns[one.y]);
    return [x, chart.y ?? domainOf(values, chart.view.y, chart.logY)];
  },
  paint(chart, group, sx, sy, area) {
    const visible = chart.visible();
    const all = Math.min(0.8, 160 / (sx(1) - sx(0)));
    const width = all / visible.length;
    visible.forEach((one, nth) => {
      const path = columns[one.y].map((value, i) => {
        if (value === null) return "";
        const [left, right] = [nth, nth + 1].map((k) => sx(i - all / 2 + k * width));
        return `M${left.toFixed(1)} ${area.bottom}V${sy(value).toFixed(1)}H${right.toFixed(1)}V${area.bottom}Z`;
      });
      svg(group, "path", { d: path.join(""), class: "bar", fill: hue(one.run) });
    });
  },
  read(chart, px, py, sx) {
    const at = Math.round(sx.invert(px));
    const rows = chart.visible().flatMap((one) => {
      const value = columns[one.y][at];
      if (value === undefined || value === null) return [];
      return [{ colour: hue(one.run), name: chart.nameOf(one), value: shown(value, chart.view.y.format) }];
    });
    return rows.length ? { x: sx(at), title: `${chart.view.x.label} ${at}`, rows } : null;
  },
};
