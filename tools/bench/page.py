"""Writes docs/performance.md between its markers, and the charts that it shows to docs/images/performance/.

The part `kernels` comes from a run of ./run bench, the part `ratios` from the table of docs/compare.md.
"""
import math
import pathlib
import re
import statistics
import sys

import plots
import rows

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import compare  # noqa: E402
import compare_nets  # noqa: E402

PAGE = "docs/performance.md"
IMAGES = "docs/images/performance"
FARTHEST = 24   # rows of the chart of shares
LEAST_RATIOS = 24  # rows of the chart of operations; all that lose are in it


def part_of(text, name):
    match = re.search(rf"<!-- {name}:begin -->\n(.*?)<!-- {name}:end -->", text, flags=re.S)
    if match is None:
        sys.exit(f"error: {PAGE} has lost the markers <!-- {name}:begin --> and <!-- {name}:end -->")
    return match[1]


def replace_part(text, name, content):
    part_of(text, name)
    return re.sub(rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", lambda m: m[1] + content + m[2], text, flags=re.S)


def save_image(root, name, drawing):
    folder = root / IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(drawing)
    return f"images/performance/{name}"


def table(head, align, lines):
    return "\n".join([f"| {' | '.join(head)} |", f"|{'|'.join(align)}|"] + [f"| {' | '.join(l)} |" for l in lines]) + "\n"


# ---- kernels: a run of ./run bench

def shares_chart(found, run):
    """Bars of the rows that stay farthest below their roofs; the line at 1 is the roof."""
    farthest = sorted((row for row in found if row["bound"] != "call"), key=lambda row: row["share"])[:FARTHEST]
    entries = [(plots.sized_name(row), row["share"], f"{row['share']:.0%}, {rows.duration(row['median'])}")
               for row in farthest]
    return plots.bars("The kernels farthest below their roofs",
                      [f"Share of the roofline, {run['date'][:10]}. The line at 1 is the roof. Logarithmic axis."], entries)


def kernel_line(row):
    return [f"`{row['name']}`", rows.duration(row["median"]), f"{row['spread']:.0%}", f"{row['GB/s']:.1f}",
            f"{row['GFLOP/s']:.1f}", f"{row['share']:.0%}", row["bound"]]


def kernels_part(run, roofline, shares):
    machine, peaks = run["machine"], run["peaks"]
    found = [row for row in run["rows"] if plots.ships(row)]
    count = {bound: sum(row["bound"] == bound for row in found) for bound in rows.BOUNDS}
    spread = statistics.median(row["spread"] for row in found)
    head = ["kernel", "median", "spread", "GB/s", "GFLOP/s", "share", "bound"]
    align = ["---", "---:", "---:", "---:", "---:", "---:", "---"]
    by_share = sorted(run["rows"], key=lambda row: row["share"])
    return f"""{run['date'][:10]}, commit {run['commit']}: {machine['cpu']}, {machine['cores']} cores, \
{rows.threads(run)}, {machine['instruction_set']}; {run['compiler']}, `{run['flags']}`. Measured peaks: \
{peaks['GFLOP/s']:.0f} GFLOP/s of float32 multiply-adds, {peaks['GB/s']:.0f} GB/s of a copy. {run['repetitions']} samples \
of each row; the median spread is {spread:.0%}.

Of {len(found)} rows, {count['memory']} are bound by memory, {count['arithmetic']} by arithmetic, and {count['cache']} are \
faster than memory, because their data stay in a cache. {count['call']} need less than a microsecond at the roof and \
measure what a call costs. {count['other']} stay below half of their roof; these come first:

![Bars: the share of the roofline of the rows that are farthest below it]({shares})

![Roofline: GFLOP/s of each kernel by its flops per byte]({roofline})

<details>
<summary>All {len(run['rows'])} rows, the smallest share first</summary>

{table(head, align, [kernel_line(row) for row in by_share])}
</details>
"""


def write_kernels(root, run):
    page = root / PAGE
    found = [row for row in run["rows"] if plots.ships(row)]
    roofline = save_image(root, "roofline.svg", plots.roofline(run))
    shares = save_image(root, "shares.svg", shares_chart(found, run))
    page.write_text(replace_part(page.read_text(), "kernels", kernels_part(run, roofline, shares)))


# ---- ratios: docs/compare.md

OPERATION = re.compile(r"(?:micro|gemm|size)/(?!start-up|peak memory|libtorch)")


def bounds_on(page_text):
    """Returns the bound and the share of each row in the table of kernels on the page."""
    return {name: f"{bound}, {share}" for name, share, bound in
            re.findall(r"^\| `([^`]+)` \|(?:[^|]+\|){4} (\d+%) \| (\w+) \|$", page_text, flags=re.M)}


def ratios_part(note, found, images, bounds):
    nets = compare_nets.best_peers(found)
    pieces = [r for r in found if OPERATION.match(r["name"])]
    behind = sorted((r for r in pieces if r["ratio"] < 1), key=lambda r: r["ratio"])
    mean = math.exp(statistics.fmean(math.log(r["ratio"]) for r in pieces))
    lines = [[r["name"].removeprefix("micro/"), compare.number(r["levin"]), compare.number(r["peer"]), r["unit"],
              f"{r['ratio']:.2f}", bounds.get(r["name"].replace("micro/", "compare/"), "")] for r in behind]
    slowest_net = min(nets, key=lambda r: r["ratio"])
    return f"""{note}

**Operations.** {len(behind)} of {len(pieces)} rows are behind their peers, {len(pieces) - len(behind)} are level or ahead; \
the geometric mean of the ratios is {mean:.2f}.

![Bars: the operations with the smallest ratios]({images['operations']})

The rows that are behind, with the bound and the share of the roof that `./run bench compare/` measured (empty where \
it has no such row):

{table(["operation", "Levin", "peer", "unit", "ratio", "bound"], ["---", "---:", "---:", "---", "---:", "---"], lines)}
**Networks**, each beside the peer that comes closest. The smallest ratio is {slowest_net['ratio']:.2f} \
({slowest_net['name']}).

![Bars: the speed of networks by that of the peer that comes closest]({images['nets']})
"""


def write_ratios(root):
    """Rewrites the part on PyTorch from the table of docs/compare.md."""
    page = root / PAGE
    source = part_of((root / "docs/compare.md").read_text(), "compare")
    note = source.splitlines()[0]
    found = compare.rows_of(source)
    when = note.split(",")[0]
    pieces = sorted((r for r in found if OPERATION.match(r["name"])), key=lambda r: r["ratio"])
    shown = [r for i, r in enumerate(pieces) if r["ratio"] < 1 or i < LEAST_RATIOS]
    nets = sorted(compare_nets.best_peers(found), key=lambda r: r["ratio"])
    axis = "Right of 1: Levin is faster. Logarithmic axis."

    def entries(some):
        return [(r["name"].removeprefix("micro/"), r["ratio"], f"{r['ratio']:.2f}") for r in some]

    images = {
        "operations": save_image(root, "operations.svg", plots.bars(
            "Levin by its peers: the slowest operations",
            [f"The {len(shown)} smallest ratios of {len(pieces)}, {when}. {axis}"], entries(shown))),
        "nets": save_image(root, "nets.svg", plots.bars(
            "Levin by the best of its peers: networks",
            [f"{when}. {axis}", "b64 and b1 are forward passes, the others training steps; after them the peer if it is not "
             "PyTorch's eager mode."], entries(nets)))}
    text = page.read_text()
    page.write_text(replace_part(text, "ratios", ratios_part(note, found, images, bounds_on(part_of(text, "kernels")))))


if __name__ == "__main__":  # the part that needs no measurement: docs/compare.md gives its figures
    write_ratios(pathlib.Path(__file__).resolve().parents[2])
