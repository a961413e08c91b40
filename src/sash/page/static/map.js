// The heat map: a row for each key, a column for each window.
"use strict";

const map = (() => {
  let heat = null;
  let chosen = null; // the number of a key and the start of a window
  const canvas = document.getElementById("map");
  const ROW = 16;
  const FOOT = 20;

  function mixed(share) {
    const parts = (name) => color(name).match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
    const [low, high] = [parts("--low"), parts("--high")];
    return `rgb(${low.map((from, i) => Math.round(from + (high[i] - from) * share)).join(" ")})`;
  }

  function ends() {
    const all = heat.values.flat().filter((value) => value !== null);
    return all.length ? [Math.min(...all), Math.max(...all)] : [0, 0];
  }

  function layout(width) {
    const label = Math.min(140, Math.max(60, width * 0.22));
    return { label, each: (width - label) / Math.max(1, heat.starts.length) };
  }

  function fitted(pen, name, room) {
    if (pen.measureText(name).width <= room) return name;
    let low = 0;
    let high = name.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (pen.measureText(`${name.slice(0, middle)}…`).width <= room) low = middle;
      else high = middle - 1;
    }
    return `${name.slice(0, low)}…`;
  }

  function show(given) {
    heat = given;
    document.getElementById("map-box").hidden = !heat.keys.length;
    text("map-value", `${heat.value} by ${heat.by.join(", ") || "all rows"}`);
    canvas.setAttribute("aria-label", `${heat.keys.length} keys by ${heat.starts.length} windows`);
    draw();
    if (chosen) open(...chosen);
  }

  function draw() {
    if (!heat || !heat.keys.length) return;
    const { pen, width } = sized(canvas, heat.keys.length * ROW + FOOT);
    const { label, each } = layout(width);
    const [low, high] = ends();
    const colors = Array.from({ length: 65 }, (_, i) => mixed(i / 64));
    const shade = (value) => colors[high > low ? Math.round((64 * (value - low)) / (high - low)) : 32];
    const edge = (j) => label + Math.round(j * each);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    heat.keys.forEach((key, i) => {
      pen.fillStyle = color("--ink");
      pen.fillText(fitted(pen, key, label - 8), 0, i * ROW + ROW / 2);
      heat.values[i].forEach((value, j) => {
        pen.fillStyle = value === null ? color("--none") : shade(value);
        pen.fillRect(edge(j), i * ROW, Math.max(1, edge(j + 1) - edge(j) - (each > 5 ? 1 : 0)), ROW - 1);
      });
    });
    const outline = (i, j, name, by) => {
      pen.strokeStyle = color(name);
      pen.lineWidth = by;
      pen.strokeRect(edge(j) + by / 2, i * ROW + by / 2, Math.max(2, edge(j + 1) - edge(j) - 1 - by), ROW - 1 - by);
    };
    for (const [i, j] of heat.corrected) outline(i, j, "--mark", 1);
    if (chosen) {
      const [i, j] = [heat.numbers.indexOf(chosen[0]), heat.starts.indexOf(chosen[1])];
      if (i >= 0 && j >= 0) outline(i, j, "--ink", 2);
    }
    pen.fillStyle = color("--soft");
    const y = heat.keys.length * ROW + FOOT / 2;
    pen.fillText(moment(heat.starts[0]), label, y);
    pen.textAlign = "right";
    if (heat.starts.length > 1 && width - label > 260) pen.fillText(moment(heat.starts.at(-1)), width, y);
    legend(low, high, colors);
  }

  function legend(low, high, colors) {
    const scale = document.getElementById("map-scale");
    const pen = scale.getContext("2d");
    colors.forEach((shade, i) => {
      pen.fillStyle = shade;
      pen.fillRect((i * scale.width) / 65, 0, scale.width / 65 + 1, scale.height);
    });
    text("map-low", short(low));
    text("map-high", short(high));
  }

  async function open(number, start) {
    const answer = await fetch(`/cell?key=${number}&start=${start}`);
    if (!answer.ok) return;
    const cell = await answer.json();
    document.getElementById("cell").hidden = false;
    text("cell-title", `${cell.key}, window from ${moment(cell.start)}`);
    document.getElementById("cell-revisions").replaceChildren(...cell.revisions.map((made) => {
      const row = document.createElement("tr");
      for (const value of [made.revision, made.value === null ? "none" : made.value.toLocaleString("en-US")]) {
        row.appendChild(document.createElement("td")).textContent = value;
      }
      return row;
    }));
    text("cell-late-title", cell.late.length ? `${whole(cell.late.length)} late row(s) missed it` : "No late row missed it.");
    showList("cell-late", cell.late);
  }

  canvas.addEventListener("click", (event) => {
    if (!heat) return;
    const box = canvas.getBoundingClientRect();
    const { label, each } = layout(box.width);
    const i = Math.floor((event.clientY - box.top) / ROW);
    const j = Math.floor((event.clientX - box.left - label) / each);
    if (i < 0 || i >= heat.keys.length || j < 0 || j >= heat.starts.length) return;
    if (heat.values[i][j] === null) return;
    chosen = [heat.numbers[i], heat.starts[j]];
    draw();
    open(...chosen);
  });
  return { show, draw };
})();
