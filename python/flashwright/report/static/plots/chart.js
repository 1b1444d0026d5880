// A chart of any kind: axes, zoom, read-out, legend.

const KINDS = { lines, bars, stack, map, film, requests };

const HEIGHT = { plain: 280, small: 190, paper: 215, smallOnPaper: 150 };
const PAPER = { plain: 660, small: 320 }; // widths
const SAVED = 440; // the width of a saved chart, so that its words stay readable in a column of a paper

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
    this.small = Boolean(plot.closest(".charts.small"));
    this.buildControls();
    this.listen();
    if (plot.clientWidth) plot.style.minHeight = `${this.height(plot.clientWidth)}px`; // keeps its place until drawn
    drawLater(this);
    new ResizeObserver(() => this.resize()).observe(plot);
  }

  resize() {
    if (Chart.onPaper || Chart.saving || this.plot.clientWidth === this.width) return;
    if (this.near) this.draw();
    else drawLater(this);
  }

  visible() {
    const hidden = (one) => hiddenRuns.has(one.run) || this.hiddenParts.has(one.part) || this.hiddenParts.has(one.of);
    return this.view.series.filter((one) => !hidden(one));
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

  /** Series are of a run, or have a colour of their own; those of a run may have parts, which then are dashed. */
  colourOf(line) {
    return hue(line.colour ?? line.run);
  }

  lookOf(line) {
    if (line.level) return "level";
    if (line.colour === undefined && line.part && line.part !== this.parts[0]) return "dashed";
    return (line.colour ?? line.run) >= HUES ? "again" : "";
  }

  /** What the legend shows of a series. */
  swatchOf(line) {
    if (line.published) return "published";
    if (line.scattered || line.big) return "dots";
    return this.lookOf(line).replace("again", "dashed");
  }

  nameOf(line) {
    if (line.of) return `${line.of}, ${line.part}`;
    if (line.colour !== undefined) return line.part ?? this.view.y.label;
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
    const entry = (name, colour, look, isHidden, flip) => {
      const element = button(controls, "", "legend", flip);
      const swatch = html(element, "span", `swatch ${look}`);
      if (colour) swatch.style.color = colour;
      element.append(name);
      this.legend.push({ element, isHidden, name, colour, look });
    };
    const shownRuns = [...new Set((this.view.series ?? []).map((one) => one.run))].filter((run) => run !== undefined);
    if (runs.length > 1) {
      for (const run of shownRuns) {
        entry(names[run], hue(run), run >= HUES ? "dashed" : "", () => hiddenRuns.has(run), () => {
          flip(hiddenRuns, run);
          charts.forEach((chart) => chart.draw());
        });
      }
    }
    this.parts.forEach((part, k) => {
      const line = this.view.series?.find((one) => one.part === part && one.colour !== undefined);
      const own = this.view.parts?.[k].colour ?? line?.colour;
      // Published values have the colours of the series that they belong to.
      const neutral = line?.of || (line?.published && spec.kind === "bars");
      const colour = neutral ? null : own !== undefined ? hue(own) : runs.length > 1 ? null : hue(shownRuns[0]);
      const look = line ? this.swatchOf(line) : !this.view.parts && k > 0 ? "dashed" : "";
      entry(part, colour, look, () => this.hiddenParts.has(part), () => {
        const hide = !this.hiddenParts.has(part);
        for (const chart of this.siblings()) {
          if (hide) chart.hiddenParts.add(part);
          else chart.hiddenParts.delete(part);
          chart.draw();
        }
      });
    });
    if (spec.kind === "lines" && this.view.y.max === undefined) {
      this.logButton = button(controls, "log scale", "option", () => {
        this.logY = !this.logY;
        this.y = null;
        this.draw();
      });
    }
    this.kind.controls?.(this);
    this.resetButton = button(controls, "reset zoom", "option reset", () => this.zoom(null, null));
    saveButtons(this);
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

  height(width) {
    const [screen, paper] = this.small && !Chart.saving ? [HEIGHT.small, HEIGHT.smallOnPaper] : [HEIGHT.plain, HEIGHT.paper];
    return Math.round(this.kind.height?.(this, width) ?? (Chart.onPaper ? paper : screen) + this.slant(width));
  }

  draw() {
    waiting.delete(this);
    const paper = this.small ? PAPER.small : PAPER.plain;
    const width = Chart.saving ? SAVED : Chart.onPaper ? paper : this.plot.clientWidth;
    this.width = width;
    if (!width) return;
    const height = this.height(width);
    this.plot.style.minHeight = "";
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

  /** The room that names below the horizontal axis need beyond a line, because they do not fit side by side. */
  slant(width) {
    const found = this.view.x?.names?.map(shortened) ?? [];
    const longest = Math.max(0, ...found.map((name) => name.length)) * CHAR;
    this.slanted = found.length > 0 && longest + 8 > (width - 60) / found.length;
    return this.slanted ? Math.ceil(longest * SLANT.sin) : 0;
  }

  layOut(width, height, x, y) {
    const isMap = Boolean(this.kind.isMap);
    const across = Math.max(3, Math.floor(width / 65));
    const { x: xAxis, y: yAxis } = this.view;
    this.yTitle = yAxis && titled(yAxis, y, this.logY);
    this.xTitle = xAxis && titled(xAxis, x, xAxis.log);
    this.yTicks = yAxis ? ticksOf(y, yAxis.format, this.logY, 6, this.yTitle.unit) : [];
    const named = xAxis?.ticks ?? xAxis?.names?.map((name, at) => [at, shortened(name)]);
    const own = named?.filter(([at]) => at >= x[0] && at <= x[1]) ?? [];
    const enough = own.length > (xAxis?.names ? 0 : 1);
    this.xTicks = isMap ? [] : enough ? own : ticksOf(x, xAxis.format, xAxis.log, across, this.xTitle.unit);
    const longest = Math.max(0, ...this.yTicks.map(([, label]) => label.length));
    // Panels below each other are aligned, whatever their labels.
    let left = { map: 44, film: 44, stack: 2, requests: 56 }[this.spec.kind] ?? Math.ceil(longest * CHAR) + 10;
    // The first of slanted names is not to stick out.
    if (this.slanted) left = Math.max(left, shortened(this.view.x.names[0]).length * CHAR * SLANT.cos - 12);
    const below = (this.kind.below ?? 42) + this.slant(width);
    const area = { left, right: width - 16, top: 24, bottom: height - below };
    if (this.spec.kind === "stack") area.top = 4;
    this.area = area;
    this.sx = scaleOf(x, this.view.x?.log, area.left, area.right);
    const upward = ["lines", "bars", "requests"].includes(this.spec.kind);
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
      if (!view.x.names) svg(frame, "line", { x1: x, x2: x, y1: area.top, y2: area.bottom, class: "grid" });
      if (this.slanted) {
        const turn = `translate(${x + 4} ${area.bottom + 14}) rotate(${-SLANT.degrees})`;
        svg(frame, "text", { transform: turn, class: "tick end" }, label);
        continue;
      }
      if (x - half < free) continue;
      const inside = Math.min(Math.max(x, half), area.right + 16 - half);
      svg(frame, "text", { x: inside, y: area.bottom + 16, class: "tick middle" }, label);
      free = inside + half + 6;
    }
    if (view.y) svg(frame, "text", { x: 0, y: 12, class: "label" }, this.yTitle.title);
    if (view.x) {
      svg(frame, "line", { x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom, class: "base" });
      const y = this.svg.viewBox.baseVal.height - 7;
      svg(frame, "text", { x: area.right, y, class: "label end" }, this.xTitle.title);
    }
    const clip = `clip-${charts.indexOf(this)}`;
    const size = { width: Math.max(area.right - area.left, 1), height: area.bottom - area.top + 2 };
    const box = { x: area.left, y: area.top - 1, ...size };
    svg(svg(this.svg, "clipPath", { id: clip }), "rect", box);
    const clipped = svg(this.svg, "g", { "clip-path": `url(#${clip})` });
    paintBands(this, clipped);
    this.over = svg(this.svg, "g"); // what may reach over the edge, such as a point on it
    this.kind.paint(this, clipped, sx, sy, area);
    paintReferences(this);
    this.cursor = svg(this.svg, "line", { class: "cursor", y1: area.top, y2: area.bottom, visibility: "hidden" });
    this.band = svg(this.svg, "rect", { class: "band", visibility: "hidden" });
  }

  updateControls() {
    this.choices?.forEach((choice, index) => choice.setAttribute("aria-pressed", index === this.index));
    for (const { element, isHidden } of this.legend) element.setAttribute("aria-pressed", !isHidden());
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
      const zoomed = start && this.zoomTo(start, this.at(event));
      start = null;
      // A finger cannot hover: a tap reads values, until the next or one elsewhere.
      if (!zoomed && event.pointerType === "touch") this.showReadout(...this.at(event));
    });
    plot.addEventListener("pointercancel", () => {
      start = null;
      this.band?.setAttribute("visibility", "hidden");
    });
    plot.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") this.hideReadout();
    });
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
    const both = Boolean(this.kind.isMap);
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
    if (!onX && !onY) return false;
    const byValue = (a, b) => a - b;
    const y = onY ? ys.map(this.sy.invert).sort(byValue) : this.y;
    if (onY && this.kind.isMap) y.reverse();
    this.zoom(onX ? xs.map(this.sx.invert).sort(byValue) : this.x, y);
    return true;
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
    this.readout.style.top = `${this.view.y ? top + 4 : py + 16}px`;
  }

  hideReadout() {
    this.readout.hidden = true;
    this.cursor?.setAttribute("visibility", "hidden");
  }
}

function flip(set, item) {
  if (!set.delete(item)) set.add(item);
}
