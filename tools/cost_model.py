#!/usr/bin/env python3
"""Predicts the cost of an all-reduce over many ranks: the alpha-beta model of rings and trees, against measured points.

A round of messages takes alpha + bytes * beta. Neighbours also compare their calls: a ring with its first round of
messages, a tree in a separate round before.
- ring:  2 (p - 1) rounds of n / p bytes; small messages (16 KiB on up to 8 ranks, 1 MiB on 2) go to
         all ranks in one round;
- tree:  reduce and broadcast, 2 ceil(log2 p) rounds of n bytes.
R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH" (2005).

The points are all-reduces over 2 to 8 ranks of this host, and broadcasts with an answer from the last rank, which is
half a tree. Small messages over connections with added latency show alpha; large ones without latency show beta, which
here is the cost of copying. alpha and beta are fitted to the points of --fit ranks; the others are predicted.
Build first: cmake --build --preset release --target levin_bench_all_reduce.
"""
import argparse
import math
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "build/release/bin/levin_bench_all_reduce"


def ring(p, n):
    """Returns the number of rounds and the bytes sent in sequence: the factors of alpha and beta."""
    if (p <= 8 and n <= 16 << 10) or (p == 2 and n <= 1 << 20):
        return 1, (p - 1) * n
    return 2 * (p - 1), 2 * (p - 1) / p * n


def tree(p, n):
    depth = math.ceil(math.log2(p))
    return 1 + 2 * depth, 2 * depth * n


def half_tree(p, n):
    """Returns the same for a broadcast followed by a message of one number from the last rank."""
    depth = bin(p - 1).count("1")
    return 1 + depth + 1, depth * n


SHAPES = {"ring": ring, "tree": half_tree}
CORES = os.cpu_count()


def factors(point):
    """Returns the factors of a point measured on one host: a message occupies two cores, so not all are parallel.
    Without latency a round takes no time apart from its bytes."""
    kind, p, n, late, _ = point
    rounds, path = SHAPES[kind](p, n)
    of_all_ranks = p * path if kind == "ring" else (p - 1) * n
    return rounds if late else 0, max(path, 2 / CORES * of_all_ranks)


def measure(ranks, latency):
    command = [BINARY, "--ranks", ranks, "--latency-ms", latency]
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=ROOT)
    if result.returncode != 0:
        sys.exit(f"error: {BINARY.name} failed:\n{result.stderr}")
    for line in result.stdout.splitlines():
        kind, size, ms, _ = line.split()
        yield kind, ranks, int(size), latency > 0, float(ms) / 1e3


def fit(points):
    """Returns the alpha and beta that minimise the sum of squared relative errors."""
    aa = ab = bb = ya = yb = 0.0
    for point in points:
        a, b = (factor / point[-1] for factor in factors(point))
        aa, ab, bb, ya, yb = aa + a * a, ab + a * b, bb + b * b, ya + a, yb + b
    determinant = aa * bb - ab * ab
    return (ya * bb - yb * ab) / determinant, (aa * yb - ab * ya) / determinant


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency-ms", type=int, default=5)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 3, 4, 8])
    parser.add_argument("--fit", type=int, nargs="+", default=[2, 4], help="ranks whose points fit alpha and beta")
    args = parser.parse_args()
    if not BINARY.exists():
        sys.exit(f"error: {BINARY.relative_to(ROOT)} is missing; build the target levin_bench_all_reduce")
    points = [point for ranks in args.ranks for latency in (args.latency_ms, 0) for point in measure(ranks, latency)]
    alpha, beta = fit([p for p in points if p[1] in args.fit])
    print(f"alpha {1e3 * alpha:.2f} ms, 1 / beta {1e-9 / beta:.2f} GB/s, fitted to the points of {args.fit} ranks")
    print(f"{'':6s}{'ranks':>6s}{'bytes':>10s}{'ms':>9s}{'model':>9s}{'error':>8s}")
    worst = 0.0
    for point in points:
        kind, p, n, _, seconds = point
        rounds, transferred = factors(point)
        model = rounds * alpha + transferred * beta
        error = model / seconds - 1
        mark = "" if p in args.fit else "  predicted"
        worst = max(worst, abs(error) if mark else 0.0)
        print(f"{kind:6s}{p:6d}{n:10d}{1e3 * seconds:9.2f}{1e3 * model:9.2f}{100 * error:7.1f}%{mark}")
    print(f"largest prediction error: {100 * worst:.1f} %")
    print(f"\nms per all-reduce, 8 to 1024 ranks\n{'ranks':>6s}" + "".join(f"{f'{k} {mb} MB':>14s}" for mb in (1, 25, 100)
                                                                  for k in ("ring", "tree")))
    for p in (8, 16, 32, 64, 128, 256, 512, 1024):
        costs = [shape(p, mb * 1e6) for mb in (1, 25, 100) for shape in (ring, tree)]
        print(f"{p:6d}" + "".join(f"{1e3 * (rounds * alpha + size * beta):14.1f}" for rounds, size in costs))


if __name__ == "__main__":
    main()
