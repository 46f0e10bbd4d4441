#!/usr/bin/env python3
"""Draws the figures of docs/tour: tools/tour_figures.py [--trace FILE] [--gemm FILE] [--film PAGE]. The windows and the
graph come from the output of the pages' programs, the time line from FILE, which `levin_bench_overlap --layers 4 --trace
FILE` writes, the table of the CPU's matrix products from what `levin_bench --benchmark_filter=gemm_ladder/` prints as
JSON, and the still of a film from PAGE, which `levin_film transpose/02_shared_tile PAGE` writes."""
import argparse
import datetime
import json
import pathlib
import re

from browser import Browser
from machine import machine
from small_png import shrink

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs/images"
STYLE = """<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2937 }
.small { font-size: 11px; fill: #6b7280 } .mono { font-family: ui-monospace, Menlo, Consolas, monospace }
.mid { text-anchor: middle } .end { text-anchor: end }
.cell { fill: #f3f4f6; stroke: #9ca3af } .on { fill: #2563eb; stroke: #1d4ed8 } .on2 { fill: #0d9488; stroke: #0f766e }
.soft { fill: #bfdbfe; stroke: #60a5fa } .soft2 { fill: #99f6e4; stroke: #2dd4bf } .white { fill: #ffffff }
.line { stroke: #6b7280; fill: none } .arrow { fill: #6b7280 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb } .small { fill: #9ca3af } .cell { fill: #1f2937; stroke: #4b5563 } .on { fill: #3b82f6; stroke: #60a5fa }
  .on2 { fill: #14b8a6; stroke: #2dd4bf } .soft { fill: #1e3a8a; stroke: #3b82f6 } .soft2 { fill: #134e4a; stroke: #14b8a6 }
  .line { stroke: #9ca3af } .arrow { fill: #9ca3af }
}
</style>"""


class Drawing:
    def __init__(self, width, height, title):
        self.size, self.title, self.parts = (width, height), title, []

    def rect(self, x, y, w, h, kind, radius=3):
        self.parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{radius}"/>')

    def text(self, x, y, text, kind=""):
        escaped = str(text).replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escaped}</text>')

    def arrow(self, x1, y1, x2, y2):
        self.parts.append(f'<path class="line" marker-end="url(#head)" d="M{x1:.1f} {y1:.1f} L{x2:.1f} {y2:.1f}"/>')

    def save(self, name):
        w, h = self.size
        head = ('<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                'orient="auto-start-reverse"><path class="arrow" d="M0 0 L8 4 L0 8 z"/></marker>')
        (IMAGES / name).write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img">\n'
            f"<title>{self.title}</title>\n{STYLE}\n<defs>{head}</defs>\n" + "\n".join(self.parts) + "\n</svg>\n")


def numbers(text):
    return [int(n) for n in re.findall(r"\d+", text)]


def strides():
    """Draws every window that the first chapter prints over the row of the storage's elements."""
    page = (ROOT / "docs/tour/1_storage.md").read_text()
    windows = re.findall(r"^(\w+): offset (\d+), sizes (\(.*?\)), strides (\(.*?\)), shares 1$", page, re.MULTILINE)
    count, cell, left = 12, 36, 150
    drawing = Drawing(left + count * cell + 190, 40 + len(windows) * 48, "Windows on one storage")
    for i in range(count):
        drawing.text(left + (i + 0.5) * cell, 22, i, "small mid mono")
    drawing.text(left - 12, 22, "position in the storage", "small end")
    for row, (name, offset, sizes, steps) in enumerate(windows):
        y = 34 + row * 48
        elements = [int(offset)]
        for size, step in zip(numbers(sizes), numbers(steps)):
            elements = [e + k * step for e in elements for k in range(size)]
        drawing.text(left - 12, y + 22, name, "mono end")
        for i in range(count):
            read = i in elements
            drawing.rect(left + i * cell + 1, y, cell - 2, cell - 4, "on" if read else "cell")
            if read:
                drawing.text(left + (i + 0.5) * cell, y + 21, elements.index(i), "white mid mono")
        drawing.text(left + count * cell + 14, y + 14, f"sizes {sizes}", "small mono")
        drawing.text(left + count * cell + 14, y + 29, f"strides {steps}, offset {offset}", "small mono")
    drawing.save("strides.svg")


def graph():
    """Draws the graph that the third chapter prints: forward to the right, gradients to the left."""
    page = (ROOT / "docs/tour/3_graph.md").read_text()
    nodes = re.findall(r"^(\d+) (\w+) (\(.*?\))(?: <- ([\d, ]+))?$", page, re.MULTILINE)
    width, gap = 104, 40
    order = list(reversed(nodes))
    drawing = Drawing(len(order) * (width + gap) + 20, 124, "The graph of the loss")
    place = {}
    for k, (number, name, shape, _) in enumerate(order):
        x = 20 + k * (width + gap)
        place[number] = x
        drawing.rect(x, 38, width, 46, "soft2" if name == "leaf" else "soft", 8)
        drawing.text(x + width / 2, 58, "w (leaf)" if name == "leaf" else name, "mid mono")
        drawing.text(x + width / 2, 75, shape, "small mid mono")
    for number, _, _, targets in nodes:
        for target in numbers(targets or ""):
            drawing.arrow(place[number] - 4, 61, place[str(target)] + width + 4, 61)
    first, last = place[order[0][0]], place[order[-1][0]] + width
    drawing.arrow(first + width / 2, 22, last - width / 2, 22)
    drawing.text((first + last) / 2, 14, "the forward records", "small mid")
    drawing.arrow(last - width / 2, 102, first + width / 2, 102)
    drawing.text((first + last) / 2, 118, "backward sends gradients", "small mid")
    drawing.save("graph.svg")


def gemm_tile():
    """Draws the register tile of the AVX-512 product: 14 rows, 2 vectors of 16 columns."""
    rows, columns, cell = 14, 32, 11
    left, top = 210, 84
    drawing = Drawing(left + columns * cell + 60, top + rows * cell + 66, "The register tile of the matrix product")
    for k in range(4):
        drawing.rect(left - 96 + k * 22, top, 20, rows * cell, "on2" if k == 3 else "soft2", 1)
        drawing.rect(left, top - 60 + k * 12, columns * cell, 10, "on" if k == 3 else "soft", 1)
    for r in range(rows):
        for v in range(2):
            drawing.rect(left + v * 16 * cell, top + r * cell, 16 * cell - 1, cell - 1, "cell", 1)
    drawing.text(left + columns * cell / 2, 16, "packed B: 256 columns of it stay in L2; each step reads 2 vectors", "small mid")
    drawing.text(left - 108, top + 60, "packed A: 192", "small end")
    drawing.text(left - 108, top + 75, "rows stay in L2;", "small end")
    drawing.text(left - 108, top + 90, "each step reads", "small end")
    drawing.text(left - 108, top + 105, "14 numbers", "small end")
    drawing.text(left + columns * cell / 2, top + rows * cell + 22, "C: 14 x 2 vectors of 16, in 28 of 32 registers over the whole of k",
                 "small mid")
    drawing.text(left + columns * cell / 2, top + rows * cell + 40,
                 "one step of k: 448 multiply-adds for 46 numbers read", "small mid")
    drawing.save("gemm_tile.svg")


def overlap(trace):
    """Draws one step on a time line: forward and backward above, the exchange of each bucket below."""
    events = [e for e in json.loads(pathlib.Path(trace).read_text()) if e.get("ph") == "X"]
    begin = min(e["ts"] for e in events)
    end = max(e["ts"] + e["dur"] for e in events)
    left, width = 96, 660
    rows = sorted({e["tid"] for e in events})
    buckets = [e for e in events if e["tid"] != rows[0]]
    drawing = Drawing(left + width + 30, 82 + 26 * len(buckets), "A training step whose gradients are exchanged during backward")

    def place(t):
        return left + (t - begin) / (end - begin) * width

    for e in events:
        if e["tid"] == rows[0]:
            x, w = place(e["ts"]), e["dur"] / (end - begin) * width
            drawing.rect(x, 14, max(w - 1, 1), 28, "soft")
            drawing.text(x + w / 2, 33, e["name"], "mid")
    drawing.text(left - 10, 33, "compute", "end")
    for k, e in enumerate(sorted(buckets, key=lambda e: e["ts"])):
        x, w = place(e["ts"]), e["dur"] / (end - begin) * width
        drawing.rect(x, 54 + 26 * k, max(w - 1, 1), 20, "on2")
        drawing.text(left - 10, 69 + 26 * k, e["name"], "end small")
    y = 62 + 26 * len(buckets)
    drawing.arrow(left, y, left + width, y)
    drawing.text(left + width, y + 15, f"{(end - begin) / 1000:.1f} ms", "end small")
    drawing.save("overlap.svg")


def gemm_table(results):
    """Writes the speed of each rung, and of OpenBLAS, into the fourth chapter."""
    report = json.loads(pathlib.Path(results).read_text())
    peak = float(report["context"]["peak GFLOP/s"])
    speed = {}
    for row in report["benchmarks"]:
        _, size, rung = row["name"].split("/")[:3]
        if size.isdigit():
            speed.setdefault(rung, {})[int(size)] = row["flops"] / row["real_time"]
    sizes = sorted(next(iter(speed.values())))
    lines = [f"{datetime.date.today()}, {machine()}; GFLOP/s in float32, and the share of the {peak:.0f} GFLOP/s that this "
             "machine reaches with multiply-adds alone.", "",
             "| rung | " + " | ".join(f"n = {n}" for n in sizes) + " |", "|---|" + "---:|" * len(sizes)]
    for rung in sorted(speed):
        cells = [f"{speed[rung][n]:,.0f} ({speed[rung][n] / peak:.2f})" for n in sizes]
        lines.append(f"| {'OpenBLAS' if rung == 'openblas' else rung} | " + " | ".join(cells) + " |")
    page = ROOT / "docs/tour/4_gemm.md"
    begin, end = "<!-- gemm_ladder: begin -->", "<!-- gemm_ladder: end -->"
    before, rest = page.read_text().split(begin)
    page.write_text(before + begin + "\n" + "\n".join(lines) + "\n" + end + rest.split(end)[1])


def film_still(page):
    """Takes the step of the film in which all warps read a column of the tile, each from one bank."""
    with Browser() as browser:
        still = browser.open(pathlib.Path(page).resolve().as_uri() + "#28", 1280, height=800)
        still.screenshot(IMAGES / "film.png", whole=False)
    shrink(IMAGES / "film.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace")
    parser.add_argument("--gemm")
    parser.add_argument("--film")
    arguments = parser.parse_args()
    strides()
    graph()
    gemm_tile()
    if arguments.trace:
        overlap(arguments.trace)
    if arguments.gemm:
        gemm_table(arguments.gemm)
    if arguments.film:
        film_still(arguments.film)


if __name__ == "__main__":
    main()
