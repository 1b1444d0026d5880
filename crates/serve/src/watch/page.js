"use strict";
// Asks for the data each second, and draws them.

const RAMP = ["#2d1160", "#3b3f8f", "#31688e", "#26838f", "#1f9d8a", "#55b96a", "#9ed33f", "#f2e51d"];
const LEVELS = 64;
// As in the tables of runs: below this, the two amplifications are shown as one.
const AMPLIFICATIONS_DIFFER = 0.01;
const VERDICTS = {
  settled: "yes",
  "too-short": "too short",
  none: "nothing written",
  "never-cleaned": "no cleaning",
};
const SPAN_MAX_S = 120;
const SPAN_MIN_S = 20;
const byId = (id) => document.getElementById(id);
// Colours in pairs, as a canvas takes them: the one that the page has at the moment.
const colour = (name) => {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};

const scaled = (value, step, units) => {
  let at = 0;
  while (value >= step && at < units.length - 1) {
    value /= step;
    at += 1;
  }
  const digits = value === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[at]}`.trim();
};
const count = (value) => Math.round(value).toLocaleString("en");
const plain = (value) => (value >= 100 ? count(value) : String(Number(value.toPrecision(3))));
const rate = (value) => scaled(value, 1000, ["B/s", "KB/s", "MB/s", "GB/s"]);
const size = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const time = (value) => scaled(value, 1000, ["ns", "us", "ms", "s"]);

/** A canvas of the size that it is shown at. */
function surface(id) {
  const canvas = byId(id);
  const dense = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = Math.round(width * dense);
  canvas.height = Math.round(height * dense);
  const pen = canvas.getContext("2d");
  pen.scale(dense, dense);
  pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  return { pen, width, height };
}

/** Round numbers from 0 to `most`, or powers of ten. */
function ticks(low, high, log) {
  const found = [];
  if (log) {
    for (let at = Math.ceil(Math.log10(low)); at <= Math.log10(high); at += 1) found.push(10 ** at);
    return found;
  }
  const rough = high / 4;
  const base = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * base).find((each) => each >= rough);
  for (let at = 0; at <= high * 1.0001; at += step) found.push(at);
  return found;
}

/** Lines over time: `lines` are [name, colour, value of a sample or null]. */
function draw(id, samples, lines, { unit, log = false, least = 1 }) {
  const { pen, width, height } = surface(id);
  const [left, right, top, bottom] = [64, width - 8, 22, height - 20];
  const end = samples.length ? samples[samples.length - 1].at_s : 0;
  const span = Math.min(SPAN_MAX_S, Math.max(SPAN_MIN_S, samples.length ? end - samples[0].at_s : 0));
  const shown = samples.filter((sample) => sample.at_s >= end - span);
  const values = lines.flatMap(([, , of]) => shown.map(of)).filter((value) => value !== null && value > (log ? 0 : -1));
  const high = Math.max(least, ...values) * (log ? 1.5 : 1.05);
  const low = log ? Math.min(high / 100, ...values) / 1.5 : 0;
  const y = (value) => {
    const share = log ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : value / high;
    return bottom - share * (bottom - top);
  };
  const x = (at) => right - ((end - at) / span) * (right - left);
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  for (const tick of ticks(low, high, log)) {
    pen.strokeStyle = colour("grid");
    pen.beginPath();
    pen.moveTo(left, y(tick));
    pen.lineTo(right, y(tick));
    pen.stroke();
    pen.fillStyle = colour("soft");
    pen.textAlign = "right";
    pen.fillText(unit(tick), left - 6, y(tick));
  }
  pen.textAlign = "center";
  const step = [5, 10, 30].find((each) => each * 4 >= span) ?? 30;
  for (let ago = 0; ago <= span; ago += step) {
    const shift = ago === 0 ? -10 : ago > span * 0.97 ? 14 : 0;
    pen.fillText(ago === 0 ? "now" : `-${ago} s`, x(end - ago) + shift, height - 8);
  }
  let at = left;
  pen.textAlign = "left";
  for (const [name, hue, of] of lines) {
    pen.strokeStyle = pen.fillStyle = colour(hue);
    pen.fillText(name, at, 8);
    at += pen.measureText(name).width + 18;
    pen.lineWidth = 1.6;
    pen.beginPath();
    let joined = false;
    for (const sample of shown) {
      const value = of(sample);
      if (value === null || (log && value <= 0)) {
        joined = false;
        continue;
      }
      // A second alone is a dash, so that it can be seen.
      if (joined) pen.lineTo(x(sample.at_s), y(value));
      else pen.moveTo(x(sample.at_s) - 1.5, y(value)), pen.lineTo(x(sample.at_s), y(value));
      joined = true;
    }
    pen.stroke();
  }
}

function ramp(share) {
  const at = share * (RAMP.length - 1);
  const [from, to] = [RAMP[Math.floor(at)], RAMP[Math.ceil(at)]];
  const mixed = [1, 3, 5].map((k) => {
    const [a, b] = [from, to].map((each) => parseInt(each.slice(k, k + 2), 16));
    return Math.round(a + (b - a) * (at % 1));
  });
  return `rgb(${mixed.join(" ")})`;
}
const SHADES = Array.from({ length: LEVELS }, (_, level) => ramp(level / (LEVELS - 1)));

let erasedBefore = [];

/** A cell for each block or some neighbours: a strip for each plane, cells that were erased in the last second framed. */
function drawMap(blocks) {
  byId("blocks").hidden = !blocks;
  if (!blocks) return;
  const planes = blocks.valid.length / blocks.cells_per_plane;
  const { pen, width, height } = surface("map");
  const columns = planes > 24 ? Math.ceil(planes / 24) : 1;
  const rows = Math.ceil(planes / columns);
  const [planeWidth, planeHeight] = [width / columns - 4, height / rows - 3];
  const down = Math.max(1, Math.round(Math.sqrt((blocks.cells_per_plane * planeHeight) / planeWidth)));
  const across = Math.ceil(blocks.cells_per_plane / down);
  const [wide, tall] = [planeWidth / across, planeHeight / down];
  const erased = [];
  for (let at = 0; at < blocks.valid.length; at += 1) {
    const [plane, cell] = [Math.floor(at / blocks.cells_per_plane), at % blocks.cells_per_plane];
    const x = Math.floor(plane / rows) * (planeWidth + 4) + Math.floor(cell / down) * wide;
    const y = (plane % rows) * (planeHeight + 3) + (cell % down) * tall;
    pen.fillStyle = SHADES[blocks.valid.charCodeAt(at) - 48];
    pen.fillRect(x, y, Math.max(0.8, wide - (wide > 4 ? 1 : 0)), Math.max(0.8, tall - (tall > 4 ? 1 : 0)));
    if (erasedBefore.length && blocks.erases[at] > erasedBefore[at]) erased.push([x, y]);
  }
  pen.strokeStyle = colour("hue-1");
  pen.lineWidth = 1.5;
  for (const [x, y] of erased) pen.strokeRect(x, y, Math.max(2, wide - 1), Math.max(2, tall - 1));
  erasedBefore = blocks.erases;
  const each = blocks.joined > 1 ? `${blocks.joined} blocks` : "a block";
  byId("legend").textContent =
    `Each cell is ${each}, each strip of cells a plane. Dark: no valid pages; bright yellow: all pages valid; ` +
    `framed: erased since the last look (${erased.length} now).`;
}

/** Whether write amplification by bytes is another figure than that by pages. */
function differ({ write_amplification: pages, write_amplification_bytes: bytes }) {
  return pages > 0 && bytes !== null && Math.abs(bytes / pages - 1) > AMPLIFICATIONS_DIFFER;
}

function paragraph(text) {
  const made = document.createElement("p");
  made.className = "caption";
  made.textContent = text;
  return made;
}

function tell(stats) {
  const { served } = stats;
  byId("name").textContent = `${served.name}: ${size(served.bytes)}${served.read_only ? ", read-only" : ""}`;
  const p99 = (kind) => stats.response_time_ns[kind].p99;
  // A device that exists reveals nothing about its flash.
  const { flash } = stats;
  const tiles = [
    ["read", size(stats.requests.bytes_read)],
    ["written", size(stats.requests.bytes_written)],
    ["reads, p99", p99("read") === null ? "none" : time(p99("read"))],
    ["writes, p99", p99("write") === null ? "none" : time(p99("write"))],
    ["connections", count(served.connections.open)],
    ["drive's clock", time(stats.time_ns)],
  ];
  if (flash) {
    const ratio = (value) => (value === null ? "none" : value.toFixed(3));
    const [pages, bytes] = [stats.write_amplification, stats.write_amplification_bytes];
    tiles.unshift(
      ...(differ(stats)
        ? [["write amplification, by pages", ratio(pages)], ["by bytes, as drives count it", ratio(bytes)]]
        : [["write amplification", ratio(pages)]]),
      ["settled", VERDICTS[stats.settled.verdict] ?? `NO: ${stats.settled.verdict}`],
    );
    tiles.splice(
      -2,
      0,
      ["blocks erased", count(flash.erases.total)],
      ["blocks free", `${count(stats.blocks_free)} of ${count(stats.blocks)}`],
      ["holds data", `${Math.round((100 * stats.logical_pages_with_data) / stats.logical_pages)} %`],
    );
    const said = stats.warnings.map(({ text, mend }) => (mend ? `${text}; try ${mend}` : text));
    byId("notes").replaceChildren(...[`settled: ${stats.settled.why}`, ...said].map(paragraph));
  }
  for (const layer of stats.host_layers ?? []) {
    const handed = layer.reads.requests + layer.writes.requests + layer.others;
    tiles.push([`${layer.scheduler}: taken, handed on`, `${count(layer.requests)}, ${count(handed)}`]);
  }
  if (served.lateness_ns && served.lateness_ns.p99 !== null) {
    tiles.push(["lateness, p99", time(served.lateness_ns.p99) + (served.keeps_up === false ? ": behind" : "")]);
  }
  byId("tiles").replaceChildren(
    ...tiles.map(([name, value]) => {
      const tile = document.createElement("div");
      const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
      [dt.textContent, dd.textContent] = [name, value];
      tile.append(dt, dd);
      return tile;
    }),
  );
}

async function look() {
  const state = byId("state");
  try {
    const { stats, samples, blocks } = await (await fetch("data")).json();
    if (stats === null) throw new Error("the drive is gone");
    const over = (of) => (sample) => of(sample) / sample.span_s;
    const share = (of) => (sample) => (sample.pages_written > 0 ? of(sample) / sample.pages_written : null);
    tell(stats);
    for (const id of ["amplification", "cleaning"]) byId(id).closest("section").hidden = !stats.flash;
    if (stats.flash) {
      const page = stats.served.bytes / stats.logical_pages;
      const bytes = (s) => (s.bytes_written > 0 ? (s.programs * page) / s.bytes_written : null);
      draw("amplification", samples, [
        ["all", "hue-0", share((s) => s.programs)],
        ["cleaning", "hue-1", share((s) => s.programs_gc)],
        ...(differ(stats) ? [["all, by bytes", "hue-2", bytes]] : []),
      ], { unit: plain });
      draw("cleaning", samples, [
        ["erased", "hue-1", over((s) => s.erases)],
        ["free", "hue-0", (s) => s.blocks_free],
      ], { unit: plain });
    }
    draw("throughput", samples, [
      ["read", "hue-0", over((s) => s.bytes_read)],
      ["write", "hue-1", over((s) => s.bytes_written)],
    ], { unit: rate, least: 1000 });
    draw("latency", samples, [
      ["p50", "hue-0", (s) => s.p50_ns],
      ["p99", "hue-2", (s) => s.p99_ns],
      ["p99.9", "hue-1", (s) => s.p99_9_ns],
    ], { unit: time, log: true, least: 1000 });
    drawMap(blocks);
    state.textContent = `served for ${count(stats.served.wall_s)} s`;
    state.classList.remove("lost");
  } catch (error) {
    state.textContent = `no answer: ${error.message}`;
    state.classList.add("lost");
  }
  setTimeout(look, 1000);
}
look();
