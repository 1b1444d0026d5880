// The charts of a report: drawn as SVG from the JSON beside this script, at the width that the page gives them.
//
// A chart shows one of its views at a time. Each kind of chart knows its bounds, how to paint itself between two
// scales, and what stands under the pointer; axes, zoom, read-outs and legends are common to all. Charts of a group
// share their view and the zoom of their horizontal axis. A run hidden in one chart is hidden in all.
"use strict";

(() => {
  const { runs, columns, charts: specs } = JSON.parse(document.getElementById("plots").textContent);
  const HUES = 7;
  const CHAR = 6.4; // width of a character of a tick label, on the safe side
  const names = withoutCommonKey(runs);
  const hiddenRuns = new Set();
  const charts = [];

  /** Labels without the "key = " that all of them share. */
  function withoutCommonKey(labels) {
    const key = labels[0].slice(0, labels[0].indexOf(" = ") + 3);
    const shared = labels.length > 1 && key.endsWith(" = ") && labels.every((label) => label.startsWith(key));
    return shared ? labels.map((label) => label.slice(key.length)) : labels;
  }

  // Elements ---------------------------------------------------------------------------------------------------------

  function svg(parent, tag, attributes = {}, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
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

  const UNITS = {
    ns: [[3.6e12, " h"], [1e9, " s"], [1e6, " ms"], [1e3, " µs"], [1, " ns"]],
    count: [[1e9, " G"], [1e6, " M"], [1e3, " k"], [1, ""]],
    share: [[0.01, " %"]],
    number: [[1, ""]],
    index: [[1, ""]],
  };

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
    return significant(value / unit) + suffix;
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

  /** Values and labels of about `most` ticks. */
  function ticksOf([low, high], format, log, most) {
    const decades = log ? Math.log10(high / low) : 0;
    if (log && decades > 0.8) {
      const every = Math.max(1, Math.ceil(decades / most));
      const within = decades * 2.7 <= most ? [1, 2, 5] : [1];
      const ticks = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
        if (power % every) continue;
        ticks.push(...within.map((step) => step * 10 ** power));
      }
      return ticks.filter((at) => at >= low * 0.999 && at <= high * 1.001).map((at) => [at, shown(at, format)]);
    }
    const [unit, suffix] = unitOf(format, Math.max(Math.abs(low), Math.abs(high)));
    let step = niceStep((high - low) / unit, most);
    if (format === "index") step = Math.max(1, Math.round(step));
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const ticks = [];
    for (let k = Math.ceil(low / unit / step - 1e-9); k * step <= (high / unit) * (1 + 1e-9); k += 1) {
      const label = grouped(k * step || 0, decimals); // never "-0"
      ticks.push([k * step * unit, k === 0 && suffix !== " %" ? label : label + suffix]);
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

  // Kinds: lines and histograms --------------------------------------------------------------------------------------

  function* pointsWithin(chart, domain) {
    for (const line of chart.visible()) {
      const [xs, ys] = [columns[line.x], columns[line.y]];
      for (let i = 0; i < xs.length; i += 1) {
        if (xs[i] !== null && (!domain || (xs[i] >= domain[0] && xs[i] <= domain[1]))) yield [xs[i], ys[i]];
      }
    }
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
        const colour = hue(line.run);
        if (line.fill && !chart.logY) svg(group, "path", { d: `${path}V${area.bottom}`, class: "fill", fill: colour });
        const second = line.part && line.part !== chart.parts[0];
        const look = second ? "line dashed" : line.run >= HUES ? "line again" : "line";
        svg(group, "path", { d: path, class: look, stroke: colour });
        if (!line.points) continue;
        columns[line.x].forEach((x, i) => {
          const y = columns[line.y][i];
          if (usable(y)) svg(group, "circle", { cx: sx(x), cy: sy(y), r: 3, fill: colour });
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
        return [{ colour: hue(line.run), name: chart.nameOf(line), value: shown(ys[i], yAxis.format) }];
      });
      if (!nearest) return null;
      const from = Math.ceil(nearest.x);
      const range = axis.bin > 1 ? `${grouped(from, 0)}–${grouped(from + axis.bin - 1, 0)}` : grouped(from, 0);
      const stepped = chart.visible()[0].step;
      const title = axis.bin ? range : shown(stepped ? wanted : nearest.x, axis.format);
      return { x: stepped ? px : sx(nearest.x), title: `${axis.label}: ${title}`, rows: found };
    },
  };

  // Kinds: one bar a die or channel ----------------------------------------------------------------------------------

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

  // Kinds: stacked shares, a bar a run -------------------------------------------------------------------------------

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

  // Kinds: a cell a block --------------------------------------------------------------------------------------------

  // Dark to light through blue, green and yellow, so that it reads in grey and for the colour-blind alike.
  const RAMP = ["#2d1160", "#3b3f8f", "#31688e", "#26838f", "#1f9d8a", "#55b96a", "#9ed33f", "#f2e51d"];
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
      const [wide, tall] = [sx(1) - sx(0), sy(1) - sy(0)].map((size) => (size > 5 ? size - 1 : size));
      const cell = `h${wide.toFixed(2)}v${tall.toFixed(2)}h${(-wide).toFixed(2)}z`;
      map.each(view, layout, (value, x, y) => {
        if (value === null) return;
        const level = high > low ? Math.round(((value - low) / (high - low)) * (LEVELS - 1)) : 0;
        paths[level].push(`M${sx(x).toFixed(2)} ${sy(y).toFixed(2)}${cell}`);
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
      const value = `${shown(found.value, "count")} ${view.unit}`;
      return { title, rows: [{ colour: ramp(share), name: blocks, value }] };
    },
  };

  const KINDS = { lines, bars, stack, map };

  // A chart: axes, zoom, read-out, legend ----------------------------------------------------------------------------

  class Chart {
    constructor(plot, spec) {
      Object.assign(this, { plot, spec, kind: KINDS[spec.kind], index: 0, x: null, y: null });
      this.hiddenParts = new Set();
      this.view = spec.views[0];
      const parts = (this.view.series ?? []).map((one) => one.part).filter(Boolean);
      this.parts = this.view.parts?.map((part) => part.name) ?? [...new Set(parts)];
      this.logY = Boolean(this.view.y?.log);
      this.controls = plot.closest("figure").querySelector(".controls");
      this.readout = html(plot, "div", "readout");
      this.readout.setAttribute("role", "status");
      this.readout.hidden = true;
      plot.tabIndex = 0;
      plot.setAttribute("role", "group");
      plot.setAttribute("aria-label", `${spec.title}, chart`);
      this.buildControls();
      this.listen();
      new ResizeObserver(() => this.draw()).observe(plot);
    }

    visible() {
      return this.view.series.filter((one) => !hiddenRuns.has(one.run) && !this.hiddenParts.has(one.part));
    }

    rows() {
      return this.view.rows.filter((row) => !hiddenRuns.has(row.run));
    }

    /** The shown values of a stacked bar, each with its part. */
    kept(row) {
      return row.values
        .map((value, k) => [value ?? 0, this.view.parts[k]])
        .filter(([value, part]) => value > 0 && !this.hiddenParts.has(part.name));
    }

    nameOf(line) {
      return [runs.length > 1 ? names[line.run] : null, line.part].filter(Boolean).join(", ") || this.view.y.label;
    }

    siblings() {
      return this.spec.group ? charts.filter((other) => other.spec.group === this.spec.group) : [this];
    }

    // Controls

    buildControls() {
      const { spec, controls } = this;
      if (spec.views.length > 1) {
        const choices = html(controls, "span", "choices");
        this.choices = spec.views.map((view, index) => button(choices, view.name, "", () => this.choose(index)));
      }
      this.legend = [];
      const entry = (name, colour, dashed, isHidden, flip) => {
        const element = button(controls, "", "legend", flip);
        const swatch = html(element, "span", dashed ? "swatch dashed" : "swatch");
        if (colour) swatch.style.color = colour;
        element.append(name);
        this.legend.push([element, isHidden]);
      };
      const shownRuns = [...new Set((this.view.series ?? []).map((one) => one.run))];
      if (runs.length > 1) {
        for (const run of shownRuns) {
          entry(names[run], hue(run), run >= HUES, () => hiddenRuns.has(run), () => {
            flip(hiddenRuns, run);
            charts.forEach((chart) => chart.draw());
          });
        }
      }
      this.parts.forEach((part, k) => {
        const colour = this.view.parts ? hue(this.view.parts[k].colour) : runs.length > 1 ? null : hue(shownRuns[0]);
        const dashed = !this.view.parts && k > 0;
        entry(part, colour, dashed, () => this.hiddenParts.has(part), () => {
          flip(this.hiddenParts, part);
          this.draw();
        });
      });
      if (spec.kind === "lines" && this.view.y.max === undefined) {
        this.logButton = button(controls, "log scale", "option", () => {
          this.logY = !this.logY;
          this.y = null;
          this.draw();
        });
      }
      this.resetButton = button(controls, "reset zoom", "option reset", () => this.zoom(null, null));
    }

    choose(index) {
      const name = this.spec.views[index].name;
      for (const chart of this.siblings()) {
        const own = chart.spec.views.findIndex((view) => view.name === name);
        if (own >= 0) Object.assign(chart, { index: own, view: chart.spec.views[own], x: null, y: null });
        chart.draw();
      }
    }

    zoom(x, y) {
      for (const chart of this.siblings()) {
        if (chart.view.name !== this.view.name) continue;
        chart.x = x;
        if (chart === this || !x) chart.y = y;
        chart.draw();
      }
    }

    // Drawing

    draw() {
      const width = Math.floor(Chart.printWidth ?? this.plot.clientWidth);
      if (!width) return;
      const height = this.kind.height?.(this, width) ?? (Chart.printWidth ? 215 : 280);
      this.area ??= {};
      this.svg?.remove();
      const viewBox = `0 0 ${width} ${height}`;
      this.svg = svg(this.plot, "svg", { viewBox, role: "img", "aria-label": this.spec.title });
      this.frame = svg(this.svg, "g");
      const [x, y] = this.kind.bounds(this);
      this.layOut(width, height, x, y);
      this.paint();
      this.updateControls();
      this.hideReadout();
    }

    layOut(width, height, x, y) {
      const isMap = this.spec.kind === "map";
      const across = Math.max(3, Math.floor(width / 65));
      this.yTicks = this.view.y ? ticksOf(y, this.view.y.format, this.logY, 6) : [];
      this.xTicks = isMap ? [] : ticksOf(x, this.view.x.format, this.view.x.log, across);
      const longest = Math.max(0, ...this.yTicks.map(([, label]) => label.length));
      const left = isMap ? 44 : this.spec.kind === "stack" ? 2 : Math.ceil(longest * CHAR) + 10;
      const area = { left, right: width - 16, top: 24, bottom: height - (isMap ? 48 : 42) };
      if (this.spec.kind === "stack") area.top = 4;
      this.area = area;
      this.sx = scaleOf(x, this.view.x?.log, area.left, area.right);
      const upward = this.spec.kind === "lines" || this.spec.kind === "bars";
      const ends = upward ? [area.bottom, area.top] : [area.top, area.bottom];
      this.sy = scaleOf(isMap ? [y[1], y[0]] : y, this.logY, ...ends);
    }

    paint() {
      const { area, sx, sy, frame, view } = this;
      for (const [at, label] of this.yTicks) {
        const y = sy(at).toFixed(1);
        svg(frame, "line", { x1: area.left, x2: area.right, y1: y, y2: y, class: "grid" });
        svg(frame, "text", { x: area.left - 6, y: Number(y) + 4, class: "tick end" }, label);
      }
      let free = -Infinity;
      for (const [at, label] of this.xTicks) {
        const [x, half] = [sx(at), (label.length * CHAR) / 2];
        svg(frame, "line", { x1: x, x2: x, y1: area.top, y2: area.bottom, class: "grid" });
        if (x - half < free) continue;
        const inside = Math.min(Math.max(x, half), area.right + 16 - half);
        svg(frame, "text", { x: inside, y: area.bottom + 16, class: "tick middle" }, label);
        free = inside + half + 6;
      }
      if (view.y) svg(frame, "text", { x: 0, y: 12, class: "label" }, view.y.label);
      if (view.x) {
        svg(frame, "line", { x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom, class: "base" });
        svg(frame, "text", { x: area.right, y: area.bottom + 35, class: "label end" }, view.x.label);
      }
      const clip = `clip-${charts.indexOf(this)}`;
      const size = { width: Math.max(area.right - area.left, 1), height: area.bottom - area.top + 2 };
      const box = { x: area.left, y: area.top - 1, ...size };
      svg(svg(this.svg, "clipPath", { id: clip }), "rect", box);
      this.kind.paint(this, svg(this.svg, "g", { "clip-path": `url(#${clip})` }), sx, sy, area);
      this.cursor = svg(this.svg, "line", { class: "cursor", y1: area.top, y2: area.bottom, visibility: "hidden" });
      this.band = svg(this.svg, "rect", { class: "band", visibility: "hidden" });
    }

    updateControls() {
      this.choices?.forEach((choice, index) => choice.setAttribute("aria-pressed", index === this.index));
      for (const [element, isHidden] of this.legend) element.setAttribute("aria-pressed", !isHidden());
      this.logButton?.setAttribute("aria-pressed", this.logY);
      this.resetButton.hidden = !this.x && !this.y;
    }

    // Pointer and keys

    at(event) {
      const box = this.svg.getBoundingClientRect();
      const shrunk = this.svg.viewBox.baseVal.width / box.width;
      return [(event.clientX - box.left) * shrunk, (event.clientY - box.top) * shrunk];
    }

    listen() {
      const { plot } = this;
      let start = null;
      plot.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        start = this.at(event);
        plot.setPointerCapture(event.pointerId);
      });
      plot.addEventListener("pointermove", (event) => {
        const here = this.at(event);
        if (start) this.showBand(start, here);
        else this.showReadout(...here);
      });
      plot.addEventListener("pointerup", (event) => {
        if (start) this.zoomTo(start, this.at(event));
        start = null;
      });
      plot.addEventListener("pointercancel", () => {
        start = null;
        this.band?.setAttribute("visibility", "hidden");
      });
      plot.addEventListener("pointerleave", () => this.hideReadout());
      plot.addEventListener("blur", () => this.hideReadout());
      plot.addEventListener("dblclick", () => this.zoom(null, null));
      plot.addEventListener("keydown", (event) => this.key(event));
    }

    /** The selected rectangle; a drag along one axis selects all of the other. */
    selection([x0, y0], [x1, y1]) {
      const { left, right, top, bottom } = this.area;
      const within = (value, low, high) => Math.min(Math.max(value, low), high);
      const xs = [x0, x1].map((x) => within(x, left, right)).sort((a, b) => a - b);
      const ys = [y0, y1].map((y) => within(y, top, bottom)).sort((a, b) => a - b);
      const [wide, tall] = [xs[1] - xs[0], ys[1] - ys[0]];
      const both = this.spec.kind === "map";
      const onX = wide > 8 && (both || wide > tall / 4);
      const onY = tall > 8 && this.spec.kind !== "stack" && (both || tall > wide / 4);
      return { onX, onY, xs: onX ? xs : [left, right], ys: onY ? ys : [top, bottom] };
    }

    showBand(start, here) {
      const { onX, onY, xs, ys } = this.selection(start, here);
      const box = { x: xs[0], y: ys[0], width: xs[1] - xs[0], height: ys[1] - ys[0] };
      for (const [name, value] of Object.entries(box)) this.band.setAttribute(name, value);
      this.band.setAttribute("visibility", onX || onY ? "visible" : "hidden");
      this.hideReadout();
    }

    zoomTo(start, end) {
      const { onX, onY, xs, ys } = this.selection(start, end);
      this.band.setAttribute("visibility", "hidden");
      if (!onX && !onY) return;
      const byValue = (a, b) => a - b;
      const y = onY ? ys.map(this.sy.invert).sort(byValue) : this.y;
      if (onY && this.spec.kind === "map") y.reverse();
      this.zoom(onX ? xs.map(this.sx.invert).sort(byValue) : this.x, y);
    }

    key(event) {
      const { left, right } = this.area;
      const here = Number(this.cursor.getAttribute("x1") ?? (left + right) / 2);
      const step = (right - left) / 60;
      const middle = (this.area.top + this.area.bottom) / 2;
      const around = (share) => {
        const half = ((right - left) / 2) * share;
        this.zoom([here - half, here + half].map(this.sx.invert), this.y);
      };
      const acts = {
        ArrowLeft: () => this.showReadout(Math.max(here - step, left), middle),
        ArrowRight: () => this.showReadout(Math.min(here + step, right), middle),
        "+": () => around(0.5),
        "-": () => around(2),
        Escape: () => this.zoom(null, null),
      };
      if (!acts[event.key] || event.target !== this.plot) return;
      acts[event.key]();
      event.preventDefault();
    }

    showReadout(px, py) {
      const { left, right, top, bottom } = this.area;
      const inside = px >= left && px <= right && py >= top && py <= bottom;
      const found = inside && this.kind.read(this, px, py, this.sx, this.sy);
      if (!found) return this.hideReadout();
      this.cursor.setAttribute("x1", px);
      this.cursor.setAttribute("x2", found.x ?? px);
      if (found.x !== undefined) {
        this.cursor.setAttribute("x1", found.x);
        this.cursor.setAttribute("visibility", "visible");
      }
      this.readout.replaceChildren();
      html(this.readout, "div", "title", found.title);
      for (const { colour, name, value } of found.rows) {
        const row = html(this.readout, "div", "row");
        html(row, "span", "swatch").style.color = colour;
        html(row, "span", "name", name);
        html(row, "span", "value", value);
      }
      this.readout.hidden = false;
      const beside = px + 14 + this.readout.offsetWidth > right ? px - 14 - this.readout.offsetWidth : px + 14;
      this.readout.style.left = `${Math.max(beside, 0)}px`;
      this.readout.style.top = `${this.view.series ? top + 4 : py + 16}px`;
    }

    hideReadout() {
      this.readout.hidden = true;
      this.cursor?.setAttribute("visibility", "hidden");
    }
  }

  function flip(set, item) {
    if (!set.delete(item)) set.add(item);
  }

  // Page --------------------------------------------------------------------------------------------------------------

  /** On paper charts get the width of a page, and the configuration is laid open. */
  function printing() {
    const configuration = document.getElementById("configuration");
    let wasOpen = configuration.open;
    addEventListener("beforeprint", () => {
      wasOpen = configuration.open;
      configuration.open = true;
      Chart.printWidth = 660;
      charts.forEach((chart) => chart.draw());
    });
    addEventListener("afterprint", () => {
      configuration.open = wasOpen;
      Chart.printWidth = null;
      charts.forEach((chart) => chart.draw());
    });
  }

  for (const plot of document.querySelectorAll(".plot")) charts.push(new Chart(plot, specs[plot.dataset.chart]));
  charts.forEach((chart) => chart.draw());
  printing();
})();
