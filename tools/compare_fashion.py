"""Trains `./run mnist --model fast` to 91 % on Fashion-MNIST, with ten seeds, and PyTorch with the same recipe beside it.

The two take turns. The seconds are those of the whole process: start, reading the files, training, validation and test.
--update writes the table into docs/compare.md.
"""
import argparse
import datetime
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import machine
import torch
from compare import BIN, ROOT

RECIPE = ["--model", "fast", "--max-epochs", "1", "--batch-size", "64", "--lr", "0.006"]
GOAL = 0.91
PAGE = ROOT / "docs/compare.md"
START, END = "<!-- fashion:begin -->", "<!-- fashion:end -->"


def run(command):
    """Returns the test accuracy and the seconds of a process."""
    start = time.perf_counter()
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=ROOT)
    seconds = time.perf_counter() - start
    found = re.search(r"^result: test_accuracy=([\d.]+)", result.stdout, flags=re.M)
    if result.returncode != 0 or not found:
        sys.exit(f"error: {command[0]} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return float(found[1]), seconds


def cells(name, runs):
    accuracies, seconds = zip(*runs)
    return (f"| {name} | {100 * statistics.mean(accuracies):.2f} % | {100 * min(accuracies):.2f} to {100 * max(accuracies):.2f} % "
            f"| {statistics.median(seconds):.1f} | {min(seconds):.1f} to {max(seconds):.1f} |")


def main():
    parser = argparse.ArgumentParser(prog="./run compare fashion", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--update", action="store_true", help="write the table into docs/compare.md")
    args = parser.parse_args()
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, args.seeds + 1):
            common = [*RECIPE, "--seed", seed, "--threads", args.threads]
            ours.append(run([BIN / "mnist", *common, "--default-root-dir", folder]))
            theirs.append(run([sys.executable, "bench/peers/torch_fashion.py", *common]))
            print(f"seed {seed}: Levin {100 * ours[-1][0]:.2f} % in {ours[-1][1]:.1f} s, "
                  f"PyTorch {100 * theirs[-1][0]:.2f} % in {theirs[-1][1]:.1f} s", flush=True)
    version = torch.__version__
    ratio = statistics.median(t for _, t in theirs) / statistics.median(t for _, t in ours)
    text = "\n".join([
        f"{datetime.date.today():%Y-%m-%d}, {machine.machine()}; {args.threads} threads, float32, {args.seeds} seeds, in turns. "
        f"PyTorch takes {ratio:.1f} times as long.", "",
        "| | test accuracy, mean | least to greatest | seconds, median | least to greatest |", "|---|---:|---:|---:|---:|",
        cells(f"`./run mnist {' '.join(RECIPE)}`", ours), cells(f"PyTorch {version}, the same recipe", theirs)])
    print(text)
    if args.update:
        old = PAGE.read_text()
        PAGE.write_text(re.sub(f"{START}.*?{END}", lambda _: f"{START}\n{text}\n{END}", old, flags=re.S))
    mean = statistics.mean(a for a, _ in ours)
    if mean < GOAL:
        sys.exit(f"error: the mean test accuracy is {100 * mean:.2f} %, below {100 * GOAL:.1f} %")


if __name__ == "__main__":
    main()
