"use strict";
// Plays the film. In frame f every warp is at its last step whose frame is at most f.
const film = JSON.parse(document.getElementById("film").textContent);
const $ = (id) => document.getElementById(id);
const make = (tag, parent, text) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; parent.append(e); return e; };
const has = (mask, lane) => (mask >>> lane) & 1;
const count = (mask) => { let n = 0; for (; mask; mask &= mask - 1) n++; return n; };
const many = (n, one, more) => `${n} ${n === 1 ? one : more || one + "s"}`;
const lanesOf = (mask) => [...Array(32).keys()].filter((lane) => has(mask, lane));
const existing = (warp) => Math.min(32, film.threads - 32 * warp);

// ---- what happens when
const index = film.warps.map((steps) => {  // for each frame, the warp's step then; -1 before its first
  const at = new Int32Array(film.frames);
  let s = -1;
  for (let f = 0; f < film.frames; f++) { while (s + 1 < steps.length && steps[s + 1].f <= f) s++; at[f] = s; }
  return at;
});
const stateOf = (warp, frame) => {
  const steps = film.warps[warp], s = index[warp][frame], step = steps[s], next = steps[s + 1];
  if (step && step.f === frame) return { step, acts: true };
  if (next && next.k === "barrier") return { step: next, waits: true };
  return { step, over: !next };
};
const sums = (() => {  // the counters after each frame
  const out = [], now = { shared: 0, passes: 0, least: 0, global: 0, sectors: 0, needed: 0, barriers: 0, meets: 0, races: 0, active: 0, lanes: 0 };
  for (let f = 0; f < film.frames; f++) {
    let barrier = 0;
    film.warps.forEach((steps, w) => {
      const { step, acts } = stateOf(w, f);
      if (!acts) return;
      now.active += count(step.m);
      now.lanes += existing(w) - count(step.e);
      if (step.k === "barrier") barrier = 1;
      if (step.k === "warp") now.meets++;
      const a = step.a;
      if (a && a.s !== undefined) { now.shared++; now.passes += a.c; now.least += a.n; now.races += a.r.length ? 1 : 0; }
      if (a && a.g !== undefined) { now.global++; now.sectors += a.c; now.needed += a.n; }
    });
    now.barriers += barrier;
    out.push({ ...now });
  }
  return out;
})();

// ---- the fixed parts of the page
let frame = 0, timer = 0, chosen = -1;
$("title").textContent = film.title;
make("code", $("title"), film.kernel);
$("caption").textContent = film.caption;
$("lanes-note").textContent = `${many(film.warps.length, "warp")} of 32; choose a warp to see its accesses alone`;

const rows = film.warps.map((_, w) => {
  const row = make("div", $("lanes"));
  row.className = "warp";
  const name = make("button", row, `warp ${w}`);
  name.setAttribute("aria-pressed", "false");
  name.onclick = () => { chosen = chosen === w ? -1 : w; show(frame); };
  const cells = make("div", row);
  cells.className = "row";
  const lanes = [...Array(32).keys()].map((lane) => { const i = make("i", cells); i.title = `lane ${lane}, thread ${32 * w + lane}`; return i; });
  return { name, lanes, text: make("p", row) };
});
for (const [kind, text] of [["run", "computes"], ["read", "reads"], ["write", "writes"], ["meet", "exchanges registers"],
  ["wait", "waits for lanes in another branch"], ["barrier", "at a barrier"], ["ended", "has ended"]]) {
  if (kind === "meet" && !sums[film.frames - 1].meets) continue;
  const span = make("span", $("lanes-legend"));
  make("i", span).className = kind;
  span.append(text);
}

const placeOf = (array, word) =>
  array.columns ? `[${Math.floor(word / array.columns)}][${word % array.columns}]` : `[${word}]`;
const sizeOf = ({ bytes, columns }) => columns ? `${bytes / 4 / columns} × ${columns} elements` : many(bytes / 4, "element");
const arrays = film.arrays.map((array) => {
  const box = make("div", $("shared")), words = Math.ceil(array.bytes / 4), cells = [];
  box.className = "array" + (words > 512 ? " many" : "");
  const title = make("h3", box, array.name + " ");
  make("small", title, sizeOf(array));
  make("span", box, "bank");
  const head = make("div", box);
  head.className = "row banks";
  const banks = [...Array(32).keys()].map((b) => make("i", head, b));
  for (let first = 0; first < words; first += 32) {
    make("span", box, words > 512 && first % 256 ? "" : placeOf(array, first)).className = "name";
    const row = make("div", box);
    row.className = "row words";
    for (let word = first; word < first + 32; word++) {
      const cell = make("i", row);
      if (word >= words) { cell.className = "none"; continue; }
      cell.onmouseenter = cell.onclick = () => { told = [array, word]; tell(); };
      cells.push(cell);
    }
  }
  return { array, banks, cells, values: new Array(words), writers: new Array(words), until: -1 };
});
if (!arrays.length) $("shared-part").hidden = true;

const buffers = film.buffers.map((buffer) => {
  const box = make("div", $("global")), sectors = Math.ceil(buffer.bytes / 32);
  box.className = "buffer";
  const text = make("p", box), row = make("div", box);
  row.className = "row";
  return { buffer, text, cells: [...Array(sectors).keys()].map(() => make("i", row)) };
});

let file = "";
const lines = film.lines.map((line, i) => {
  if (line.file !== file) make("h3", $("code"), line.file);
  else if (line.n > film.lines[i - 1].n + 1) make("div", $("code"), "⋯").className = "gap";
  file = line.file;
  const row = make("div", $("code"));
  row.className = "src";
  make("span", row, line.n);
  const where = make("b", row);
  const code = make("span", row, line.t.trimStart()), indent = line.t.length - line.t.trimStart().length;
  code.style.paddingLeft = `${indent + 4}ch`;
  code.style.textIndent = "-4ch";
  return { row, where };
});

(function drawTime() {  // active lanes as bars, conflicts as red, barriers as yellow
  const svg = $("line"), top = 20, draw = (x, y, h, colour) => {
    const r = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [k, v] of Object.entries({ x, y, width: 0.92, height: h })) r.setAttribute(k, v);
    r.style.fill = `var(--${colour})`;
    svg.append(r);
  };
  svg.setAttribute("viewBox", `0 0 ${film.frames} ${top}`);
  for (let f = 0; f < film.frames; f++) {
    let active = 0, bad = false, barrier = false;
    film.warps.forEach((_, w) => {
      const { step, acts } = stateOf(w, f);
      if (!acts) return;
      active += count(step.m);
      barrier = barrier || step.k === "barrier";
      bad = bad || (step.a && (step.a.r.length > 0 || step.a.c > step.a.n));
    });
    const h = Math.max(1, active / film.threads * top);
    draw(f, top - h, h, barrier ? "barrier" : bad ? "bad" : "run");
  }
  const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  mark.id = "mark";
  for (const [k, v] of Object.entries({ y: 0, width: 1, height: top })) mark.setAttribute(k, v);
  mark.style.cssText = "fill: var(--ink); opacity: .35";
  svg.append(mark);
})();

// ---- one frame
const sentence = (warp, { step, acts, waits, over }) => {
  if (waits) return "waits at the barrier";
  if (over && !acts) return "has ended";
  if (!step) return "";
  if (step.k === "barrier") return "passes the barrier";
  const n = count(step.m), some = n < existing(warp) - count(step.e) ? `${many(n, "lane")}: ` : "";
  if (step.k === "warp") return some + "exchanges registers";
  const a = step.a;
  if (!a) return some + (some ? "compute" : "computes");
  const verb = (a.w ? "write" : "read") + (some ? "" : "s");
  const name = a.s !== undefined ? film.arrays[a.s].name : film.buffers[a.g].name;
  if (a.g !== undefined) return `${some}${verb} ${name}, ${many(a.c, "sector")}`;
  const cost = a.r.length ? "race" : a.c > a.n ? `${a.c / a.n}-way conflict` : "";
  return [`${some}${verb} ${name}`, cost];
};

const showLanes = (states) => states.forEach((state, w) => {
  const { step, acts, waits, over } = state, row = rows[w];
  row.name.setAttribute("aria-pressed", chosen === w);
  row.lanes.forEach((cell, lane) => {
    let kind = "wait";
    if (lane >= existing(w)) kind = "ended";
    else if (over && !acts) kind = "ended";
    else if (waits) kind = "barrier";
    else if (!step || has(step.e, lane)) kind = step ? "ended" : "";
    else if (has(step.m, lane)) kind = step.k === "barrier" ? "barrier" : step.k === "warp" ? "meet" : step.a ? (step.a.w ? "write" : "read") : "run";
    cell.className = kind;
  });
  const text = sentence(w, state);
  row.text.textContent = Array.isArray(text) ? text[0] : text;
  if (Array.isArray(text) && text[1]) { row.text.append(": "); make("b", row.text, text[1]); }
});

const format = (v) => {
  if (v === null) return "NaN";
  return String(Math.round(v * 100) / 100);
};
const applyWrites = (box, until) => {  // the memory's contents after that frame
  if (box.until > until) { box.values.fill(undefined); box.writers.fill(undefined); box.until = -1; }
  for (let f = box.until + 1; f <= until; f++) {
    film.warps.forEach((_, w) => {
      const { step, acts } = stateOf(w, f);
      if (!acts || !step.a || !step.a.w || step.a.s !== arrays.indexOf(box)) return;
      lanesOf(step.m).forEach((lane, k) => {
        const word = step.a.o[k] / 4;
        box.values[word] = step.a.v ? step.a.v[k] : undefined;
        box.writers[word] = `written by lane ${lane} of warp ${w} in step ${f + 1}`;
      });
    });
  }
  box.until = until;
};
let told = null;
const tell = () => {
  if (!told) { $("told").textContent = "Point at a word to read its value."; return; }
  const [array, word] = told, box = arrays.find((a) => a.array === array), v = box.values[word];
  $("told").textContent = `${array.name}${placeOf(array, word)} lies in bank ${word % 32}: ` +
    (box.writers[word] ? `${v === undefined ? "" : format(v) + ", "}${box.writers[word]}` : "not written yet");
};

const showShared = (states) => {
  let worst = 0, conflicts = 0, races = 0;
  arrays.forEach((box, number) => {
    applyWrites(box, frame);
    const kinds = new Array(box.cells.length), raced = new Set(), passes = new Array(32).fill(0);
    states.forEach(({ step, acts }, w) => {
      if (!acts || !step.a || step.a.s !== number || (chosen >= 0 && chosen !== w)) return;
      const a = step.a, used = [...Array(32)].map(() => new Set());
      a.o.forEach((offset) => {
        for (let word = offset >> 2; 4 * word < offset + a.b; word++) { kinds[word] = a.w ? "write" : "read"; used[word % 32].add(word); }
      });
      a.r.forEach((word) => raced.add(word));
      used.forEach((words, b) => { passes[b] = Math.max(passes[b], Math.ceil(words.size / Math.max(1, a.b / 4))); });
      worst = Math.max(worst, a.c / a.n);
      conflicts += a.c - a.n;
      races += a.r.length;
    });
    box.cells.forEach((cell, word) => {
      const text = box.writers[word] && box.values[word] !== undefined ? format(box.values[word]) : "";
      const kind = kinds[word] || (box.writers[word] ? "full" : "");
      cell.className = kind + (raced.has(word) ? " race" : "") + (text.length > 2 ? " long" : "");
      cell.textContent = text;
    });
    box.banks.forEach((cell, b) => {
      cell.className = passes[b] > 1 ? "hot" : passes[b] ? "busy" : "";
      cell.textContent = passes[b] > 1 ? passes[b] : b;
    });
  });
  const note = $("shared-note");
  note.textContent = races ? `${many(races, "word")} in a race: another thread uses it without a barrier between`
    : conflicts ? `bank conflicts: up to ${worst} words of one bank, which come one after the other`
      : "32 banks, each of which gives one word of 4 bytes at a time";
  note.style.color = races || conflicts ? "var(--bad)" : "";
  tell();
};

const showGlobal = (states) => buffers.forEach((box, number) => {
  const share = new Array(box.cells.length).fill(0);
  let sectors = 0, needed = 0, requests = 0, out = false;
  states.forEach(({ step, acts }, w) => {
    if (!acts || !step.a || step.a.g !== number || (chosen >= 0 && chosen !== w)) return;
    const own = new Array(share.length).fill(0);
    step.a.o.forEach((offset) => { own[Math.floor(offset / 32)] += step.a.b / 32; });
    own.forEach((part, s) => { share[s] = Math.max(share[s], Math.min(1, part)); });
    sectors += step.a.c;
    needed += step.a.n;
    requests++;
    out = out || step.a.w === 1;
  });
  box.cells.forEach((cell, s) => {
    cell.className = share[s] ? (out ? "touched out" : "touched") : "";
    cell.style.setProperty("--share", share[s]);
  });
  box.text.textContent = "";
  make("span", box.text, box.buffer.name + " ");
  make("small", box.text, sizeOf(box.buffer));
  if (!requests) return;
  box.text.append(`: ${many(requests, "warp")} ${out ? (requests === 1 ? "writes" : "write") : (requests === 1 ? "reads" : "read")} ${many(sectors, "sector")}`);
  if (sectors > needed) make("b", box.text, `, where ${needed} would hold the bytes`);
});

const showCode = (states) => {
  const at = new Map();
  states.forEach(({ step, over, acts }, w) => {
    if (!step || (over && !acts)) return;
    at.set(step.l, [...(at.get(step.l) || []), w]);
  });
  let first = null;
  lines.forEach(({ row, where }, l) => {
    const warps = at.get(l) || [];
    row.className = warps.length ? "src now" : "src";
    const last = warps[warps.length - 1];
    where.textContent = warps.length === film.warps.length && last > 0 ? "all" : warps.length < 2 || last - warps[0] >= warps.length
      ? warps.join(",") : `${warps[0]}–${last}`;
    if (warps.length && !first) first = row;
  });
  const box = $("code");
  if (first && (first.offsetTop < box.scrollTop || first.offsetTop + 60 > box.scrollTop + box.clientHeight)) {
    box.scrollTop = first.offsetTop - 60;
  }
};

const showTotals = () => {
  const now = sums[frame], all = sums[film.frames - 1], list = $("totals");
  list.textContent = "";
  const row = (name, a, b, bad) => { make("dt", list, name); make("dd", list, `${a} of ${b}`).className = bad ? "bad" : ""; };
  const percent = (s) => s.lanes ? `${Math.round(100 * s.active / s.lanes)} %` : "0 %";
  if (all.shared) {
    row("accesses of warps to shared memory", now.shared, all.shared);
    row("passes of the banks for them", now.passes, all.passes);
    row("of these, through bank conflicts", now.passes - now.least, all.passes - all.least, now.passes > now.least);
  }
  row("accesses of warps to global memory", now.global, all.global);
  row("sectors of 32 bytes for them", now.sectors, all.sectors);
  row("of these, not needed if lanes were neighbours", now.sectors - now.needed, all.sectors - all.needed, now.sectors > now.needed);
  row("barriers", now.barriers, all.barriers);
  if (all.meets) row("exchanges of registers", now.meets, all.meets);
  if (all.races) row("accesses in a race", now.races, all.races, now.races > 0);
  make("dt", list, "active lanes, of those that have not ended");
  make("dd", list, `${percent(now)}, whole run ${percent(all)}`);
};

function show(f) {
  frame = Math.max(0, Math.min(film.frames - 1, f));
  const states = film.warps.map((_, w) => stateOf(w, frame));
  showLanes(states);
  showShared(states);
  showGlobal(states);
  showCode(states);
  showTotals();
  $("slider").value = frame;
  $("count").textContent = `step ${frame + 1} of ${film.frames}`;
  $("mark").setAttribute("x", frame);
}

// ---- playing
const face = (name, shape) => {
  $("play").innerHTML = `<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${shape}"/></svg>`;
  $("play").setAttribute("aria-label", name);
};
const pause = () => { clearInterval(timer); timer = 0; face("Play", "M4 2v12l9-6z"); };
const play = () => {
  if (frame === film.frames - 1) show(0);
  face("Pause", "M3 2h4v12H3zM9 2h4v12H9z");
  clearInterval(timer);
  timer = setInterval(() => { if (frame === film.frames - 1) pause(); else show(frame + 1); }, 1000 / $("speed").value);
};
const step = (f) => { pause(); show(f); };
$("play").onclick = () => timer ? pause() : play();
$("first").onclick = () => step(0);
$("back").onclick = () => step(frame - 1);
$("next").onclick = () => step(frame + 1);
$("speed").onchange = () => { if (timer) play(); };
$("slider").max = film.frames - 1;
$("slider").oninput = (e) => step(Number(e.target.value));
addEventListener("keydown", (e) => {
  if (e.target.tagName === "SELECT" || e.ctrlKey || e.metaKey || e.altKey) return;
  const jobs = { ArrowRight: () => step(frame + 1), ArrowLeft: () => step(frame - 1), Home: () => step(0), End: () => step(film.frames - 1) };
  if (e.key === " " && e.target.tagName !== "BUTTON") jobs[" "] = () => $("play").click();
  if (!jobs[e.key]) return;
  jobs[e.key]();
  e.preventDefault();
});
const fromAddress = () => show((Number(location.hash.slice(1)) || 1) - 1);  // film.html#12 opens at step 12
addEventListener("hashchange", fromAddress);
pause();
fromAddress();
