// The charts of a report: drawn as SVG from the JSON beside this script, at the width that the page gives them.
//
// The files of this folder are put together into one script, in the order that report/page.py names. This one has what
// all need: data, elements, numbers as they read, scales.
//
// A chart shows one of its views at a time. Each kind of chart knows its bounds, how to paint itself between two
// scales, and what stands under the pointer; axes, zoom, read-outs and legends are common to all. Charts of a group
// share their view and the zoom of their horizontal axis. A run hidden in one chart is hidden in all.

const { runs, names, columns, charts: specs, units: UNITS, ramp: RAMP } = JSON.parse(document.getElementById("plots").textContent);
const HUES = 7;
const CHAR = 6.4; // width of a character of a tick label, on the safe side
const hiddenRuns = new Set();
const charts = [];

// Elements ---------------------------------------------------------------------------------------------------------

const SVG_SPACE = "http://www.w3.org/2000/svg";

function svg(parent, tag, attributes = {}, text) {
  const element = document.createElementNS(SVG_SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return parent.appendChild(element);
}

function html(parent, tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return parent.appendChild(element);
}

function button(parent, text, className, act) {
  const element = html(parent, "button", className, text);
  element.type = "button";
  element.addEventListener("click", act);
  return element;
}

const hue = (index) => `var(--hue-${index % HUES})`;

// Numbers ----------------------------------------------------------------------------------------------------------

function unitOf(format, size) {
  const units = UNITS[format];
  // A clock that shows less than two hours shows seconds; counts below ten thousand are written out.
  const fits = ([unit]) => size >= unit * (unit === 3.6e12 ? 2 : unit === 1e3 && format === "count" ? 10 : 1);
  return units.find(fits) ?? units[units.length - 1];
}

const grouped = (value, digits) => value.toLocaleString("en", { maximumFractionDigits: digits });

function significant(value, digits = 4) {
  if (value === 0) return "0";
  const decimals = digits - 1 - Math.floor(Math.log10(Math.abs(value)));
  return grouped(value, Math.min(Math.max(decimals, 0), 12));
}

/** A number as it reads outside an axis. */
function shown(value, format) {
  if (format === "count") return Number.isInteger(value) ? grouped(value, 0) : significant(value);
  const [unit, suffix] = unitOf(format, Math.abs(value));
  return significant(value / unit) + after(suffix);
}

/** A unit behind a number. */
const after = (name) => (name ? ` ${name}` : "");

/**
 * The unit of an axis and the title that names it; a null unit stays with each tick.
 *
 * Counts keep their k and M at the tick, since the title says what is counted; so do sizes on a log axis, which are
 * powers of two. Ticks of an axis's own carry what the reader wrote.
 */
function titled(axis, [low, high], log) {
  const { label, format } = axis;
  const own = axis.ticks || axis.names || label.endsWith("]") || !["ns", "bytes", "share"].includes(format);
  if (own) return { unit: null, title: label };
  const per = axis.per ? `/${axis.per}` : "";
  if (log && format === "bytes") return { unit: null, title: `${label} [bytes${per}]` };
  const size = log ? Math.sqrt(low * high) : Math.max(Math.abs(low), Math.abs(high));
  const unit = unitOf(format, size);
  return { unit, title: `${label} [${unit[1]}${per}]` };
}

// Scales -----------------------------------------------------------------------------------------------------------

function scaleOf(domain, log, from, to) {
  const forth = log ? Math.log10 : (value) => value;
  const back = log ? (value) => 10 ** value : (value) => value;
  const [low, high] = domain.map(forth);
  const pixels = (to - from) / (high - low || 1);
  const scale = (value) => from + (forth(value) - low) * pixels;
  scale.invert = (pixel) => back(low + (pixel - from) / pixels);
  return scale;
}

function niceStep(span, most) {
  const rough = span / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((step) => step * power >= rough * 0.999);
}

/** Values and labels of about `most` ticks; bare numbers of the axis's unit, where it has one. */
function ticksOf([low, high], format, log, most, inUnit = null) {
  const told = (value) => (inUnit ? significant(value / inUnit[0]) : shown(value, format));
  const decades = log ? Math.log10(high / low) : 0;
  if (log && decades > 0.8 && format === "bytes") {
    const powers = Math.log2(high / low);
    const every = Math.max(1, Math.ceil(powers / most));
    const ticks = [];
    for (let power = Math.ceil(Math.log2(low) - 1e-9); 2 ** power <= high * 1.001; power += 1) {
      if (power % every === 0) ticks.push([2 ** power, shown(2 ** power, format)]);
    }
    return ticks;
  }
  if (log && decades > 0.8) {
    const every = Math.max(1, Math.ceil(decades / most));
    const within = decades * 2.7 <= most ? [1, 2, 5] : [1];
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      if (power % every) continue;
      ticks.push(...within.map((step) => step * 10 ** power));
    }
    return ticks.filter((at) => at >= low * 0.999 && at <= high * 1.001).map((at) => [at, told(at)]);
  }
  const [unit, name] = inUnit ?? unitOf(format, Math.max(Math.abs(low), Math.abs(high)));
  const suffix = inUnit ? "" : after(name);
  let step = niceStep((high - low) / unit, most);
  if (format === "index") step = Math.max(1, Math.round(step));
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let k = Math.ceil(low / unit / step - 1e-9); k * step <= (high / unit) * (1 + 1e-9); k += 1) {
    const label = grouped(k * step || 0, decimals); // never "-0"
    ticks.push([k * step * unit, k === 0 && name !== "%" ? label : label + suffix]);
  }
  return ticks;
}

/** A domain around values: fixed ends as the axis asks, otherwise with a little air. */
function domainOf(values, axis, log) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || (log && value <= 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) [low, high] = log ? [1, 10] : [0, 1];
  if (low === 0 && high === 0) high = 1;
  if (log) return axis.tight ? [low, Math.max(high, low * 1.5)] : [low / 1.25, high * 1.25];
  if (axis.zero) low = Math.min(low, 0);
  const air = (high - low || Math.abs(high) || 1) * 0.06;
  if (!axis.zero && !axis.tight) low -= air;
  if (!axis.tight || high === low) high += air;
  return [axis.min ?? low, axis.max ?? high];
}

/** The last index whose value is at most `wanted`, or -1. */
function lastAtMost(values, wanted) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
