"use strict";
const NS = "http://www.w3.org/2000/svg";
function el(tag, props, ...kids) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (k in e && k !== "style") e[k] = v; else e.setAttribute(k, v);
  }
  e.append(...kids.filter((k) => k !== null));
  return e;
}
function shape(tag, props, parent) {
  const e = document.createElementNS(NS, tag);
  for (const [k, v] of Object.entries(props)) e.setAttribute(k, v);
  parent.append(e);
  return e;
}
const group = (n) => n.toLocaleString("en-US");
function num(v) {
  if (v === null || Number.isNaN(v)) return "NaN";
  if (!Number.isFinite(v)) return v > 0 ? "\u221e" : "\u2212\u221e";
  const a = Math.abs(v);
  if (a !== 0 && (a < 1e-3 || a >= 1e7)) return v.toExponential(2).replace("e+", "e");
  if (Number.isInteger(v)) return group(v);
  return a >= 1000 ? group(Math.round(v)) : v.toPrecision(4);
}
function short(v) {
  const a = Math.abs(v);
  if (a >= 1e4) for (const [s, u] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (a >= s) return +(v / s).toFixed(2) + u;
  if (a !== 0 && a < 1e-3) return v.toExponential(1).replace(".0e", "e");
  return String(+v.toPrecision(4));
}
function clock(s) {
  if (s < 60) return s < 10 ? s.toFixed(1) + " s" : Math.round(s) + " s";
  const t = Math.round(s), two = (n) => String(n).padStart(2, "0");
  const minutes = Math.floor(t / 60);
  return t < 3600 ? `${minutes}:${two(t % 60)} min` : `${Math.floor(t / 3600)}:${two(minutes % 60)} h`;
}
function ticks(lo, hi, count) {
  const raw = (hi - lo) / count, power = 10 ** Math.floor(Math.log10(raw)), r = raw / power;
  const step = (r < 1.5 ? 1 : r < 3.5 ? 2 : r < 7.5 ? 5 : 10) * power, out = [];
  for (let v = Math.ceil(lo / step - 1e-9) * step; v <= hi + step * 1e-9; v += step)
    out.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return out;
}
function powers(lo, hi) {
  const out = [];
  for (let p = Math.ceil(Math.log10(lo) - 1e-9); p <= Math.log10(hi) + 1e-9; ++p) out.push(10 ** p);
  return out.length > 1 ? out : ticks(lo, hi, 4).filter((v) => v > 0);
}

// One card with curves. Series have label, color, x and t (step and seconds), y, and `thick` for values of epochs.
class Chart {
  constructor(host, title, series, options) {
    Object.assign(this, {series, zoom: null, log: false, hidden: new Set(), at: null, drag: null}, options);
    this.options = options;
    this.reset = el("button", {type: "button", className: "small", hidden: true, textContent: "Reset zoom",
      onclick: () => this.zoomTo(null)});
    this.logButton = el("button", {type: "button", className: "small", title: "Logarithmic vertical axis",
      onclick: () => { this.log = !this.log; this.draw(); }}, "log");
    this.svg = document.createElementNS(NS, "svg");
    this.svg.setAttribute("tabindex", "0");
    this.svg.setAttribute("role", "img");
    this.svg.setAttribute("aria-label", title + ": " + series.map((s) => s.label).join(", "));
    this.tip = el("div", {className: "tip", hidden: true});
    this.live = el("div", {className: "skip", "aria-live": "polite"});
    this.legend = el("div", {className: "legend"});
    this.card = el("article", {className: "card chart"},
      el("div", {className: "chart-head"}, el("h3", {textContent: title}), this.reset, this.logButton),
      this.svg, this.legend, this.tip, this.live);
    host.append(this.card);
    this.makeLegend();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.svg);
    this.draw();
  }
  makeLegend() {
    this.series.forEach((s, i) => {
      const last = s.y.length ? num(s.y[s.y.length - 1]) : "\u2013";
      const b = el("button", {type: "button", title: "Show or hide", onclick: () => {
        this.hidden.has(i) ? this.hidden.delete(i) : this.hidden.add(i);
        b.setAttribute("aria-pressed", !this.hidden.has(i));
        this.draw();
      }}, el("i", {style: `background:var(--c${s.color})`}), s.label, el("b", {textContent: last}));
      b.setAttribute("aria-pressed", "true");
      this.legend.append(b);
    });
  }
  xs(s) { return Chart.axis === "time" && s.t ? s.t : s.x; }
  shown() { return this.series.filter((_, i) => !this.hidden.has(i)); }
  extent() {
    let lo = Infinity, hi = -Infinity;
    for (const s of this.series) for (const v of this.xs(s)) { if (v < lo) lo = v; if (v > hi) hi = v; }
    if (lo > hi) return [0, 1];
    return lo === hi ? [lo - 0.5, hi + 0.5] : [lo, hi];
  }
  smoothed(s) {
    const w = Chart.smooth;
    if (!w || s.thick || s.y.length < 3) return null;
    const out = [];
    let mean = 0, norm = 0;
    for (const v of s.y) {
      if (v === null || !Number.isFinite(v)) { out.push(v); continue; }
      mean = mean * w + v * (1 - w);
      norm = norm * w + 1 - w;
      out.push(mean / norm);
    }
    return out;
  }
  yRange([x0, x1]) {
    let lo = Infinity, hi = -Infinity;
    for (const s of this.shown()) {
      const x = this.xs(s);
      for (let i = 0; i < x.length; ++i) {
        const v = s.y[i];
        if (x[i] < x0 || x[i] > x1 || v === null || !Number.isFinite(v) || (this.log && v <= 0)) continue;
        if (v < lo) lo = v;
        if (v > hi) hi = v;
      }
    }
    if (lo > hi) return this.log ? [0.1, 1] : [0, 1];
    if (this.log) return [lo / 1.15, hi * 1.15];
    const pad = (hi - lo || Math.abs(hi) || 1) * 0.07;
    return [lo >= 0 && lo - pad < 0 ? 0 : lo - pad, hi + pad];
  }
  draw() {
    const w = this.svg.clientWidth, h = this.svg.clientHeight;
    if (!w) return;
    this.logButton.setAttribute("aria-pressed", this.log);
    this.reset.hidden = !this.zoom;
    this.svg.replaceChildren();
    const dx = this.zoom || this.extent(), dy = this.yRange(dx);
    const ty = this.log ? powers(dy[0], dy[1]) : ticks(dy[0], dy[1], 5);
    const left = 12 + 6.6 * Math.max(3, ...ty.map((v) => short(v).length)), right = 12, top = 8, bottom = 24;
    const lx = this.logX ? Math.log10 : (v) => v, ly = this.log ? Math.log10 : (v) => v;
    const X = (v) => left + (lx(v) - lx(dx[0])) / (lx(dx[1]) - lx(dx[0])) * (w - left - right);
    const Y = (v) => h - bottom - (ly(v) - ly(dy[0])) / (ly(dy[1]) - ly(dy[0])) * (h - top - bottom);
    this.frame = {X, Y, dx, left, right, top, bottom, w, h};
    for (const v of ty) {
      shape("line", {class: "grid", x1: left, x2: w - right, y1: Y(v), y2: Y(v)}, this.svg);
      shape("text", {x: left - 8, y: Y(v) + 4, "text-anchor": "end"}, this.svg).textContent = short(v);
    }
    const time = Chart.axis === "time" && !this.fixedX;
    const tx = this.logX ? powers(dx[0], dx[1]) : ticks(dx[0], dx[1], Math.max(2, Math.floor(w / 110)));
    for (const v of tx) {
      if (!time && !this.fixedX && !Number.isInteger(v)) continue;
      shape("text", {x: X(v), y: h - 6, "text-anchor": "middle"}, this.svg).textContent = time ? clock(v) : short(v);
    }
    shape("line", {class: "axis", x1: left, x2: w - right, y1: h - bottom, y2: h - bottom}, this.svg);
    const id = this.clipId = this.clipId || "clip" + ++Chart.count;
    const clip = shape("clipPath", {id}, this.svg);
    shape("rect", {x: left - 4, y: 0, width: w - left - right + 8, height: h - bottom + 3}, clip);
    const plot = shape("g", {"clip-path": `url(#${id})`}, this.svg);
    this.series.forEach((s, i) => {
      if (this.hidden.has(i)) return;
      const smooth = this.smoothed(s);
      if (smooth) this.curve(plot, s, s.y, "line raw", false);
      this.curve(plot, s, smooth || s.y, "line", !smooth);
    });
    if (this.mark !== undefined && this.mark !== null)
      shape("line", {class: "mark", x1: X(this.mark), x2: X(this.mark), y1: top, y2: h - bottom}, plot);
    this.overlay = shape("g", {}, this.svg);
    this.showAt();
  }
  curve(parent, s, y, cls, dots) {
    const {X, Y, dx} = this.frame, x = this.xs(s), color = `var(--c${s.color})`;
    let d = "", pen = false, seen = [];
    for (let i = 0; i < x.length; ++i) {
      if ((i + 1 < x.length && x[i + 1] < dx[0]) || (i > 0 && x[i - 1] > dx[1])) continue;
      const v = y[i];
      if (v === null || !Number.isFinite(v) || (this.log && v <= 0)) { pen = false; continue; }
      const px = X(x[i]).toFixed(1), py = Y(v).toFixed(1);
      d += (pen ? "L" : "M") + px + " " + py;
      pen = true;
      seen.push([px, py]);
    }
    if (!seen.length) return;
    shape("path", {class: cls, d, stroke: color, "data-points": seen.length}, parent);
    if (dots && seen.length <= 30)
      for (const [cx, cy] of seen) shape("circle", {cx, cy, r: s.thick ? 3.4 : 2.4, fill: color}, parent);
  }
  nearest(x) {
    let best = null, gap = Infinity;
    for (const s of this.shown())
      for (const v of this.xs(s)) {
        const g = Math.abs(this.frame.X(v) - x);
        if (g < gap && v >= this.frame.dx[0] && v <= this.frame.dx[1]) { gap = g; best = v; }
      }
    return best;
  }
  showAt() {
    if (!this.overlay) return;
    this.overlay.replaceChildren();
    this.tip.hidden = this.at === null;
    if (this.at === null) return;
    const {X, Y, top, bottom, h, w} = this.frame, px = X(this.at);
    shape("line", {class: "cursor", x1: px, x2: px, y1: top, y2: h - bottom}, this.overlay);
    const rows = [];
    let epoch = null, step = null;
    for (const s of this.shown()) {
      const i = this.xs(s).indexOf(this.at);
      if (i < 0) continue;
      if (s.e) epoch = s.e[i];
      step = s.x[i];
      const v = s.y[i];
      if (v !== null && Number.isFinite(v) && !(this.log && v <= 0))
        shape("circle", {cx: px, cy: Y(v), r: 4.2, fill: `var(--c${s.color})`, stroke: "var(--card)",
          "stroke-width": 2}, this.overlay);
      rows.push([s, v]);
    }
    const head = this.fixedX ? `${this.fixedX} ${num(this.at)}`
      : `Step ${group(step)}` + (epoch === null ? "" : `, epoch ${epoch + 1}`);
    const line = ([s, v]) => el("div", {}, el("i", {style: `background:var(--c${s.color})`}),
      el("span", {textContent: s.label}), el("b", {textContent: num(v)}));
    this.tip.replaceChildren(el("p", {textContent: head}), ...rows.map(line));
    this.live.textContent = head + ": " + rows.map(([s, v]) => s.label + " " + num(v)).join(", ");
    const box = this.svg.getBoundingClientRect(), card = this.card.getBoundingClientRect(), tw = this.tip.offsetWidth;
    const x = box.left - card.left + px;
    this.tip.style.left = Math.max(4, x + 14 + tw > card.width - 4 ? x - 14 - tw : x + 14) + "px";
    this.tip.style.top = box.top - card.top + 10 + "px";
  }
  zoomTo(domain) { this.zoom = domain; this.at = null; this.draw(); }
  zoomBy(factor, px) {
    const [a, b] = this.zoom || this.extent(), all = this.extent(), {left, right, w} = this.frame;
    const share = Math.min(1, Math.max(0, (px - left) / (w - left - right))), mid = a + (b - a) * share;
    const lo = Math.max(all[0], mid - (mid - a) * factor), hi = Math.min(all[1], mid + (b - mid) * factor);
    this.zoomTo(hi - lo >= all[1] - all[0] ? null : [lo, hi]);
  }
  invert(px) {
    const {left, right, w, dx} = this.frame, share = Math.min(1, Math.max(0, (px - left) / (w - left - right)));
    if (this.logX) return 10 ** (Math.log10(dx[0]) + share * (Math.log10(dx[1]) - Math.log10(dx[0])));
    return dx[0] + share * (dx[1] - dx[0]);
  }
  listen() {
    const svg = this.svg, px = (e) => e.clientX - svg.getBoundingClientRect().left;
    svg.addEventListener("pointerdown", (e) => {
      if (e.pointerType === "mouse" && e.button === 0) { this.drag = px(e); svg.setPointerCapture(e.pointerId); }
      this.at = this.nearest(px(e));
      this.showAt();
    });
    svg.addEventListener("pointermove", (e) => {
      if (this.drag !== null && Math.abs(px(e) - this.drag) > 4) {
        const {top, bottom, h} = this.frame;
        this.at = null;
        this.showAt();
        shape("rect", {class: "brush", x: Math.min(px(e), this.drag), y: top, width: Math.abs(px(e) - this.drag),
          height: h - top - bottom}, this.overlay);
        return;
      }
      this.at = this.nearest(px(e));
      this.showAt();
    });
    svg.addEventListener("pointerup", (e) => {
      const from = this.drag;
      this.drag = null;
      if (from === null || Math.abs(px(e) - from) <= 4) return;
      this.zoomTo([this.invert(Math.min(px(e), from)), this.invert(Math.max(px(e), from))]);
    });
    const leave = () => { this.drag = null; this.at = null; this.showAt(); };
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("dblclick", () => this.zoomTo(null));
    svg.addEventListener("wheel", (e) => {
      if (!e.ctrlKey) return;
      e.preventDefault();
      this.zoomBy(e.deltaY > 0 ? 1.25 : 0.8, px(e));
    }, {passive: false});
    svg.addEventListener("keydown", (e) => this.key(e));
  }
  key(e) {
    const all = [...new Set(this.shown().flatMap((s) => Array.from(this.xs(s))))].sort((a, b) => a - b);
    const seen = all.filter((v) => v >= this.frame.dx[0] && v <= this.frame.dx[1]);
    const middle = this.at === null ? (this.frame.left + this.frame.w) / 2 : this.frame.X(this.at);
    if (e.key === "ArrowRight" || e.key === "ArrowLeft") {
      const by = e.key === "ArrowRight" ? 1 : -1, i = seen.indexOf(this.at), last = seen.length - 1;
      this.at = seen[i < 0 ? (by > 0 ? 0 : last) : Math.min(last, Math.max(0, i + by))] ?? null;
      this.showAt();
    } else if (e.key === "+" || e.key === "=") this.zoomBy(0.7, middle);
    else if (e.key === "-") this.zoomBy(1 / 0.7, middle);
    else if (e.key === "Escape" || e.key === "0") this.zoomTo(null);
    else return;
    e.preventDefault();
  }
}
Chart.axis = "step";
Chart.smooth = 0;
Chart.count = 0;
