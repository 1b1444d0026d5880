// A cell a block.

const LEVELS = 36;

function ramp(share) {
  const at = share * (RAMP.length - 1);
  const from = RAMP[Math.floor(at)];
  const to = RAMP[Math.ceil(at)];
  const mixed = [1, 3, 5].map((k) => {
    const [a, b] = [from, to].map((colour) => parseInt(colour.slice(k, k + 2), 16));
    return Math.round(a + (b - a) * (at % 1));
  });
  return `rgb(${mixed.join(" ")})`;
}

/** Where things lie in a map, counted in cells: channels side by side, dies and their planes below each other. */
function layoutOf(view) {
  const down = Math.ceil(view.cells / view.across);
  const between = Math.max(1, Math.round(Math.max(view.across, down) * 0.06));
  const within = view.planes > 1 ? between / 3 : 0;
  const die = view.planes * down + (view.planes - 1) * within;
  return {
    down,
    width: view.channels * (view.across + between) - between,
    height: view.dies * (die + between) - between,
    left: (channel) => channel * (view.across + between),
    top: (die_, plane) => die_ * (die + between) + plane * (down + within),
    die,
  };
}

const map = {
  isMap: true,
  below: 48,
  height(chart, width) {
    const { width: across, height: down } = layoutOf(chart.view);
    return Math.min(Math.max(((width - 60) * down) / across, 90), 420) + 84;
  },
  bounds(chart) {
    const { width, height } = layoutOf(chart.view);
    return [chart.x ?? [0, width], chart.y ?? [height, 0]];
  },
  paint(chart, group, sx, sy, area) {
    const view = chart.view;
    const layout = layoutOf(view);
    const [low, high] = view.scale;
    const paths = Array.from({ length: LEVELS }, () => []);
    const between = [sx(1) - sx(0), sy(1) - sy(0)].map((size) => (size > 5 ? 1 : 0));
    // Neighbours share their edges to the digit; else rounding to pixels leaves gaps between some rows.
    const edge = (at) => at.toFixed(2);
    map.each(view, layout, (value, x, y) => {
      if (value === null) return;
      const level = high > low ? Math.round(((value - low) / (high - low)) * (LEVELS - 1)) : 0;
      const [left, top, right, bottom] = [sx(x), sy(y), sx(x + 1) - between[0], sy(y + 1) - between[1]].map(edge);
      paths[level].push(`M${left} ${top}H${right}V${bottom}H${left}z`);
    });
    paths.forEach((path, level) => {
      if (path.length) svg(group, "path", { d: path.join(""), class: "cells", fill: ramp(level / (LEVELS - 1)) });
    });
    map.key(chart, area);
  },
  each(view, layout, visit) {
    const values = columns[view.values];
    for (let row = 0; row < view.channels * view.dies * view.planes; row += 1) {
      const plane = row % view.planes;
      const die = Math.floor(row / view.planes) % view.dies;
      const channel = Math.floor(row / view.planes / view.dies);
      for (let cell = 0; cell < view.cells; cell += 1) {
        const x = layout.left(channel) + (cell % view.across);
        const y = layout.top(die, plane) + Math.floor(cell / view.across);
        visit(values[row * view.cells + cell], x, y, { channel, die, plane, cell });
      }
    }
  },
  /** Labels of channels and dies, and the key to the colours. */
  key(chart, area) {
    const { view, frame, sx, sy } = chart;
    const layout = layoutOf(view);
    const inside = (at, from, to) => at >= from - 1 && at <= to + 1;
    let free = -Infinity;
    for (let channel = 0; channel < view.channels; channel += 1) {
      const at = sx(layout.left(channel) + view.across / 2);
      const label = channel === 0 || view.channels <= 4 ? `channel ${channel}` : String(channel);
      const half = (label.length * CHAR) / 2;
      if (!inside(at, area.left, area.right) || at - half < free) continue;
      svg(frame, "text", { x: Math.max(at, half), y: area.top - 6, class: "tick middle" }, label);
      free = at + half + 6;
    }
    free = -Infinity;
    for (let die = 0; die < view.dies; die += 1) {
      const at = sy(layout.top(die, 0) + layout.die / 2);
      if (!inside(at, area.top, area.bottom) || at < free) continue;
      svg(frame, "text", { x: area.left - 6, y: at + 4, class: "tick end" }, `die ${die}`);
      free = at + 14;
    }
    const wide = Math.min(160, (area.right - area.left) / 2);
    const top = area.bottom + 16;
    for (let level = 0; level < LEVELS; level += 1) {
      const box = { x: area.left + (wide * level) / LEVELS, y: top, width: wide / LEVELS + 0.5, height: 10 };
      svg(frame, "rect", { ...box, fill: ramp(level / (LEVELS - 1)) });
    }
    const [low, high] = view.scale.map((value) => grouped(value, 0));
    svg(frame, "text", { x: area.left, y: top + 23, class: "tick" }, low);
    svg(frame, "text", { x: area.left + wide, y: top + 23, class: "tick end" }, high);
    svg(frame, "text", { x: area.left + wide + 8, y: top + 9, class: "tick" }, view.unit);
  },
  read(chart, px, py, sx, sy) {
    const view = chart.view;
    const [x, y] = [sx.invert(px), sy.invert(py)];
    let found = null;
    map.each(view, layoutOf(view), (value, left, top, where) => {
      if (value !== null && x >= left && x < left + 1 && y >= top && y < top + 1) found = { value, ...where };
    });
    if (!found) return null;
    const first = found.cell * view.joined;
    const last = Math.min(first + view.joined, view.perPlane) - 1;
    const blocks = last > first ? `blocks ${first}–${last}, mean` : `block ${first}`;
    const plane = view.planes > 1 ? `, plane ${found.plane}` : "";
    const title = `channel ${found.channel}, die ${found.die}${plane}`;
    const share = (found.value - view.scale[0]) / (view.scale[1] - view.scale[0] || 1);
    const about = view.exact === false ? "about " : "";
    const value = `${about}${shown(found.value, "count")} ${view.unit}`;
    return { title, rows: [{ colour: ramp(share), name: blocks, value }] };
  },
};
