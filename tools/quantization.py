"""Measures int8 weights beside float32 and beside PyTorch, and writes the tables of docs/deploy.md.

Usage: tools/quantization.py; build deploy, classifier and levin_bench_quantized first, and train with ./run mnist.
PyTorch is the one of ./run compare; without it its columns are empty.
"""
import argparse
import datetime
import os
import pathlib
import platform
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / "build/release/bin"
PYTHON = ROOT / "build/peers/venv/bin/python"
PAGE = ROOT / "docs/deploy.md"


def run(*command):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run([str(c) for c in command], cwd=ROOT, env=environment, check=True, capture_output=True,
                          text=True).stdout


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def replace(page, name, text):
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", page, flags=re.S)


def layers():
    """The table of single layers: Levin and PyTorch measured one after the other."""
    ours = [line.split("\t") for line in run(BIN / "levin_bench_quantized").splitlines()]
    theirs = {}
    if args.python.exists():
        for line in run(args.python, "bench/peers/torch_quantized.py").splitlines():
            name, batch, *times = line.split("\t")
            theirs[name, batch] = times
    rows = ["| layer | batch | float32, us | weight-only | dynamic | PyTorch float32, us | PyTorch dynamic |",
            "|---|---|---|---|---|---|---|"]
    for name, batch, full, weight_only, dynamic in ours:
        peer = theirs.get((name, batch))
        columns = [name, batch, full, *(f"{t} ({float(full) / float(t):.2f} x)" for t in (weight_only, dynamic))]
        columns += [peer[0], f"{peer[1]} ({float(peer[0]) / float(peer[1]):.2f} x)"] if peer else ["", ""]
        rows.append("| " + " | ".join(columns) + " |")
    return "\n".join(rows)


def network():
    """The table of the trained network, from the example."""
    run(BIN / "deploy", "--from", "runs/mnist/best")
    rows = ["| LeNet on Fashion-MNIST | bytes of the file | accuracy | us, one image | us an image, batch of 64 |",
            "|---|---|---|---|---|"]
    for line in run(BIN / "classifier").splitlines()[1:-1]:
        rows.append("| " + " | ".join(line.split()) + " |")
    return "\n".join(rows)


parser = argparse.ArgumentParser()
parser.add_argument("--python", type=pathlib.Path, default=PYTHON, help="interpreter that has PyTorch")
args = parser.parse_args()
where = f"{processor()}, one thread, {datetime.date.today()}."
text = PAGE.read_text()
text = replace(text, "network", f"{network()}\n\n{where}")
text = replace(text, "layers", f"{layers()}\n\n{where}")
PAGE.write_text(text)
