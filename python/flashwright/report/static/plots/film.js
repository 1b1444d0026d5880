// Maps of several moments, one at a time: a slider and a button that plays them. All films of a page show the same
// moment, by its share of the run.

const FILM_MS = 6000; // how long all moments together take

const film = {
  isMap: true,
  below: 64,
  height: (chart, width) => map.height(chart, width) + 16,
  bounds: (chart) => map.bounds(chart),
  paint(chart, group, sx, sy, area) {
    film.decode(chart);
    map.paint(chart, group, sx, sy, area);
    const label = film.label(chart);
    svg(chart.frame, "text", { x: area.left, y: area.bottom + 58, class: "label moment" }, label);
    chart.slider.value = String(chart.moment);
    chart.slider.setAttribute("aria-valuetext", label);
  },
  read: (chart, px, py, sx, sy) => map.read(chart, px, py, sx, sy),

  /** The frame of the moment as numbers, where `map` looks for them. */
  decode({ view, moment }) {
    const [low, high] = view.scale;
    const step = (high - low) / (view.alphabet.length - 1);
    film.levels ??= new Map([...view.alphabet].map((letter, level) => [letter, level]));
    columns[view.values] = Array.from(view.frames[moment], (letter) => {
      const value = low + film.levels.get(letter) * step;
      return view.exact ? Math.round(value) : value;
    });
  },
  label({ view, moment }) {
    const requests = `${grouped(columns[view.requests][moment], 0)} requests`;
    return view.times ? `${requests}, ${shown(columns[view.times][moment], "ns")}` : requests;
  },

  controls(chart) {
    chart.moment = chart.view.frames.length - 1;
    const box = html(chart.controls, "span", "winder");
    chart.playButton = button(box, "", "option play", () => (film.timer ? film.stop() : film.play(chart)));
    chart.slider = html(box, "input");
    Object.assign(chart.slider, { type: "range", min: "0", max: String(chart.moment), step: "1" });
    chart.slider.setAttribute("aria-label", `moment of ${chart.spec.title}`);
    chart.slider.addEventListener("input", () => {
      film.stop();
      film.show(chart, Number(chart.slider.value));
    });
    film.name(chart);
  },
  name(chart) {
    chart.playButton.textContent = film.timer ? "\u275a\u275a pause" : "\u25b6 play";
    chart.playButton.setAttribute("aria-pressed", Boolean(film.timer));
  },
  show(chart, moment) {
    const share = moment / Math.max(1, chart.view.frames.length - 1);
    for (const other of chart.siblings()) {
      other.moment = other === chart ? moment : Math.round(share * (other.view.frames.length - 1));
      other.draw();
    }
  },
  play(chart) {
    const last = chart.view.frames.length - 1;
    if (chart.moment === last) film.show(chart, 0);
    film.timer = setInterval(() => {
      film.show(chart, chart.moment + 1);
      if (chart.moment >= last) film.stop();
    }, Math.max(40, FILM_MS / (last + 1)));
    charts.filter((other) => other.playButton).forEach(film.name);
  },
  stop() {
    clearInterval(film.timer);
    film.timer = null;
    charts.filter((other) => other.playButton).forEach(film.name);
  },
};
