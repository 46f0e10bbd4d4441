const data = JSON.parse(document.getElementById("levin-data").textContent);
const $ = (id) => document.getElementById(id);
const value = (v) => typeof v === "number" ? v : v === "Infinity" ? Infinity : v === "-Infinity" ? -Infinity : NaN;
const WORDS = {acc: "Accuracy", lr: "Learning rate", f1: "F1", auroc: "AUROC", auc: "AUROC", ppl: "Perplexity",
  steps_per_second: "Throughput (steps/s)"};

// "val_loss_epoch" is the epoch form of the curve "loss" of the split "val".
function parts(name) {
  const m = /^(?:(train|val|validation|test)[_\/])?(.+?)(?:_(step|epoch))?(\/dataloader_idx_\d+)?$/.exec(name);
  if (/^lr-/.test(name)) return {stem: "lr", label: name.slice(3), epoch: false};
  const split = m[1] === "validation" ? "val" : m[1] || "";
  const label = (split || m[2].replaceAll("_", " ")) + (m[3] === "epoch" ? " (epoch)" : "") + (m[4] || "");
  return {stem: m[2], split, label, epoch: m[3] === "epoch" || split === "val" || split === "test"};
}
function title(stem) {
  const s = WORDS[stem] || stem.replace(/[_\/]+/g, " ");
  return s.charAt(0).toUpperCase() + s.slice(1);
}
function rank(stem) {
  const order = ["loss", "acc", "accuracy"], i = order.findIndex((o) => stem === o);
  if (i >= 0) return i;
  if (/loss/.test(stem)) return 3;
  return stem === "lr" ? 90 : /per_second|throughput|samples_per|wait|memory/.test(stem) ? 91 : 50;
}
const smaller = (name) => /loss|error|mse|mae|ppl|perplexity|entropy/.test(name);

function section(id, filled) { $(id).hidden = !filled; return filled; }

function drawTop() {
  $("title").textContent = data.title;
  const s = $("status");
  s.textContent = {running: "Running", success: "Finished", interrupted: "Interrupted", failed: "Failed"}[data.status];
  s.className = "pill " + data.status;
  const facts = [];
  if (data.epoch !== null) facts.push(["Epoch", group(data.epoch + 1)], ["Step", group(data.step)]);
  facts.push(["Time", clock(data.seconds)], ["Started", data.started]);
  $("facts").append(...facts.map(([k, v]) => el("span", {}, k + " ", el("b", {textContent: v}))));
  $("written").textContent = `Written ${data.written} by Levin ${data.levin}. This file needs nothing else.`;
  if (data.status !== "running") return;
  let on = false;
  try { on = sessionStorage.getItem("levin-live") === "1"; } catch { /* no storage for files */ }
  const b = el("button", {type: "button", className: "small", textContent: on ? "Following" : "Follow",
    title: "Load this page again every 10 seconds"});
  b.setAttribute("aria-pressed", on);
  b.onclick = () => {
    try { sessionStorage.setItem("levin-live", on ? "0" : "1"); } catch { /* then once only */ }
    location.reload();
  };
  s.after(b);
  if (on) setTimeout(() => location.reload(), 10000);
}

function drawTiles() {
  const named = data.series.filter((s) => s.y.length && !/^lr-|per_second/.test(s.name));
  const first = ["test", "val", "train", ""].flatMap((split) => named.filter((s) => parts(s.name).split === split));
  if (!section("summary", first.length)) return;
  for (const s of first.slice(0, 8)) {
    const y = s.y.map(value), low = smaller(s.name);
    let at = 0;
    y.forEach((v, i) => { if (low ? v < y[at] : v > y[at]) at = i; });
    const best = `${low ? "lowest" : "highest"} ${num(y[at])} at ${group(s.x[at])}`;
    $("tiles").append(el("div", {className: "card tile"},
      el("div", {className: "name", textContent: s.name, title: s.name}),
      el("div", {className: "value", textContent: num(y[y.length - 1])}),
      el("div", {className: "best", textContent: y.length > 1 ? best : `at step ${group(s.x[0])}`})));
  }
}

function drawCharts() {
  const charts = new Map();
  for (const s of data.series) {
    const p = parts(s.name);
    if (!charts.has(p.stem)) charts.set(p.stem, []);
    const list = charts.get(p.stem);
    list.push({label: p.label, x: s.x, e: s.e, t: s.t, y: s.y.map(value), thick: p.epoch, color: list.length % 8});
  }
  const stems = [...charts.keys()].sort((a, b) => rank(a) - rank(b));
  const made = stems.map((stem) => new Chart($("charts"), title(stem), charts.get(stem), {}));
  for (const c of data.curves)
    made.push(new Chart($("charts"), c.name, [{label: c.y_label, x: c.x, y: c.y.map(value), color: 0}],
      {fixedX: c.x_label, logX: c.log_x, mark: c.mark}));
  $("tools").hidden = $("chart-hint").hidden = !stems.length;
  if (!made.length)
    $("charts").append(el("div", {className: "card empty wide"}, el("strong", {textContent: "No values yet"}),
      "The curves begin with the first logged step."));
  $("smooth").oninput = () => {
    Chart.smooth = +$("smooth").value;
    $("smooth-value").textContent = Chart.smooth ? Chart.smooth.toFixed(2) : "off";
    made.forEach((c) => c.draw());
  };
  for (const b of document.querySelectorAll("[data-axis]"))
    b.onclick = () => {
      Chart.axis = b.dataset.axis;
      document.querySelectorAll("[data-axis]").forEach((o) => o.setAttribute("aria-pressed", o === b));
      made.forEach((c) => { if (!c.fixedX) c.zoomTo(null); });
    };
}

// A series of records under one name, with a slider over its steps.
function byName(list) {
  const names = new Map();
  for (const item of list) names.set(item.name, [...(names.get(item.name) || []), item]);
  return names;
}
function stepper(items, show) {
  const caption = el("span"), slider = el("input", {type: "range", min: 0, max: items.length - 1});
  slider.setAttribute("aria-label", "Step");
  const go = () => {
    const it = items[+slider.value];
    caption.textContent = "Step " + group(it.step);
    show(it);
  };
  slider.oninput = go;
  slider.value = items.length - 1;
  go();
  return el("div", {className: "stepper"}, caption, items.length > 1 ? slider : null);
}
function drawImages() {
  if (!section("images", data.images.length)) return;
  for (const [name, items] of byName(data.images)) {
    const img = el("img", {alt: name});
    const steps = stepper(items, (it) => {
      img.width = it.width;
      img.height = it.height;
      img.src = "data:image/png;base64," + it.png;
    });
    $("image-list").append(el("figure", {className: "card"}, el("h3", {textContent: name}), img, steps));
  }
}

function drawMatrices() {
  if (!section("confusion", data.matrices.length)) return;
  for (const [name, items] of byName(data.matrices)) {
    const says = el("p"), table = el("table"), mistakes = el("ol"), mixed = el("div", {className: "mixed"},
      el("h4", {textContent: "Most frequent mistakes"}), mistakes);
    const steps = stepper(items, (it) => {
      fillMatrix(table, says, it);
      mixed.hidden = !fillMistakes(mistakes, it);
    });
    $("matrices").append(el("article", {className: "card matrix"}, el("h3", {textContent: name}), says,
      el("div", {className: "sides"}, el("div", {className: "scroll"}, table), mixed), steps));
  }
}
function fillMatrix(table, says, it) {
  const c = it.rows.length, label = (i) => it.labels[i] ?? String(i);
  const all = it.rows.flat().reduce((a, b) => a + b, 0), right = it.rows.reduce((a, r, i) => a + r[i], 0);
  const whole = it.rows.flat().every(Number.isInteger);
  const rest = all ? `${num(right / all * 100)} % on the diagonal; rows are true, columns predicted.` : "No samples.";
  says.textContent = rest;
  const head = el("tr", {}, el("th", {className: "corner"}));
  for (let j = 0; j < c; ++j) head.append(el("th", {title: label(j)}, el("span", {textContent: label(j)})));
  const body = el("tbody");
  it.rows.forEach((row, i) => {
    const sum = row.reduce((a, b) => a + b, 0);
    const tr = el("tr", {}, el("th", {textContent: label(i), title: label(i), scope: "row"}));
    row.forEach((n, j) => {
      const share = sum ? n / sum : 0, text = c > 20 ? "" : whole ? short(n) : n.toFixed(2);
      const td = el("td", {tabIndex: 0, textContent: n ? text : ""});
      td.style.background = n ? `rgba(var(--heat),${(0.08 + 0.87 * share).toFixed(3)})` : "var(--soft)";
      if (share > 0.5) td.style.color = "#fff";
      const what = i === j ? "recognised" : "taken for " + label(j);
      const told = `${label(i)} ${what}: ${num(n)} of ${num(sum)} (${num(share * 100)} %)`;
      td.title = told;
      td.onmouseenter = td.onfocus = () => { says.textContent = told; };
      td.onmouseleave = td.onblur = () => { says.textContent = rest; };
      tr.append(td);
    });
    body.append(tr);
  });
  table.style.minWidth = c > 12 ? c * 22 + 90 + "px" : "0";
  table.replaceChildren(el("thead", {}, head), body);
}

function fillMistakes(list, it) {
  const found = it.rows.flatMap((row, i) => row.map((n, j) => [n, i, j, row.reduce((a, b) => a + b, 0)]))
    .filter(([n, i, j]) => i !== j && n > 0).sort((a, b) => b[0] - a[0]).slice(0, 6);
  const label = (i) => it.labels[i] ?? String(i);
  list.replaceChildren(...found.map(([n, i, j, sum]) => el("li", {}, el("span", {}, el("b", {textContent: label(i)}),
    " taken for ", el("b", {textContent: label(j)})), el("i", {style: `--share:${100 * n / found[0][0]}%`}),
    el("em", {textContent: `${num(n)} of ${num(sum)}`}))));
  return found.length;
}

function drawModel() {
  const m = data.model;
  if (!section("model", m)) return;
  const number = (text) => el("td", {className: "num", textContent: text});
  const cell = (text) => el("td", {textContent: text});
  const head = ["Name", "Type", "Parameters", "Share"];
  const rows = m.rows.map((r) => el("tr", {},
    el("td", {style: `padding-left:${18 + 16 * (r.depth - 1)}px`}, el("code", {textContent: r.name})), cell(r.type),
    number(r.parameters ? group(r.parameters) + (r.trainable ? "" : " (frozen)") : "\u2013"),
    el("td", {className: "share"},
      r.parameters ? el("i", {style: `width:${100 * r.parameters / m.parameters}%`}) : null)));
  const part = m.trainable < m.parameters ? `, ${group(m.trainable)} trainable` : "";
  const foot = el("tr", {}, cell(m.type), cell(num(m.megabytes) + " MB" + part), number(group(m.parameters)),
    el("td", {className: "share"}));
  $("modules").append(el("thead", {}, el("tr", {}, ...head.map((t, i) => el("th", {textContent: t,
    className: ["", "", "num", "share"][i]})))), el("tbody", {}, ...rows), el("tfoot", {}, foot));
}

function drawPairs(id, list, pairs) {
  if (section(id, pairs.length))
    $(list).append(...pairs.map(([k, v]) => el("div", {}, el("dt", {textContent: k}), el("dd", {textContent: v}))));
}
function drawTexts() {
  if (!section("texts", data.texts.length)) return;
  for (const t of data.texts)
    $("notes").append(el("article", {className: "card note"},
      el("h3", {textContent: `${t.name}, step ${group(t.step)}`}), el("pre", {textContent: t.text})));
}
function drawNavigation() {
  for (const s of document.querySelectorAll("main > section:not([hidden])"))
    if (s.id !== "summary")
      $("nav").append(el("a", {href: "#" + s.id, textContent: s.querySelector("h2").textContent}));
}

drawTop();
drawTiles();
drawCharts();
drawImages();
drawMatrices();
drawModel();
drawTexts();
drawPairs("configuration", "hparams", data.hyperparameters);
drawPairs("environment", "env", data.environment);
drawNavigation();
