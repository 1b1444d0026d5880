// What a report does besides charts: tables that sort, light and dark, the download of the JSON inside.
"use strict";

(() => {
  function sortable(table) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const next = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
        const order = next === undefined ? "ascending" : next;
        table.querySelectorAll("[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
        if (order) head.setAttribute("aria-sort", order);
        body.append(...(order ? sorted(original, column, order === "ascending" ? 1 : -1) : original));
      });
    });
  }

  /** Rows in order of a column; cells without a value stay last either way. */
  function sorted(rows, column, sign) {
    const valueOf = (row) => (column === 0 ? row.cells[0].textContent : row.cells[column].dataset.value);
    return [...rows].sort((a, b) => {
      const [x, y] = [valueOf(a), valueOf(b)];
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
      const difference = column === 0 ? NaN : Number(x) - Number(y);
      return sign * (Number.isNaN(difference) ? x.localeCompare(y, "en", { numeric: true }) : difference);
    });
  }

  function themeButton(element) {
    const root = document.documentElement;
    const themes = ["auto", "light", "dark"];
    let at = 0;
    try {
      at = Math.max(0, themes.indexOf(localStorage.getItem("flashwright-theme")));
    } catch {
      // Some browsers keep nothing for local files; the choice then lasts as long as the page.
    }
    const apply = () => {
      if (at === 0) delete root.dataset.theme;
      else root.dataset.theme = themes[at];
      element.textContent = `Theme: ${themes[at]}`;
    };
    element.hidden = false;
    element.addEventListener("click", () => {
      at = (at + 1) % themes.length;
      apply();
      try {
        localStorage.setItem("flashwright-theme", themes[at]);
      } catch {
        // As above.
      }
    });
    apply();
  }

  function downloadButton(element) {
    element.hidden = false;
    element.addEventListener("click", () => {
      // As text: a number of this script's would lose the last digits of a seed.
      const text = document.getElementById("results").textContent;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
      link.download = `${document.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "report"}.json`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  document.querySelectorAll("table.sortable").forEach(sortable);
  themeButton(document.getElementById("theme"));
  downloadButton(document.getElementById("download"));
})();
