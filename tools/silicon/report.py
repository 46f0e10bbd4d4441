"""report.py FOLDER --to OUT --commit C --date D --limit N: writes OUT/<device>-<date>.json and .md.

They report on the files of on_device.sh: FOLDER/bench.jsonl has one line per row of levin_bench_cuda,
FOLDER/pytorch.jsonl one per row and training step of peer_torch.py. The JSON report has device, driver, date, commit,
parts, notes, targets, clocks, mnist, machine, rows, training and left_out. A value that was not measured is null there,
and the page gives the reason. FOLDER/notes.txt, if a person wrote one, has a note per line. Files are named without their
folders, which say nothing on another machine.
"""
import argparse
import csv
import json
import pathlib
import re
import statistics

NOT_MEASURED = "not measured"


def read_text(path):
    return path.read_text(errors="replace") if path.exists() else ""


def without_folders(text):
    return re.sub(r"(?<![\w.])/(?:[^\s:/=]+/)+", "", text)


def read_environment(folder):
    """Returns the lines of environment.txt but that of the search path, which is only folders."""
    lines = read_text(folder / "environment.txt").splitlines()
    return [without_folders(line) for line in lines if not line.startswith("LD_LIBRARY_PATH")]


def read_parts(folder):
    lines = [without_folders(line).split("\t") for line in read_text(folder / "parts.tsv").splitlines()]
    return [{"name": n, "status": s, "seconds": int(t), "detail": d} for n, s, t, d in lines]


def read_clocks(folder):
    """Returns the medians of SM clock (MHz), power (W) and temperature (C) during the benchmarks."""
    rows = [row for row in csv.reader(read_text(folder / "smi.csv").splitlines()) if len(row) == 3]
    columns = {}
    for index, name in enumerate(("sm_mhz", "watts", "celsius")):
        values = [float(row[index]) for row in rows if re.fullmatch(r"\s*[\d.]+\s*", row[index])]
        columns[name] = statistics.median(values) if values else None
    return columns


def read_mnist(folder):
    """Returns the fields of each training's result line."""
    rows = []
    for log in sorted((folder / "logs").glob("mnist_*.txt")):
        match = re.search(r"^result: (.*)$", read_text(log), re.M)
        fields = dict(pair.split("=", 1) for pair in match[1].split()) if match else {}
        fields.pop("checkpoint", None)  # a path of that machine
        rows.append({"precision": log.stem.removeprefix("mnist_"), **fields})
    return rows


def read_lines(path):
    """Yields the objects of a file with one per line; an incomplete line is skipped."""
    found = []
    for line in read_text(path).splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def read_bench(folder):
    """Returns machine, rows, training and left_out, with PyTorch's results among the peers of the rows."""
    bench = {"machine": {}, "rows": [], "training": [], "left_out": []}
    for line in read_lines(folder / "bench.jsonl"):
        kind = line.pop("kind")
        if kind == "machine":
            bench["machine"] = line
        elif kind == "left_out":
            bench["left_out"].append(line["name"])
        else:
            bench["rows" if kind == "row" else "training"].append(line)
    problems = {}
    for row in bench["rows"]:
        problems.setdefault((row["family"], row["rung"], row["dtype"], row["shape"]), []).append(row)
    steps = {row["name"]: row for row in bench["training"]}
    for line in read_lines(folder / "pytorch.jsonl"):
        if "name" in line:
            steps.get(line["name"], {})["peers"] = line["peers"]
            continue
        for row in problems.get((line["family"], line["rung"], line["dtype"], line["shape"]), []):
            row["peers"].update(line["peers"])
    return bench


def rows_where(bench, **wanted):
    """Returns the rows that have these fields or sizes and correct results."""
    def fits(row):
        return row.get("ok") and all(row.get(k, row.get("sizes", {}).get(k)) == v for k, v in wanted.items())
    return [row for row in bench.get("rows", []) if fits(row)]


def ratio_of(row, peer):
    return row.get("peers", {}).get(peer, {}).get("ratio")


def best(rows, peer):
    """Returns the largest ratio to the peer, or None."""
    return max((r for r in (ratio_of(row, peer) for row in rows) if r is not None), default=None)


def worst_problem(rows, peer):
    """Returns the lowest, over problems (a shape and type each), of the best rung's ratio, or None."""
    problems = {}
    for row in rows:
        problems.setdefault((row["family"], row["dtype"], row["shape"]), []).append(row)
    ratios = [r for r in (best(p, peer) for p in problems.values()) if r is not None]
    return min(ratios, default=None)


def training_ratio(bench, net, precision, field):
    """Returns 32-true over the precision for seconds, the precision over 32-true for bytes, or None."""
    rows = {row["precision"]: row for row in bench.get("training", []) if row["net"] == net and row.get("ok")}
    plain, mixed = rows.get("32-true", {}).get(field), rows.get(precision, {}).get(field)
    if not plain or not mixed:
        return None
    return plain / mixed if field == "seconds" else mixed / plain


def targets_of(bench):
    """Returns the targets for H100 and H200: name, minimum or maximum, measured value, met (None if not measured)."""
    found = []

    def target(name, bound, measured, at_most=False):
        met = None if measured is None else measured <= bound if at_most else measured >= bound
        found.append({"name": name, "bound": bound, "at_most": at_most, "measured": measured, "met": met})

    target("SGEMM at 4096, share of cuBLAS float32", 0.95,
           best(rows_where(bench, family="sgemm", unit="f32", m=4096), "cublas"))
    for dtype in ("float16", "bfloat16"):
        for size in (4096, 8192):
            rows = rows_where(bench, family="hgemm", dtype=dtype, m=size)
            target(f"HGEMM {dtype} at {size}, share of cuBLAS", 0.5, best(rows, "cublas"))
            target(f"HGEMM {dtype} at {size}, share of cuBLAS, stretch", 0.65, best(rows, "cublas"))
    for family in ("softmax", "layer_norm", "add", "gelu", "adamw"):
        target(f"{family}, share of the copy's rate", 0.92, worst_problem(rows_where(bench, family=family), "memcpy"))
    for family in ("attention", "attention_backward"):
        halves = [r for d in ("float16", "bfloat16") for r in rows_where(bench, family=family, dtype=d)]
        target(f"{family}, share of cuDNN's", 0.5, worst_problem(halves, "torch_cudnn"))
    for dtype in ("float32", "float16"):
        target(f"convolution {dtype}, share of PyTorch's", 0.5,
               worst_problem(rows_where(bench, family="conv", dtype=dtype), "torch"))
    for net in ("cnn", "gpt_blocks"):
        for precision in ("16-mixed", "bf16-mixed"):
            target(f"{net} {precision}, speed over 32-true", 3.0, training_ratio(bench, net, precision, "seconds"))
            target(f"{net} {precision}, activations' memory over 32-true", 0.55,
                   training_ratio(bench, net, precision, "activation_bytes"), at_most=True)
    return found


def number(value, form):
    return NOT_MEASURED if value is None else format(value, form)


def rate_of(row):
    """Returns the row's rate with the unit of its bound."""
    if not row.get("seconds"):
        return NOT_MEASURED
    if row["unit"] == "memory":
        return f"{row['bytes'] / row['seconds'] / 1e9:,.0f} GB/s"
    return f"{row['flops'] / row['seconds'] / 1e12:.1f} TFLOP/s"


def table(header, rows, right=()):
    marks = ["---:" if i in right else "---" for i in range(len(header))]
    return ["| " + " | ".join(cells) + " |" for cells in [header, marks, *rows]]


def table_or_none(header, rows, right=()):
    return table(header, rows, right) if rows else [NOT_MEASURED.capitalize() + "."]


def peers_of(row):
    cells = [f"{name} {peer['ratio']:.3f}" for name, peer in row["peers"].items() if "ratio" in peer]
    wrong = [f"{name} is wrong" for name, peer in row["peers"].items() if peer.get("ok") is False]
    return ", ".join(cells + wrong)


def bench_tables(bench):
    lines = []
    for family in dict.fromkeys(row["family"] for row in bench.get("rows", [])):
        rows = [row for row in bench["rows"] if row["family"] == family]
        lines += ["", f"### {family}", ""]
        lines += table(("rung", "type", "shape", "seconds", "rate", "share of the floor", "peer's seconds over Levin's",
                        "result"),
                       [(row["rung"], row["dtype"], row["shape"], number(row.get("seconds"), ".3e"), rate_of(row),
                         number(row.get("share"), ".2f"), peers_of(row),
                         "right" if row["ok"] else f"wrong ({row['error']})") for row in rows], right=(3, 4, 5))
    return lines


def missing_peers(bench):
    """Lists each missing peer once, with the reason and the families without it."""
    found = {}
    for row in bench.get("rows", []):
        for name, peer in row["peers"].items():
            if "missing" in peer:
                found.setdefault((name, peer["missing"]), {})[row["family"]] = True
    return [f"- {name} ({', '.join(families)}): {reason}" for (name, reason), families in found.items()]


def machine_lines(report):
    machine, clocks = report["machine"], report["clocks"]
    rates = machine.get("library_flops_a_second", {})
    copy = machine.get("copy_bytes_a_second")
    lines = [f"Copy inside the device: {number(copy and copy / 1e12, '.2f')} TB/s, bytes read plus bytes written; "
             f"the same copy against itself: half the quartiles' distance {number(machine.get('copy_noise'), '.4f')}."]
    lines += [f"cuBLAS at 8192, {unit}: {rate / 1e12:.1f} TFLOP/s." for unit, rate in rates.items()]
    if not rates:
        lines.append(f"cuBLAS's rates: {NOT_MEASURED}. {machine.get('library_missing', '')}")
    lines.append(f"While the benchmarks ran: SM clock {number(clocks['sm_mhz'], '.0f')} MHz, power "
                 f"{number(clocks['watts'], '.0f')} W, {number(clocks['celsius'], '.0f')} C (medians).")
    return lines


def nccl_lines(nccl):
    """Lists copies and all-reduces over the GPUs of this machine, with rates if they were measured."""
    if not nccl:
        return [NOT_MEASURED.capitalize() + "."]

    def rate(row, factor=1.0):
        return f"{row['bytes'] * factor / row['seconds'] / 1e9:,.2f}" if row.get("seconds") else NOT_MEASURED

    def result(row):
        return "right" if row["ok"] else "wrong"

    lines = table(("copy", "MB", "GB/s", "result"),
                  [(r["name"], f"{r['bytes'] / 1e6:,.1f}", rate(r), result(r)) for r in nccl["copies"]], right=(1, 2))
    if nccl.get("missing"):
        return lines + ["", f"NCCL: {NOT_MEASURED}. {nccl['missing']}"]
    lines += ["", *table(("check of one rank", "result"), [(r["name"], result(r)) for r in nccl["checks"]])]
    if not nccl["all_reduce"]:
        return lines + ["", f"Sums over several GPUs: {NOT_MEASURED}. There is one."]
    lines += ["", *table(("all_reduce: GPUs", "MB", "seconds", "GB/s of each GPU's links", "result"),
                         [(str(r["ranks"]), f"{r['bytes'] / 1e6:,.3f}", number(r.get("seconds"), ".3e"),
                           rate(r, 2 * (r["ranks"] - 1) / r["ranks"]), result(r)) for r in nccl["all_reduce"]],
                         right=(0, 1, 2, 3))]
    alone = next((r.get("seconds") for r in nccl["ddp"] if r["ranks"] == 1), None)
    lines += ["", *table(("DDP: GPUs", "seconds a step", "share of one GPU's speed each", "result"),
                         [(str(r["ranks"]), number(r.get("seconds"), ".3e"),
                           number(alone and r.get("seconds") and alone / r["seconds"], ".3f"), result(r))
                          for r in nccl["ddp"]], right=(0, 1, 2))]
    return lines


def page_of(report):
    lines = [f"# {report['device']}, {report['date']}", "",
             f"Driver {report['driver']}, commit {report['commit']}, written by `./run silicon`.", "", "## Machine", "",
             "```", *report["environment"], "```", "", "## Parts", ""]
    lines += table(("part", "status", "s", "detail"),
                   [(p["name"], p["status"], str(p["seconds"]), p["detail"].replace("|", "/"))
                    for p in report["parts"]], right=(2,))
    if report["notes"]:
        lines += ["", "## Notes", "", *(f"- {note}" for note in report["notes"])]
    lines += ["", "## Targets", ""]
    lines += table(("target", "bound", "measured", "met"),
                   [(t["name"], f"{t['bound']} or {'less' if t['at_most'] else 'more'}", number(t["measured"], ".3f"),
                     {True: "yes", False: "no", None: "-"}[t["met"]]) for t in report["targets"]], right=(2,))
    lines += ["", "## Benchmarks", "",
              "Medians by events, each call behind a write of 256 MiB (cold caches), N(0, 1) data, in pairs with the "
              "peer in the order own, peer, peer, own; PyTorch's rows follow in the same run, not in pairs, with "
              "cudnn.benchmark on, and convolutions in the faster of contiguous and channels-last layout. The floor "
              "is the larger of bytes over the copy's rate and operations over cuBLAS's.", ""]
    lines += [line for one in machine_lines(report) for line in (one, "")]
    lines += bench_tables(report)
    if report["left_out"]:
        lines += ["", "Not reached in time: " + ", ".join(report["left_out"]) + "."]
    missing = missing_peers(report)
    if missing:
        lines += ["", "### Missing peers", "", *missing]
    lines += ["", "## Training steps", ""]
    lines += table_or_none(("net", "precision", "shape", "seconds a step", "PyTorch's seconds over Levin's",
                            "activations, MB", "loss", "result"),
                           [(r["net"], r["precision"], r["shape"], number(r.get("seconds"), ".3e"),
                             number(ratio_of(r, "torch"), ".3f"), f"{r['activation_bytes'] / 1e6:,.0f}",
                             f"{r['loss']:.4f}", "right" if r["ok"] else "wrong")
                            for r in report["training"]], right=(3, 4, 5, 6))
    lines += ["", "## Copies and NCCL", "", *nccl_lines(report["nccl"])]
    lines += ["", "## Fashion-MNIST, cnn, 12000 images", ""]
    lines += table_or_none(("precision", "test accuracy", "seconds"),
                           [(r["precision"], r.get("test_accuracy", NOT_MEASURED),
                             r.get("train_seconds", NOT_MEASURED)) for r in report["mnist"]], right=(1, 2))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--to", type=pathlib.Path, required=True)
    for name in ("--commit", "--date", "--limit"):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    device, _, driver = read_text(args.folder / "device.txt").strip().partition(", ")
    bench = read_bench(args.folder)
    nccl = read_text(args.folder / "nccl.json")
    report = {"device": device, "driver": driver, "date": args.date, "commit": args.commit,
              "seconds_allowed": int(args.limit), "parts": read_parts(args.folder),
              "notes": read_text(args.folder / "notes.txt").splitlines(), "targets": targets_of(bench),
              "clocks": read_clocks(args.folder), "mnist": read_mnist(args.folder),
              "environment": read_environment(args.folder),
              "libraries": [without_folders(line) for line in read_text(args.folder / "libraries.txt").splitlines()],
              **bench, "nccl": json.loads(nccl) if nccl else {}}
    stem = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") + "-" + args.date
    for name, text in ((f"{stem}.json", json.dumps(report, indent=1) + "\n"), (f"{stem}.md", page_of(report))):
        new = args.to / (name + ".new")
        new.write_text(text)
        new.replace(args.to / name)


main()
