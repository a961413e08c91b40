// The histogram of lateness, and the line that says which lateness is allowed.
"use strict";

const lateness = (() => {
  let counts = null; // rows in order, then those in each bucket
  let allowance = null; // the bucket whose upper bound is allowed; 0 allows none
  let allowed = null; // what the job allows, in seconds
  let moved = false;
  const canvas = document.getElementById("lateness");
  const bound = (i) => (i === 0 ? 0 : 2 ** (i - 1)); // seconds, which bucket i goes up to
  const name = (seconds) => (seconds === 0 ? "0" : span(seconds));
  const room = { left: 8, right: 8, top: 30, bottom: 26 };

  function later(i) {
    return counts.slice(i + 1).reduce((sum, n) => sum + n, 0);
  }

  function spot(seconds) { // where a lateness lies among the bounds
    return seconds < 1 ? seconds : 1 + Math.log2(seconds);
  }

  function place(i, width) { // of the line behind bucket i
    return room.left + ((width - room.left - room.right) * i) / (counts.length - 1);
  }

  function show(given, micros) {
    document.getElementById("lateness-box").hidden = given === null;
    if (given === null) return;
    counts = given;
    if (!moved) {
      // only bounds of buckets have exact counts, so the line starts at the last one within it
      allowance = Math.min(counts.length - 2, Math.floor(spot((micros ?? 0) / 1e6)));
    }
    allowed = micros === null ? null : micros / 1e6;
    draw();
  }

  function say() {
    const n = later(allowance);
    const all = counts.reduce((sum, c) => sum + c, 0);
    const share = all ? ` (${((100 * n) / all).toPrecision(3)} %)` : "";
    text("later", `${whole(n)} of ${whole(all)} rows${share} came more than ${name(bound(allowance))} late`);
    canvas.setAttribute("aria-valuemax", counts.length - 2);
    canvas.setAttribute("aria-valuenow", allowance);
    canvas.setAttribute("aria-valuetext", name(bound(allowance)));
  }

  function draw() {
    if (!counts) return;
    const { pen, width, height } = sized(canvas, 200);
    const most = Math.max(1, ...counts.slice(1));
    const tall = height - room.top - room.bottom;
    const each = place(1, width) - place(0, width);
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    for (let i = 1; i < counts.length; i += 1) {
      const high = counts[i] ? Math.max(2, (tall * Math.log1p(counts[i])) / Math.log1p(most)) : 0;
      pen.fillStyle = color(i > allowance ? "--late" : "--bar");
      pen.fillRect(place(i - 1, width) + 1, room.top + tall - high, each - 2, high);
    }
    pen.fillStyle = color("--rule");
    pen.fillRect(room.left, room.top + tall, width - room.left - room.right, 1);
    pen.fillStyle = color("--soft");
    const step = Math.ceil(52 / each);
    for (let i = 1; i < counts.length - 1; i += step) pen.fillText(name(bound(i)), Math.max(place(i, width), 14), height - 10);
    if (allowed !== null) {
      const at = Math.min(place(spot(allowed), width), width - room.right);
      pen.fillStyle = color("--good");
      for (let y = 0; y < room.top + tall; y += 6) pen.fillRect(at - 0.5, y, 1, 3);
      pen.textAlign = at > width / 2 ? "right" : "left";
      pen.fillText(`the job allows ${name(allowed)}`, at + (at > width / 2 ? -6 : 6), 9);
    }
    const x = place(allowance, width);
    pen.fillStyle = color("--ink");
    pen.fillRect(x - 1, 20, 2, room.top + tall - 20);
    pen.beginPath();
    pen.arc(x, 20, 6, 0, 7);
    pen.fill();
    say();
  }

  function choose(i) {
    if (!counts) return;
    allowance = Math.min(counts.length - 2, Math.max(0, i));
    moved = true;
    draw();
  }

  function drag(event) {
    const box = canvas.getBoundingClientRect();
    choose(Math.round(((event.clientX - box.left - room.left) / (box.width - room.left - room.right)) * (counts.length - 1)));
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag(event);
  });
  canvas.addEventListener("pointermove", (event) => { if (event.buttons) drag(event); });
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (by) { choose(allowance + by); event.preventDefault(); }
  });
  return { show, draw };
})();

// A canvas at the screen's own resolution: its pen, and its size in CSS pixels.
function sized(canvas, height) {
  const width = canvas.parentElement.clientWidth - 24;
  const scale = devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  return { pen, width, height };
}
