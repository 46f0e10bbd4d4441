#!/usr/bin/env python3
"""Compares all-reduce over the ranks of this host by size: Levin's transports, raw Gloo over loopback, MPI and PyTorch.

"in_place" reduces tensors that all ranks map, as the buckets of DistributedDataParallel; "shared" copies other tensors
through the same memory. Values are those of the best round. Each program runs alone in a round, except that Levin over
TCP and raw Gloo are interleaved; "tcp / gloo" is the median of their ratios, which is more robust to other programs.

Peers that are not installed are skipped: MPI needs mpicxx and mpirun (Debian: libopenmpi-dev, openmpi-bin), PyTorch a
Python that has it (--python). Build first: cmake --build --preset release --target levin_bench_all_reduce.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "build/release/bin/levin_bench_all_reduce"
PEERS = ROOT / "build/peers"


def lines_of(command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=ROOT, **options)
    if result.returncode != 0:
        sys.exit(f"error: {command[0]} failed:\n{result.stderr}")
    return [line.split() for line in result.stdout.splitlines() if len(line.split()) in (3, 4)]


def mpi(ranks):
    if not (shutil.which("mpicxx") and shutil.which("mpirun")):
        return []
    PEERS.mkdir(parents=True, exist_ok=True)
    program = PEERS / "mpi_all_reduce"
    command = ["mpicxx", "-std=c++17", "-O3", "bench/peers/mpi_all_reduce.cpp", "-o", program]
    subprocess.run(command, cwd=ROOT, check=True)
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return lines_of(["mpirun", *root, "--oversubscribe", "-n", ranks, program])


def torch(python, ranks):
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode != 0:
        return []
    return lines_of([python, "bench/peers/torch_all_reduce.py", ranks])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of all programs; the best one of each counts")
    parser.add_argument("--python", default=sys.executable, help="Python interpreter that has PyTorch")
    parser.add_argument("--json", help="also write the results to this file")
    args = parser.parse_args()
    if not BINARY.exists():
        sys.exit(f"error: {BINARY.relative_to(ROOT)} is missing; build the target levin_bench_all_reduce")
    rates = collections.defaultdict(dict)  # GB/s by size and program
    ratios = collections.defaultdict(list)  # ratio of tcp to gloo, by size
    for _ in range(args.rounds):
        rows = mpi(args.ranks) + torch(args.python, args.ranks)
        for together in ("in_place", "shared", "tcp,gloo"):
            rows += lines_of([BINARY, "--ranks", args.ranks, "--only", together])
        for _, size, ratio in (row for row in rows if len(row) == 3):
            ratios[int(size)].append(float(ratio))
        for name, size, _, rate in (row for row in rows if len(row) == 4):
            rates[int(size)][name] = max(float(rate), rates[int(size)].get(name, 0.0))
    names = [n for n in ("in_place", "shared", "tcp", "gloo", "mpi", "torch") if any(n in row for row in rates.values())]
    print(f"GB/s of all-reduce on {args.ranks} ranks of one host")
    print(f"{'bytes':>10s}" + "".join(f"{n:>10s}" for n in names) + f"{'tcp / gloo':>12s}")
    for size, row in sorted(rates.items()):
        print(f"{size:10d}" + "".join(f"{row[n]:10.3f}" for n in names) + f"{statistics.median(ratios[size]):12.2f}")
    peers = [n for n in names if n not in ("in_place", "shared", "tcp")]
    pairs = [(own, peer) for own in ("in_place", "shared") for peer in peers]
    print("\nratios\n" + f"{'bytes':>10s}" + "".join(f"{f'{own} / {peer}':>18s}" for own, peer in pairs))
    for size, row in sorted(rates.items()):
        print(f"{size:10d}" + "".join(f"{row[own] / row[peer]:18.2f}" for own, peer in pairs))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(
            {"ranks": args.ranks, "GB/s": rates, "tcp/gloo": {s: statistics.median(r) for s, r in ratios.items()}},
            indent=1))


if __name__ == "__main__":
    main()
