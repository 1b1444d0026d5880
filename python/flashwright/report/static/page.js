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

  /** Rows in order of a column; cells without a value stay last either way, unless none of the column has one. */
  function sorted(rows, column, sign) {
    const valued = rows.some((row) => row.cells[column].dataset.value !== undefined);
    const valueOf = (row) => {
      const cell = row.cells[column];
      return (valued ? cell.dataset.value : cell.textContent) || undefined;
    };
    return [...rows].sort((a, b) => {
      const [x, y] = [valueOf(a), valueOf(b)];
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
      const difference = Number(x) - Number(y);
      return sign * (Number.isNaN(difference) ? x.localeCompare(y, "en", { numeric: true }) : difference);
    });
  }

  /** A box for words and a choice a column above a table; charts that a hidden row leads to hide with it. */
  function filtered(table) {
    const rows = [...table.tBodies[0].rows];
    const box = document.createElement("div");
    box.className = "filters";
    const words = document.createElement("input");
    Object.assign(words, { type: "search", placeholder: "Filter by words" });
    words.setAttribute("aria-label", "Filter by words");
    box.append(words);
    const told = (cell) => cell.textContent.trim();
    const choices = [...table.tHead.rows[0].cells].flatMap((head, column) => {
      if (head.dataset.choose === undefined) return [];
      const select = document.createElement("select");
      select.setAttribute("aria-label", told(head));
      select.append(new Option(`${told(head)}: all`, ""));
      const counts = new Map();
      for (const { cells } of rows) counts.set(told(cells[column]), (counts.get(told(cells[column])) ?? 0) + 1);
      for (const [value, count] of counts) select.append(new Option(`${value || "none"} (${count})`, `=${value}`));
      box.append(select);
      return [{ select, column }];
    });
    const status = document.createElement("span");
    status.setAttribute("role", "status");
    box.append(status);
    const wanted = (row) => {
      const text = row.textContent.toLowerCase();
      const said = words.value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
      return said && choices.every(({ select, column }) => !select.value || select.value === `=${told(row.cells[column])}`);
    };
    const linked = (row) => [...row.querySelectorAll("a[href^='#']")].map((link) => link.getAttribute("href").slice(1));
    const apply = () => {
      const shown = rows.filter(wanted);
      const kept = new Set(shown.flatMap(linked));
      rows.forEach((row) => {
        row.hidden = !shown.includes(row);
        for (const id of linked(row)) document.getElementById(id)?.toggleAttribute("hidden", !kept.has(id));
      });
      document.querySelectorAll("section:has(> .charts)").forEach((section) => {
        section.hidden = !section.querySelector(".chart:not([hidden])");
      });
      status.textContent = shown.length < rows.length ? `${shown.length} of ${rows.length}` : `${rows.length} rows`;
    };
    box.addEventListener("input", apply);
    table.parentElement.before(box);
    apply();
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
      const name = document.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "report";
      saveAs(`${name}.json`, text, "application/json");
    });
  }

  // Before sorting puts buttons into headings.
  document.querySelectorAll("table.filtered").forEach(filtered);
  document.querySelectorAll("table.sortable").forEach(sortable);
  themeButton(document.getElementById("theme"));
  downloadButton(document.getElementById("download"));
})();
