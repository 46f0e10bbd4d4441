"""Compares Levin with PyTorch and JAX: the same nets and micro benchmarks, interleaved in one call; medians and ratios.

A ratio above 1 is in Levin's favour. Rows are `name`, `levin`, `peer`, `ratio`, `unit`.
"""
import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import compare_nets
import machine
import two_cores
from compare_nets import BIN, PEERS, ROOT, number, row, run


def libtorch_mlp(args):
    """Runs the C++ frontend's mlp if the wheel includes its headers, else returns None."""
    source, binary = ROOT / "bench/peers/libtorch_micro.cpp", PEERS / "libtorch_micro"
    torch = next(PEERS.glob("venv/lib/python*/site-packages/torch"), None)
    if torch is None or not (torch / "include/torch/csrc/api/include").is_dir():
        return None
    if not binary.exists():
        run(["g++", "-O2", "-std=c++20", source, f"-I{torch}/include", f"-I{torch}/include/torch/csrc/api/include",
             f"-L{torch}/lib", f"-Wl,-rpath,{torch}/lib", "-ltorch", "-ltorch_cpu", "-lc10", "-o", binary])
    output = run([binary])
    add = min(float(x) for x in re.findall(r"recorded ([\d.]+) us", output))
    chain = min(float(x) for x in re.findall(r"chain fwd\+bwd ([\d.]+) us", output))
    rate = max(float(x) for x in re.findall(r"mlp ([\d.]+) img/s", output))
    return {"mlp": rate, "add": add, "chain": chain}


def start_up():
    """Returns the seconds of a whole process that adds two tensors: the best of five."""
    def seconds(command):
        start = time.perf_counter()
        run(command)
        return time.perf_counter() - start

    ours = min(seconds([BIN / "levin_compare_micro", "first operation only"]) for _ in range(5))
    theirs = min(seconds([sys.executable, "-c", "import torch; torch.ones(4) + torch.ones(4)"]) for _ in range(5))
    return row("micro/start-up", ours, theirs, "s")


LISTS = {"micro": ([], ["torch_micro.py", "torch_operations.py"]), "size": (["--sizes"], ["torch_sizes.py"]),
         "gemm": (["--gemm"], ["gemm_peers.py"])}


def pieces(kind, args):
    """Returns the rows of a list of pieces: the best of interleaved rounds on each side."""
    def table(output):
        rows = {}
        for line in output.splitlines():
            match = re.match(r"(.+?)\s+([\d.]+) (\S+)$", line)
            if match:
                rows[match[1].strip()] = (float(match[2]), match[3])
        return rows

    best = ({}, {})
    options, scripts = LISTS[kind]
    commands = [(0, [BIN / "levin_compare_micro", *options]), *((1, [sys.executable, f"bench/peers/{s}"]) for s in scripts)]
    for _ in range(max(1, args.rounds - 1)):
        args.watch.wait()
        for side, command in commands:
            for name, (value, unit) in table(run([*command, "--threads", args.threads])).items():
                better = min if unit in ("us", "us/op", "s", "ms", "MB") else max
                old = best[side].get(name)
                best[side][name] = (value if old is None else better(old[0], value), unit)
    ours, theirs = best
    rows = []
    for name, (value, unit) in theirs.items():
        if name in ours:
            rows.append(row(f"{kind}/{name}", ours[name][0], value, unit))
    return rows


# Instruction sets that --capability allows, by the variables that Levin, PyTorch, oneDNN, MKL and OpenBLAS read. JAX is
# left out: --xla_cpu_max_isa limits what XLA compiles, but not the libraries that multiply its matrices.
CAPABILITIES = {"avx2": {"LEVIN_CPU_CAPABILITY": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
                         "MKL_ENABLE_INSTRUCTIONS": "AVX2", "OPENBLAS_CORETYPE": "Haswell"}}

SECTIONS = {"": "Networks", "memory/": "Peak memory of the processes that train", "micro/": "Operations and layers",
            "gemm/": "Products of float32 matrices, by the fastest of MKL, oneDNN and OpenBLAS: m x n x k, with t for an operand "
            "that lies transposed", "size/": "Layers from the smallest to the largest sizes"}


def section_of(name):
    return next((s for s in SECTIONS if s and name.startswith(s)), "")


def markdown(rows, note):
    """Returns a page's rows, in a table for each section; a single one has no title."""
    lines, sections = [note], [s for s in SECTIONS if any(section_of(r["name"]) == s for r in rows)]
    for section in sections:
        lines += ["", *([f"**{SECTIONS[section]}**", ""] if len(sections) > 1 else []),
                  "| what | Levin | peer | unit | ratio |", "|---|---:|---:|---|---:|"]
        lines += [f"| {r['name']} | {number(r['levin'])} | {number(r['peer'])} | {r['unit']} | {r['ratio']:.2f} |"
                  for r in rows if section_of(r["name"]) == section]
    return "\n".join(lines)


def rows_of(table):
    """Returns the rows of a table that markdown() wrote, or of a page that has it between the markers."""
    if found := re.search(r"<!-- compare:begin -->\n(.*?)<!-- compare:end -->", table, flags=re.S):
        table = found[1]
    rows = []
    for line in table.splitlines():
        cells = [c.strip().replace(",", "") for c in line.strip("|").split("|")] if line.startswith("| ") else []
        if len(cells) == 5 and cells[0] != "what":
            name = line.split("|")[1].strip()
            rows.append({"name": name, "levin": float(cells[1]), "peer": float(cells[2]), "unit": cells[3], "ratio": float(cells[4])})
    return rows


def note_of(page_text):
    """Returns the line above the table between the page's markers."""
    return re.search(r"<!-- compare:begin -->\n(.*)\n", page_text)[1]


def rewrite(path, rows, note, day=None):
    """Replaces the table between the markers. A filtered run replaces its own rows if the table is of the same day and
    machine (`day`, by default those of the note), else it says so and leaves the table unchanged."""
    old = path.read_text()
    table = re.search(r"<!-- compare:begin -->\n(.*?)<!-- compare:end -->", old, flags=re.S)[1]
    names = {r["name"] for r in rows}
    kept = [r for r in rows_of(table) if r["name"] not in names]
    if kept and (day or note.split(";")[0]) not in table:
        print(f"{path.name} is unchanged, because its other rows are of another day or machine; run ./run compare without a "
              "filter, or give --table NAME")
        return
    text = markdown(kept + rows, note)
    path.write_text(re.sub(r"(<!-- compare:begin -->\n).*?(<!-- compare:end -->)", lambda m: m[1] + text + "\n" + m[2], old, flags=re.S))


def others_in_words(rows):
    """Returns a paragraph on the rows of pieces, or nothing if there are none."""
    others = [r for r in rows if section_of(r["name"]) not in ("", "memory/")]
    slow = sorted((r for r in others if r["ratio"] < 0.995), key=lambda r: r["ratio"])
    if not others:
        return []
    behind = ", ".join(f"{r['name']} ({r['ratio']:.2f})" for r in slow)
    return ["", f"Of {len(others)} rows of operations, sizes and products, {len(slow)} are behind" + (f": {behind}." if slow else ".")]


def write_goals(path, rows, note, marker="goals"):
    """Writes the nets beside their best peers between the page's markers."""
    old = path.read_text()
    text = "\n".join([note, "", *compare_nets.best_table(rows), *(others_in_words(rows) if marker != "goals" else [])])
    path.write_text(re.sub(rf"(<!-- {marker}:begin -->\n).*?(<!-- {marker}:end -->)", lambda m: f"{m[1]}{text}\n{m[2]}", old, flags=re.S))


def write_tables(rows, note):
    """Writes all rows and the best peers to docs/compare.md, the charts and the rows that are behind to
    docs/performance.md, and the best peers, start-up, memory and the cost of an operation to the README."""
    page_text, day = (ROOT / "docs/compare.md").read_text(), note.split(";")[0]
    names = {r["name"] for r in rows}
    if any(compare_nets.work_of(r["name"]) and r["name"] not in names for r in rows_of(page_text)):
        note = note_of(page_text)  # which tells how the nets were measured
    rewrite(ROOT / "docs/compare.md", rows, note, day)
    page_text = (ROOT / "docs/compare.md").read_text()
    merged, note = rows_of(page_text), note_of(page_text)
    for page in ("docs/compare.md", "README.md"):
        write_goals(ROOT / page, merged, note)
    sys.path.insert(0, str(ROOT / "tools/bench"))
    import page  # which imports this module
    page.write_ratios(ROOT)
    short = [r for r in rows if re.search("start-up|memory|add", r["name"])]
    if short:
        rewrite(ROOT / "README.md", short, note, day)


def spread_in_words(rows):
    """Returns by how much the rounds of a net differ, with a comma before it, or nothing where each has one round."""
    spreads = [r["spread"] for r in rows if r.get("spread")]
    return f", which differ by {100 * statistics.median(spreads):.0f} % ({100 * max(spreads):.0f} % at most)" if spreads else ""


def compare_rest(args, show):
    """Measures all but the nets, and calls show for each row that the filter selects."""
    if args.filter in "mlp/libtorch" or args.filter in "micro/libtorch":
        if (cpp := libtorch_mlp(args)) is not None:
            rate, _ = compare_nets.figures(run([BIN / "levin_compare_nets", "mlp", "--threads", args.threads, "--steps", args.steps]))
            show(row("mlp/libtorch", rate, cpp["mlp"], "images/s"))
            ours = dict(re.findall(r"(add tiny, recorded|chain of 1000 adds fwd\+bwd)\s+([\d.]+)",
                                   run([BIN / "levin_compare_micro", "--threads", args.threads, "add tiny", "chain"])))
            show(row("micro/libtorch add tiny, recorded", float(ours["add tiny, recorded"]), cpp["add"], "us"))
            show(row("micro/libtorch chain of 1000 adds", float(ours["chain of 1000 adds fwd+bwd"]), cpp["chain"], "us/op"))
    if args.filter in "micro/start-up":
        show(start_up())
    for kind in LISTS:
        if (kind.startswith(args.filter) or args.filter.startswith(kind)) and args.filter != "micro/start-up":
            for r in pieces(kind, args):
                if args.filter in r["name"]:
                    show(r)


def main():
    parser = argparse.ArgumentParser(prog="./run compare", description=__doc__)
    parser.add_argument("filter", nargs="?", default="", help="part of a row's name")
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--capability", choices=CAPABILITIES, help="the widest instruction set, for both sides but JAX, "
                        "which is left out; the nets' rows beside their best peers go to docs/compare.md, and no other table is written")
    parser.add_argument("--patience", type=float, default=600, help="seconds to wait in all until two threads compute "
                        f"{two_cores.ENOUGH} times as much as one, and to repeat nets after which they compute less")
    parser.add_argument("--table", help="writes only the nets' rows beside their best peers and the names of other rows that are behind, "
                        "between docs/compare.md's markers of this name: for a machine other than that of the other tables")
    parser.add_argument("--nets", action="store_true", help="leaves out all but the nets")
    parser.add_argument("--no-compile", action="store_true", help="leaves out the rows of torch.compile")
    parser.add_argument("--no-jax", action="store_true", help="leaves out JAX's rows")
    args = parser.parse_args()
    PEERS.mkdir(parents=True, exist_ok=True)
    os.environ.update(CAPABILITIES.get(args.capability, {}))
    # The processes that compile for PyTorch outlive its own, and would take a core from what is measured next.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    args.no_jax |= bool(args.capability)
    args.watch = two_cores.Watch(args.patience if args.threads > 1 else 0)

    rows = []
    def show(r):
        rows.append(r)
        print(f"{r['name']:36s} {r['levin']:12.4g} {r['peer']:12.4g} {r['unit']:9s} {r['ratio']:6.2f}", flush=True)

    print(f"{'':36s} {'levin':>12s} {'pytorch':>12s} {'unit':9s} {'ratio':>6s}")
    compare_nets.compare_nets(args, show)
    if not args.nets:
        compare_rest(args, show)
    if not rows:
        sys.exit(f"error: no row's name contains \"{args.filter}\"")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")
    peers = f"PyTorch {importlib.metadata.version('torch')} with subnormals flushed"
    if any("/jax" in r["name"] for r in rows):
        peers += f", JAX {importlib.metadata.version('jax')}"
    note = (f"{datetime.date.today():%Y-%m-%d}, {machine.machine()}; {args.threads} threads, float32, {peers}; "
            f"nets: median of {args.steps} steps, {args.rounds} alternating rounds{spread_in_words(rows)}"
            f"{args.watch.in_words()}.")
    if args.capability:
        note = note.replace("; ", f" limited to {args.capability.upper()}; ", 1)
    if table := args.table or args.capability:
        write_goals(ROOT / "docs/compare.md", rows, note, table)
    else:
        write_tables(rows, note)
    slow = [r["name"] for r in rows if r["ratio"] < 1]
    print(f"{len(rows)} rows, {len(rows) - len(slow)} in Levin's favour" + (f"; behind: {', '.join(slow)}" if slow else ""))


if __name__ == "__main__":
    main()
