// The page: it takes what the job reports from /events, and shows it as text and charts.
"use strict";

const KEPT = 600;
const $ = (id) => document.getElementById(id);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const text = (id, value) => { $(id).textContent = value; };
const whole = (n) => Math.round(n).toLocaleString("en-US");
const short = (n) => new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 }).format(n);

function bytes(n) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) { n /= 1000; i += 1; }
  return `${i ? n.toFixed(1) : n} ${units[i]}`;
}

function span(seconds) {
  const s = Math.abs(seconds);
  if (s < 1) return `${Math.round(1000 * seconds)} ms`;
  if (s < 120) return `${+seconds.toFixed(1)} s`;
  if (s < 7200) return `${+(seconds / 60).toFixed(1)} min`;
  if (s < 172800) return `${+(seconds / 3600).toFixed(1)} h`;
  return `${+(seconds / 86400).toFixed(1)} days`;
}

function moment(micros) {
  const made = new Date(micros / 1000);
  return Number.isNaN(made.getTime()) ? String(micros) : made.toISOString().replace("T", " ").replace(/\.?0*Z$/, "");
}

const history = { at: [], rate: [], lag: [] };
let charts = [];
let last = null;

// Times of day in UTC, as all times here are.
function clock(u, ticks, axis, space, step) {
  const end = step < 0.1 ? 23 : step < 1 ? 21 : step < 60 ? 19 : 16;
  return ticks.map((t) => (step >= 86400 ? moment(t * 1e6).slice(5, 16) : moment(t * 1e6).slice(11, end)));
}

// An axis is as wide as its longest label.
function wide(u, labels) {
  return Math.max(58, 16 + 8 * Math.max(0, ...(labels ?? []).map((text) => text.length)));
}

function chart(id, values, label, steps) {
  const box = $(id);
  const axis = { stroke: color("--soft"), grid: { stroke: color("--rule"), width: 1 }, ticks: { show: false } };
  const options = {
    width: box.clientWidth, height: 180, legend: { show: false }, cursor: { y: false },
    scales: { y: { range: (u, low, high) => [Math.min(0, low ?? 0), (high ?? 0) > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, space: 90, size: 30, values: clock },
      { ...axis, size: wide, values: (u, ticks) => ticks.map(label), ...(steps && { incrs: steps }) },
    ],
    series: [{}, { stroke: color("--line"), fill: color("--fill"), width: 1.5, points: { show: false } }],
  };
  box.textContent = "";
  return { plot: new uPlot(options, [history.at, values], box), values, box };
}

const STEPS = [0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400];
for (let days = 2; days < 1e5; days *= 2) STEPS.push(days * 86400);

function drawCharts() {
  charts = [chart("rate-chart", history.rate, short), chart("lag-chart", history.lag, span, STEPS)];
}

function showBatches(batches) {
  for (const batch of batches) {
    history.at.push(batch.at);
    history.rate.push(batch.rate);
    history.lag.push(batch.lag);
  }
  for (const column of Object.values(history)) column.splice(0, column.length - KEPT);
  for (const { plot, values } of charts) plot.setData([history.at, values]);
}

function showState(state, since, now) {
  text("what", state);
  $("what").className = state;
  text("since", since ? `for ${span(Math.max(0, now - since))}, since ${moment(since * 1e6)} UTC` : "");
}

function showList(id, items) {
  $(id).replaceChildren(...items.map((item) => {
    const made = document.createElement("li");
    made.textContent = item;
    return made;
  }));
}

function show(made) {
  last = made;
  document.title = `${made.job} · ${made.state} · sash`;
  text("job", made.job);
  showState(made.state, made.since, made.now);
  for (const id of ["message", "note"]) {
    text(id, made[id]);
    $(id).hidden = !made[id];
  }
  text("rows", whole(made.totals.rows));
  text("rate", made.rate === null ? "–" : whole(made.rate));
  text("emitted", whole(made.totals.emitted));
  text("corrections", whole(made.totals.corrections));
  text("watermark", made.watermark === null ? "–" : moment(made.watermark));
  text("lag", made.lag === null ? "–" : made.replay ? "replay" : span(made.lag));
  text("bytes", made.state_bytes === null ? "–" : bytes(made.state_bytes));
  const reasons = Object.entries(made.late);
  text("late", whole(reasons.reduce((sum, [, n]) => sum + n, 0)));
  $("reasons-box").hidden = !reasons.length;
  showList("reasons", reasons.map(([reason, n]) => `${whole(n)}: ${reason}`));
  if (made.explain !== undefined) text("explain", made.explain || "none");
  showBatches(made.batches);
  lateness.show(made.lateness, made.allowance);
  if (made.heat) map.show(made.heat);
}

function redraw() {
  drawCharts();
  lateness.draw();
  map.draw();
}

let width = 0;
addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

function listen() {
  const source = new EventSource("/events");
  let fresh = true;
  source.onopen = () => { fresh = true; };
  source.onmessage = (event) => {
    if (fresh) for (const column of Object.values(history)) column.length = 0;
    fresh = false;
    show(JSON.parse(event.data));
  };
  source.onerror = () => {
    if (last && !["ended", "failed"].includes(last.state)) showState("not connected", 0, 0);
  };
}

width = document.documentElement.clientWidth;
drawCharts();
listen();
