// What stands beside lines and bars: intervals, published values, lines of reference.

const FEW = 60; // points beyond which they are drawn small
const NAME_MAX = 22;
const SLANT = { degrees: 35, sin: 0.58, cos: 0.82 };

const shortened = (name) => (name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name);

/** The values of a series at a place: its own and the ends of its interval. */
const reachOf = (one, i) => [one.y, one.low, one.high].filter(Boolean).map((name) => columns[name][i]);

/** A value as it reads, with its interval. */
function told(one, i, format) {
  const [value, low, high] = reachOf(one, i).map((each) => each !== null && shown(each, format));
  return low && high ? `${value} (${low} to ${high})` : value;
}

const within = ({ left, right, top, bottom }, x, y) =>
  x >= left - 0.5 && x <= right + 0.5 && y >= top - 0.5 && y <= bottom + 0.5;

/** An error bar; on a log scale one that reaches down to 0 or below ends at the axis. */
function paintInterval({ over, area, sy, logY }, x, one, i, colour) {
  const [low, high] = [columns[one.low][i], columns[one.high][i]];
  if (low === null || high === null || (logY && high <= 0) || x < area.left - 0.5 || x > area.right + 0.5) return;
  const [from, to] = [logY && low <= 0 ? area.bottom : sy(low), sy(high)];
  const [bottom, top] = [from, to].map((y) => Math.min(Math.max(y, area.top), area.bottom));
  if (bottom === top && from !== to) return; // outside a zoom
  const cap = (y, inside) => (y === inside ? `M${(x - 4).toFixed(1)} ${y.toFixed(1)}h8` : "");
  const d = `M${x.toFixed(1)} ${bottom.toFixed(1)}V${top.toFixed(1)}${cap(from, bottom)}${cap(to, top)}`;
  svg(over, "path", { d, class: "interval", stroke: colour });
}

/** A published value: hollow, so that our own shows beneath. */
function diamond(parent, x, y, colour) {
  svg(parent, "path", { d: `M${x.toFixed(1)} ${(y - 6).toFixed(1)}l5 6l-5 6l-5 -6z`, class: "published", stroke: colour });
}

/** Stretches of the horizontal axis, shaded behind what is drawn; an end of null is that of the axis. */
function paintBands({ view, area, sx }, group) {
  for (const [from, to] of view.bands ?? []) {
    const [left, right] = [sx(from), to === null ? area.right : sx(to)].map((x) => Math.min(Math.max(x, area.left), area.right));
    if (right > left) svg(group, "rect", { x: left, y: area.top, width: right - left, height: area.bottom - area.top, class: "stretch" });
  }
}

/** Lines of reference, upright and level, each with its label where no other label is. */
function paintReferences({ view, area, sx, sy, over, logY }) {
  const shownAt = (scale, low, high) => ([at]) => scale(at) >= low - 0.5 && scale(at) <= high + 0.5;
  const marks = (view.marks ?? []).filter(shownAt(sx, area.left, area.right));
  const levels = (view.levels ?? []).filter(shownAt((at) => (logY && at <= 0 ? NaN : sy(at)), area.top, area.bottom));
  for (const [at] of marks) svg(over, "line", { x1: sx(at), x2: sx(at), y1: area.top, y2: area.bottom, class: "mark" });
  for (const [at] of levels) svg(over, "line", { x1: area.left, x2: area.right, y1: sy(at), y2: sy(at), class: "mark" });

  const taken = [];
  const write = (label, places) => {
    const wide = label.length * CHAR;
    const boxes = places.map(({ x, y, end }) => ({ x: end ? x - wide : x, y: y - 11, wide, text: { x, y, end } }));
    const fits = (box) =>
      box.x >= area.left && box.x + wide <= area.right + 16 && box.y >= area.top - 2 && box.y < area.bottom;
    const meets = (a, b) => a.x < b.x + b.wide && b.x < a.x + a.wide && Math.abs(a.y - b.y) < 13;
    const crossed = (box) => levels.some(([at]) => sy(at) > box.y && sy(at) < box.y + 11);
    const free = boxes.filter((box) => !taken.some((other) => meets(box, other)));
    const box = free.find((each) => fits(each) && !crossed(each)) ?? free.find(fits) ?? free[0] ?? boxes[0];
    taken.push(box);
    svg(over, "text", { x: box.text.x, y: box.text.y, class: box.text.end ? "tick halo end" : "tick halo" }, label);
  };
  const stretches = (view.bands ?? []).map(([from, , label]) => [Math.max(from, sx.invert(area.left)), label]);
  for (const [at, label] of [...marks, ...stretches.filter(([from]) => sx(from) < area.right)]) {
    const x = sx(at);
    const rows = [12, 26, 40, 54].map((down) => area.top + down);
    write(label, rows.flatMap((y) => [{ x: x + 5, y, end: false }, { x: x - 5, y, end: true }]));
  }
  for (const [at, label] of levels) {
    const [right, left] = [area.right - 2, area.left + 4];
    const rows = [sy(at) - 4, sy(at) + 13];
    write(label, rows.flatMap((y) => [{ x: right, y, end: true }, { x: left, y, end: false }]));
  }
}
