"""tables.py [--check] [--root DIR]: rewrites the tables of docs/ladders.md from the rungs' header comments and the
newest report in docs/silicon. With --check it changes nothing and fails if the page is not up to date.
"""
import argparse
import json
import pathlib
import re
import sys

NOT_YET = "not yet measured"

# A ladder: its folder in kernels/cuda, its family in the benchmarks, the problems (type and sizes) of which the first
# one that a rung has gives its value, and the peer of the ratio.
LADDERS = [
    ("sgemm", "sgemm", [("float32", {"m": 4096})], "cublas", "C = A B, float32"),
    ("hgemm", "hgemm", [("float16", {"m": 4096})], "cublas", "C = A B, 16-bit floats"),
    ("reduce", "reduce", [("float32", {"rows": 1})], "cub", "a line's sum"),
    ("softmax", "softmax", [("float32", {"columns": 8192}), ("float32", {"columns": 512})], "memcpy",
     "softmax of rows"),
    ("norm", "layer_norm", [("float32", {"columns": 8192})], "memcpy", "layer norm"),
    ("transpose", "transpose", [("float32", {})], "memcpy", "transposing copy"),
    ("conv", "conv", [("float32", {"in": 64}), ("float16", {"in": 64})], "torch", "convolution, forward"),
    ("attention", "attention", [("float16", {"width": 128, "causal": 0})], "torch_cudnn", "attention"),
]
PEERS = {"cublas": "cuBLAS", "cub": "CUB", "memcpy": "the copy", "torch": "PyTorch", "torch_cudnn": "cuDNN by PyTorch"}
# Headers whose rung has another name, with the family if it is not the ladder's.
NAMES = {"attention/03_flash_forward": ("attention", "flash"),
         "attention/04_flash_backward": ("attention_backward", "flash"),
         "attention/05_warpgroup_forward": ("attention", "warpgroups"),
         "attention/06_warpgroup_backward": ("attention_backward", "warpgroups")}


def header_text(path):
    """Returns a rung's header comment as one line."""
    words = []
    for line in path.read_text().splitlines():
        if line.startswith("//"):
            words.append(line.removeprefix("//").strip())
        elif words:
            break
    return " ".join(words)


def first_sentence(text):
    match = re.match(r"(.*?(?:\(.*?\).*?)*?)(?:[.:;] |[.:;]?$)", text)
    return match[1].strip()


def parts_of(text):
    """Returns (title, idea, bound) of a header comment."""
    title = re.sub(r"^Rung \d+(, which ships[^:]*)?: |^Beside the ladder: ", "", text.split(" Idea: ")[0]).rstrip(". ")
    title = re.sub(r"^Rung \d+, which ships (.*)$", r"ships \1", title)
    idea = re.search(r"Idea: (.*?)(?= (?:Changes|Bound|Gained|Ships)\b[^:]*:|$)", text)
    bound = re.search(r"Bound: (.*?)\.(?= [A-Z]|$)", text)
    if not idea or not bound:
        return None
    return title, idea[1].strip(), bound[1].strip()


def rows_of(report, family, dtype, sizes):
    """Returns the report's rows of a problem that are measured and correct."""
    def fits(row):
        return (row["family"] == family and row["dtype"] == dtype and row.get("ok") and row.get("seconds")
                and all(row["sizes"].get(k) == v for k, v in sizes.items()))
    return [row for row in report.get("rows", []) if fits(row)] if report else []


def figure_of(row):
    if row["unit"] == "memory":
        return f"{row['bytes'] / row['seconds'] / 1e9:,.0f} GB/s"
    return f"{row['flops'] / row['seconds'] / 1e12:.1f} TFLOP/s"


def of_rung(rows, rung):
    """Returns the first of the rows that is the rung's, or None."""
    return next((row for row in rows if re.sub(r"^\d+_", "", row["rung"]) == rung), None)


def digits(ratio):
    return f"{ratio:.3f}" if ratio < 0.095 else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def gained(report, row, lower):
    """Returns the seconds of the nearest of the lower rungs that ran the row's problem over the row's seconds."""
    for rung in reversed(lower):
        other = of_rung(rows_of(report, row["family"], row["dtype"], row["sizes"]), rung)
        if other and other is not row:
            return digits(other["seconds"] / row["seconds"])
    return "-"


def measured(report, family, rung, problems, peer, lower):
    """Returns the cells (figure, gained, share) of a rung."""
    for index, (dtype, sizes) in enumerate(problems):
        row = of_rung(rows_of(report, family, dtype, sizes), rung)
        if not row:
            continue
        where = "" if index == 0 else f" ({row['dtype']}, {row['shape']})"
        where += " (TF32)" if row["unit"] == "tf32" else ""
        other = row["peers"].get(peer, {})
        share = digits(other["ratio"]) if "ratio" in other else f"no {PEERS[peer]}: {other.get('missing', 'no row')}"
        return figure_of(row) + where, gained(report, row, lower), share
    return NOT_YET, "-", "-"


def cell(text):
    return text.replace("|", "\\|")


def ladder_lines(root, report, ladder):
    folder, family, problems, peer, title = ladder
    headers = sorted((root / "kernels/cuda" / folder).glob("[0-9][0-9]_*.cuh"))
    if not headers:
        sys.exit(f"error: kernels/cuda/{folder} holds no rungs")
    dtype, sizes = problems[0]
    shapes = [row["shape"] for row in rows_of(report, family, dtype, sizes)]
    shape = shapes[0] if shapes else " ".join(f"{k}={v}" for k, v in sizes.items())
    lines = ["", f"## {family}: {title}", "", f"Figures: {dtype}{', ' + shape if shape else ''}.", "",
             f"| rung | idea | bound by | figure | gained | share of {PEERS[peer]} |", "|---|---|---|---:|---:|---:|"]
    lower = []
    for path in headers:
        text = header_text(path)
        parts = parts_of(text)
        if parts is None:
            sys.exit(f"error: {path.relative_to(root)} does not give its idea and its bound in its header comment")
        name = re.sub(r"^\d+_", "", path.stem)
        row_family, rung = NAMES.get(f"{folder}/{path.stem}", (family, name))
        beside = text.startswith("Beside the ladder")
        cells = measured(report, row_family, rung, problems, peer, [] if beside else lower)
        lower += [] if beside else [rung]
        link = f"[{path.stem}](../{path.relative_to(root)})"
        lines.append("| " + " | ".join((link, cell(f"{parts[0]}: {first_sentence(parts[1])}"), cell(parts[2]),
                                        *cells)) + " |")
    return lines


def newest_report(root):
    """Returns the latest report with the name of its page, or None."""
    files = sorted((root / "docs/silicon").glob("*.json"))
    reports = [(json.loads(f.read_text()), f) for f in files]
    reports.sort(key=lambda pair: pair[0]["date"])
    return reports[-1] if reports else (None, None)


def tables_of(root):
    report, file = newest_report(root)
    source = (f"{report['device']}, {report['date']}: [the whole report](silicon/{file.stem}.md)." if report else
              f"{NOT_YET.capitalize()}: no GPU has run `./run silicon`.")
    lines = [source]
    for ladder in LADDERS:
        lines += ladder_lines(root, report, ladder)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent.parent)
    args = parser.parse_args()
    page = args.root / "docs/ladders.md"
    old = page.read_text()
    parts = re.split(r"(<!-- ladders:begin -->\n|\n<!-- ladders:end -->)", old)
    if len(parts) != 5:
        sys.exit(f"error: {page} lacks its markers ladders:begin and ladders:end")
    known = {ladder[0] for ladder in LADDERS}
    for folder in sorted({p.parent.name for p in (args.root / "kernels/cuda").glob("*/01_*.cuh")} - known):
        sys.exit(f"error: kernels/cuda/{folder} is a ladder that tools/silicon/tables.py does not know")
    parts[2] = tables_of(args.root)
    new = "".join(parts)
    if args.check:
        if new != old:
            sys.exit("error: docs/ladders.md is not up to date with the rungs' headers and docs/silicon; "
                     "run python3 tools/silicon/tables.py")
        return
    page.write_text(new)


main()
