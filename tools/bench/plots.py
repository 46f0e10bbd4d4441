"""The charts of ./run bench and of docs/performance.md: the roofline and bars of ratios."""
import math
import re

import rows
import svg

COLOURS = {"arithmetic": "purple", "memory": "blue", "cache": "green", "other": "orange"}
MEANING = {"arithmetic": "arithmetic", "memory": "memory", "cache": "in a cache, above the memory's roof",
           "other": "below half of its roof"}


# ---- bars of ratios

def ticks(low, high):
    """Powers of two (of four, where they would be too many) between the two."""
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    step = 1 if last - first <= 8 else 2
    return [2.0 ** e for e in range(first, last + 1) if e % step == 0]


def tick_label(value):
    return f"{value:g}" if value >= 1 else f"1/{1 / value:g}"


def bars(title, subtitle, entries, better="high", height_of_bar=15):
    """Bars from a line at 1.0 on a logarithmic axis. `entries` are (label, ratio, words behind the bar)."""
    label_width = min(300.0, max([svg.text_width(label) for label, _, _ in entries], default=0.0) + 6)
    words_width = max([svg.text_width(words, 12) for _, _, words in entries], default=0.0) + 10
    step = height_of_bar + 8
    drawing = svg.Drawing(0, title, "; ".join(f"{label}: {ratio:.2f}" for label, ratio, _ in entries))
    top = drawing.heading(subtitle) + 22
    bottom = top + step * len(entries)
    drawing.height = bottom + 22
    low, high = min([1.0, *(r for _, r, _ in entries)]), max([1.0, *(r for _, r, _ in entries)])
    left, right = 20 + label_width + 8, svg.WIDTH - 20 - words_width
    # Words stand behind the end of a bar to the right, and right of the line at 1.0 for a bar to the left.
    scale = (right - left) / max(math.log2(high) - math.log2(low), 0.5)

    def x_of(ratio):
        return left + (math.log2(ratio) - math.log2(low)) * scale

    last = -math.inf
    for tick in ticks(low, high):
        if left - 1 <= x_of(tick) <= svg.WIDTH - 20:
            drawing.line(x_of(tick), top - 4, x_of(tick), bottom, "axis" if tick == 1 else "grid")
            if x_of(tick) - last >= 34:
                drawing.text(x_of(tick), top - 10, tick_label(tick), "muted", "middle")
                last = x_of(tick)
    for i, (label, ratio, words) in enumerate(entries):
        y = top + step * i + 4
        good = (ratio >= 1) == (better == "high")
        drawing.text(left - 10, y + height_of_bar - 3, svg.shorten(label, label_width), "", "end")
        start, end = sorted((x_of(1.0), x_of(ratio)))
        drawing.add("rect", x=start, y=float(y), width=max(end - start, 1.0), height=float(height_of_bar), rx=2,
                    class_="blue" if good else "orange")
        drawing.text(max(x_of(ratio), x_of(1.0)) + 6, y + height_of_bar - 3, words, "muted")
    drawing.line(x_of(1.0), top - 4, x_of(1.0), bottom, "axis")
    return drawing.render()


def changes(run, most=30):
    """The rows of --against whose time changed most, the slower ones first."""
    found = sorted(run["against"]["rows"], key=lambda v: -v["ratio"])
    if len(found) > most:
        kept = sorted(found, key=lambda v: -abs(math.log(v["ratio"])))[:most]
        found = [v for v in found if v in kept]
    entries = [(v["name"], v["ratio"], f"{v['ratio']:.2f} {v['verdict']}") for v in found]
    return bars("Time by that of the old run", ["Right of 1: slower. Logarithmic axis. The rows that changed most."],
                entries, better="low")


# ---- the roofline

def ships(row):
    """Of a ladder only the last rung is a kernel of the library for its shapes."""
    return not row["name"].startswith(("gemm_ladder/", "conv_ladder/")) or \
        row["name"].endswith(("/06_in_place", "/winograd"))


def sized_name(row):
    """The name with the sizes of the first input."""
    return " ".join(row["name"].removeprefix("compare/").split("/")[:2])


def short_name(row):
    parts = row["name"].split("/")
    if parts[0] == "gemm_ladder":
        return f"gemm {parts[1]}"
    if parts[0] == "conv_ladder":
        return "conv2d " + " ".join(parts[1:3])
    if parts[0] == "compare":
        return row["name"].removeprefix("compare/").removesuffix(" fwd")
    if parts[0] in ("matmul", "linear", "conv2d") and len(parts) > 2:
        sizes = re.findall(r"\d+", parts[1])
        return parts[0] + " " + "×".join(sizes)
    return parts[0]


def powers_of_ten(low, high):
    return [10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def kin(row):
    """`norm_1` and `norm_2` are kin, as are matrix products of different sizes: one label stands for all."""
    return re.split(r"[ _]", short_name(row))[0]


def label_order(found):
    """The rows to label: the farthest below and the nearest to their roofs in turn, one of each kin."""
    by_share = sorted(found, key=lambda row: row["share"])
    order, seen = [], set()
    for low, high in zip(by_share, reversed(by_share)):
        for row in (low, high):
            if kin(row) not in seen:
                order.append(row)
            seen.add(kin(row))
    return order


def computes(row):
    """False for copies, lookups and sorts, which the roofline of arithmetic cannot show."""
    return row["bytes"] > 0 and row["flops"] >= 0.01 * row["bytes"]


def in_roofline(row):
    return ships(row) and computes(row) and row["bound"] != "call"


def overlaps(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def place_labels(points, area, most):
    """Places labels beside points where they cover neither another label nor a point nor the roof; the rest stay without.

    `points` are (x, y, label or None); returns (x, y, anchor, label, x of the point, y of the point)."""
    dots = [(x - 4.5, y - 4.5, x + 4.5, y + 4.5) for x, y, _ in points]
    taken, placed = list(area["taken"]), []
    for x, y, label in points:
        if label is None or len(placed) >= most:
            continue
        width = svg.text_width(label, 11.5)
        for distance in (0, 14, 28, 42):
            for dx, dy, anchor in ((8, 4, "start"), (-8, 4, "end"), (0, -9, "middle"), (0, 18, "middle"),
                                   (8, -6, "start"), (8, 15, "start"), (-8, -6, "end"), (-8, 15, "end")):
                if distance and dy == 4:
                    continue
                dy += math.copysign(distance, dy) if distance else 0
                left = x + dx - (width if anchor == "end" else width / 2 if anchor == "middle" else 0)
                box = (left - 2, y + dy - 10, left + width + 2, y + dy + 3)
                inside = (box[0] >= area["left"] and box[2] <= area["right"] and box[1] >= area["top"]
                          and box[3] <= area["bottom"])
                if inside and not any(overlaps(box, other) for other in taken + dots):
                    taken.append(box)
                    placed.append((x + dx, y + dy, anchor, label, x, y))
                    break
            else:
                continue
            break
    return placed


def slanted_words(drawing, start, end, words, points):
    """Writes words along and above the roof where they cover the fewest points; returns boxes that cover both."""
    length = math.hypot(end[0] - start[0], end[1] - start[1])
    along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
    upward = (along[1], -along[0])  # to the upper left of a line that rises to the right
    half = svg.text_width(words, 11.5) / 2 / length

    def place(t, above=7.0):
        return (start[0] + t * (end[0] - start[0]) + above * upward[0],
                start[1] + t * (end[1] - start[1]) + above * upward[1])

    def boxes(t):
        return [(x - 8, y - 9, x + 8, y + 9) for x, y in (place(t + half * (step / 6 - 1), 11.0) for step in range(13))]

    def covered(t):
        return sum(any(overlaps(box, (x - 4, y - 4, x + 4, y + 4)) for box in boxes(t)) for x, y, _ in points)

    tries = [half + 0.03 + (0.94 - 2 * half) * i / 40 for i in range(41)] if half < 0.45 else [0.5]
    best = min(tries, key=covered)
    x, y = place(best)
    drawing.text(0, 0, words, "small", "middle", transform=f"translate({svg.number(x)} {svg.number(y)}) "
                 f"rotate({svg.number(math.degrees(math.atan2(along[1], along[0])))})")
    line = [place(i / 59, 0.0) for i in range(60)]
    return boxes(best) + [(x - 3, y - 3, x + 3, y + 3) for x, y in line]


def roofline(run, most_labels=30):
    """GFLOP/s by intensity of the rows that compute, below the roofs of this machine."""
    peaks = run["peaks"]
    found = [row for row in run["rows"] if in_roofline(row)]
    drawing = svg.Drawing(560, "Kernels below the roofline", "GFLOP/s by flops per byte: " + "; ".join(
        f"{short_name(row)}: {row['GFLOP/s']:.3g} GFLOP/s, {row['share']:.0%}" for row in found))
    m = run["machine"]
    small = sum(1 for row in run["rows"] if ships(row) and row["bound"] == "call")
    moving = sum(1 for row in run["rows"] if ships(row) and not computes(row) and row["bound"] != "call")
    top = drawing.heading([f"{m['cpu']}, {rows.threads(run)}, {m['instruction_set']}, float32, {run['date'][:10]}.",
                           f"{len(found)} rows; left out are {moving} that compute next to nothing and {small} of less than a microsecond "
                           "at the roof."]) + 30
    left, right, bottom = 64.0, svg.WIDTH - 24.0, drawing.height - 56.0
    ridge = peaks["GFLOP/s"] / peaks["GB/s"]
    x_low = min([0.1, *(row["intensity"] for row in found)]) * 0.25  # room for the words along the roof
    x_high = max([ridge * 4, *(row["intensity"] for row in found)]) * 1.5
    y_low = min([peaks["GFLOP/s"] / 1e3, *(row["GFLOP/s"] for row in found)]) * 0.6
    y_high = max([peaks["GFLOP/s"], *(row["GFLOP/s"] for row in found)]) * 2.2

    def x_of(intensity):
        return left + (right - left) * math.log(intensity / x_low) / math.log(x_high / x_low)

    def y_of(rate):
        return bottom - (bottom - top) * math.log(rate / y_low) / math.log(y_high / y_low)

    for tick in powers_of_ten(x_low, x_high):
        if x_low <= tick <= x_high:
            drawing.line(x_of(tick), top, x_of(tick), bottom, "grid")
            drawing.text(x_of(tick), bottom + 18, f"{tick:g}", "muted", "middle")
    for tick in powers_of_ten(y_low, y_high):
        if y_low <= tick <= y_high:
            drawing.line(left, y_of(tick), right, y_of(tick), "grid")
            drawing.text(left - 8, y_of(tick) + 4, f"{tick:g}", "muted", "end")
    drawing.line(left, bottom, right, bottom, "axis")
    drawing.line(left, top, left, bottom, "axis")
    drawing.text((left + right) / 2, bottom + 40, "flops per byte", "muted", "middle")
    drawing.text(20, top - 12, "GFLOP/s", "muted")

    x_start = max(x_low, y_low / peaks["GB/s"])
    corner = (x_of(ridge), y_of(peaks["GFLOP/s"]))
    start = (x_of(x_start), y_of(x_start * peaks["GB/s"]))
    drawing.add("polyline", class_="roof", points=" ".join(
        f"{svg.number(x)},{svg.number(y)}" for x, y in (start, corner, (right, corner[1]))))
    order = {id(row): i for i, row in enumerate(label_order(found))}
    found.sort(key=lambda row: order.get(id(row), len(order)))
    points = [(x_of(row["intensity"]), y_of(row["GFLOP/s"]), short_name(row) if id(row) in order else None)
              for row in found]
    taken = [(corner[0] - 3, corner[1] - 22, right, corner[1] + 3)]
    taken += slanted_words(drawing, start, corner, f"copy: {peaks['GB/s']:.0f} GB/s", points)
    drawing.text(right - 4, corner[1] - 7, f"multiply-adds: {peaks['GFLOP/s']:.0f} GFLOP/s", "small", "end")

    legend_x = left
    for kind, colour in COLOURS.items():
        drawing.add("circle", cx=legend_x + 90, cy=float(top - 16), r=4, class_=colour)
        drawing.text(legend_x + 98, top - 12, MEANING[kind], "small")
        legend_x += 24 + svg.text_width(MEANING[kind], 11.5)
    area = {"left": left + 2, "right": right, "top": top, "bottom": bottom - 2, "taken": taken}
    labels = place_labels(points, area, most_labels)
    for x, y, anchor, _, point_x, point_y in labels:  # a leader where the label stands off its point
        if abs(y - point_y) > 18.5:
            drawing.line(point_x, point_y, x, y + (3 if y < point_y else -9), "axis")
    for row, (x, y, _) in zip(found, points):
        drawing.add("circle", cx=x, cy=y, r=4, class_=f"dot {COLOURS[row['bound']]}")
    for x, y, anchor, label, _, _ in labels:
        drawing.text(x, y, label, "small", anchor)
    return drawing.render()
