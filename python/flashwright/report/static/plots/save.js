// A chart as files: a drawing that stands alone, and its numbers.

const KEPT = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "paint-order",
];
const KEPT_OF_TEXT = ["font-size", "font-weight", "text-anchor"];
const LEGEND_LINE = 18;

function saveButtons(chart) {
  const box = html(chart.controls, "span", "option save");
  for (const [kind, type, made] of [["SVG", "image/svg+xml", svgOf], ["CSV", "text/csv", csvOf]]) {
    const element = button(box, kind, "", () => saveAs(`${chart.view.file}.${kind.toLowerCase()}`, made(chart), type));
    element.setAttribute("aria-label", `Save as ${kind}`);
    element.title = kind === "SVG" ? `${chart.spec.title}: save as it is shown` : `${chart.spec.title}: save its numbers`;
  }
}

// The drawing ------------------------------------------------------------------------------------------------------

/** The chart as it is shown, on white in the colours of the light theme, with a legend of its own. */
function svgOf(chart) {
  const { dataset } = document.documentElement;
  const { theme } = dataset;
  dataset.theme = "light";
  Chart.saving = true;
  try {
    chart.draw();
    const legend = paintLegend(chart);
    const size = chart.svg.viewBox.baseVal;
    const [width, height] = [size.width, size.height + legend.height];
    const drawing = styled(chart.svg);
    const caption = chart.plot.closest("figure").querySelector("figcaption").textContent.trim().replace(/\s+/g, " ");
    const moved = `<g transform="translate(0 ${legend.height})">${[...drawing.children].map(textOf).join("")}</g>`;
    return [
      `<svg xmlns="${SVG_SPACE}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif">`,
      `<title>${escaped(chart.spec.title)}</title>`,
      `<desc>${escaped(`${document.title}. ${caption}`)}</desc>`,
      `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
      moved,
      "</svg>\n",
    ].join("\n");
  } finally {
    Chart.saving = false;
    if (theme === undefined) delete dataset.theme;
    else dataset.theme = theme;
    chart.draw();
  }
}

const escaped = (text) => text.replace(/[<>&]/g, (sign) => `&#${sign.charCodeAt(0)};`);

const textOf = (element) => new XMLSerializer().serializeToString(element).replaceAll(` xmlns="${SVG_SPACE}"`, "");

/** What is drawn, with what the page's styles say written at each element. */
function styled(drawn) {
  const copy = drawn.cloneNode(true);
  const sources = drawn.querySelectorAll("*");
  const usual = getComputedStyle(drawn);
  const gone = [];
  copy.querySelectorAll("*").forEach((element, i) => {
    if (element.getAttribute("visibility") === "hidden") gone.push(element);
    element.removeAttribute("class");
    if (["g", "clipPath"].includes(element.tagName) || element.parentElement?.tagName === "clipPath") return;
    const style = getComputedStyle(sources[i]);
    for (const name of element.tagName === "text" ? [...KEPT, ...KEPT_OF_TEXT] : KEPT) {
      const value = style.getPropertyValue(name);
      if (value !== usual.getPropertyValue(name) || name === "font-size") element.setAttribute(name, plain(value));
    }
  });
  gone.forEach((element) => element.remove());
  return copy;
}

/** A value of a style as older readers of SVG know it: colours in hexadecimal, lengths without their unit. */
function plain(value) {
  const hex = (_, ...parts) => `#${parts.slice(0, 3).map((part) => Number(part).toString(16).padStart(2, "0")).join("")}`;
  return value.replace(/rgb\((\d+),? (\d+),? (\d+)\)/g, hex).replace(/([\d.]+)px/g, "$1");
}

/** The legend above a chart that is saved, on as many lines as it needs; hidden series are left out. */
function paintLegend(chart) {
  const entries = chart.legend.filter(({ isHidden }) => !isHidden());
  if (entries.length < 2) return { height: 0 };
  const group = svg(chart.svg, "g");
  let [x, line] = [2, 0];
  for (const { name, colour, look } of entries) {
    const wide = 30 + name.length * CHAR;
    if (x > 2 && x + wide > SAVED) [x, line] = [2, line + 1];
    const entry = svg(group, "g", { transform: `translate(${x} ${line * LEGEND_LINE})` });
    const stroke = colour ?? "var(--ink)";
    if (look === "dots") svg(entry, "circle", { cx: 8, cy: -4, r: 3.5, fill: stroke });
    else if (look === "published") diamond(entry, 8, -4, stroke);
    else svg(entry, "path", { d: "M0 -4H16", class: `line ${look}`, stroke, "stroke-width": 3 });
    svg(entry, "text", { x: 21, y: 0 }, name);
    x += wide;
  }
  const height = (line + 1) * LEGEND_LINE + 4;
  group.setAttribute("transform", `translate(0 ${14 - height})`);
  return { height };
}

// The numbers ------------------------------------------------------------------------------------------------------

const IN_WORDS = { ns: "ns", bytes: "bytes", share: "0-1" };

/** The head of a column: what it holds and the unit of its numbers, which is the same whatever the axis shows. */
function headOf({ label, format, per }) {
  const unit = IN_WORDS[format];
  return unit && !label.endsWith("]") ? `${label} [${unit}${per ? `/${per}` : ""}]` : label;
}

/** All numbers of the shown view, hidden series included: one line of heads, then a row a point. */
function csvOf(chart) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rowsOf(chart).map((row) => `${row.map(cell).join(",")}\n`).join("");
}

function rowsOf(chart) {
  const { view } = chart;
  return { lines: pointRows, bars: pointRows, stack: partRows, map: blockRows, film: blockRows, requests: requestRows }[
    chart.spec.kind
  ](chart, view);
}

function pointRows(chart, view) {
  const ends = view.series.some((one) => one.low);
  const beside = ends ? ["low", "high"].map((label) => headOf({ ...view.y, label })) : [];
  const rows = [["series", headOf(view.x), headOf(view.y), ...beside]];
  // Places that stand for no number have their names, as those of categories have.
  const words = new Map(view.x.format === "index" ? view.x.ticks : []);
  for (const one of view.series) {
    columns[one.y].forEach((value, i) => {
      const x = one.x ? columns[one.x][i] : (view.x.names?.[i] ?? i);
      rows.push([chart.nameOf(one), words.get(x) ?? x, ...reachOf(one, i), ...(ends && !one.low ? [null, null] : [])]);
    });
  }
  const blank = ends ? [null, null] : [];
  for (const [at, label] of view.marks ?? []) rows.push([`reference: ${label}`, at, null, ...blank]);
  for (const [at, label] of view.levels ?? []) rows.push([`reference: ${label}`, null, at, ...blank]);
  return rows;
}

function partRows(chart, view) {
  const rows = [["run", "part", headOf(view.x)]];
  for (const row of view.rows) row.values.forEach((value, k) => rows.push([names[row.run], view.parts[k].name, value]));
  return rows;
}

function blockRows(chart, view) {
  const film = view.frames && [columns[view.requests][chart.moment], ...(view.times ? [columns[view.times][chart.moment]] : [])];
  const moment = film ? ["requests completed", ...(view.times ? ["drive's time [ns]"] : [])] : [];
  const rows = [[...moment, "channel", "die", "plane", "first block", "last block", view.unit]];
  map.each(view, layoutOf(view), (value, x, y, { channel, die, plane, cell }) => {
    const first = cell * view.joined;
    const last = Math.min(first + view.joined, view.perPlane) - 1;
    // A cell of a film is one of 64 levels: more digits would be made up.
    rows.push([...(film ?? []), channel, die, plane, first, last, value && Number(value.toPrecision(4))]);
  });
  return rows;
}

function requestRows(chart, view) {
  const counts = view.counts.map(({ values }) => values);
  const names = view.counts.map(({ name }) => name);
  const rows = [["request", "kind", "pages", ...view.parts.map(({ name }) => `${name} [ns]`), ...names]];
  columns[view.kinds].forEach((kind, i) => {
    const of = (name) => columns[name][i];
    rows.push([view.first + i, view.kindNames[kind], of(view.pages), ...view.times.map(of), ...counts.map(of)]);
  });
  return rows;
}
