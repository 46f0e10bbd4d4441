#!/usr/bin/env python3
"""Compares the test accuracy on Fashion-MNIST under lossy strategies with that under ddp, over several seeds.

Each mean must be within --points percentage points of that of ddp with as many ranks. Build first:
cmake --build --preset release --target levin_bench_lossy_training
"""
import argparse
import pathlib
import statistics
import subprocess
import sys

BINARY = pathlib.Path(__file__).resolve().parent.parent / "build/release/bin/levin_bench_lossy_training"
# Ranks that step on their own gradients need scaled learning rates with Adam; see docs/distributed.md.
OWN = "--optimizer adam --strategy bagua --bagua-scale-lr sqrt --bagua-algorithm"
# Grouped by the run that each is compared with.
RUNS = {
    "ddp": {
        "horovod fp16": "--strategy horovod --gradient-compression fp16 --scale-lr false",
        "bytegrad": "--strategy bagua --bagua-algorithm bytegrad",
        "decentralized all": "--strategy bagua --bagua-algorithm decentralized",
        "decentralized shift_one": "--strategy bagua --bagua-algorithm decentralized --bagua-peers shift_one",
        "low_precision_decentralized": "--strategy bagua --bagua-algorithm low_precision_decentralized",
        "async": "--strategy bagua --bagua-algorithm async --bagua-warmup-steps 100 --bagua-sync-interval-ms 20",
    },
    "ddp --optimizer adam": {
        "qadam": "--strategy bagua --bagua-algorithm qadam --optimizer qadam",
        "decentralized all, adam": f"{OWN} decentralized",
        "decentralized shift_one, adam": f"{OWN} decentralized --bagua-peers shift_one",
        "low_precision_decentralized, adam": f"{OWN} low_precision_decentralized",
        "async, adam": f"{OWN} async --bagua-warmup-steps 100 --bagua-sync-interval-ms 20",
    },
}


def accuracy(options, seed, args):
    command = [BINARY, "--devices", args.ranks, "--max-epochs", args.epochs, "--seed", seed] + options
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))} failed:\n{result.stderr}")
    return 100 * float(result.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ", ".join(name for others in RUNS.values() for name in others)
    parser.add_argument("names", nargs="*", help="of these only, beside ddp: " + names)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--points", type=float, default=0.5)
    args = parser.parse_args()
    far = []
    for reference, others in RUNS.items():
        chosen = {name: options for name, options in others.items() if not args.names or name in args.names}
        if not chosen:
            continue
        exact = None
        for name, options in {reference: f"--strategy {reference}", **chosen}.items():
            each = [accuracy(options.split(), seed, args) for seed in range(args.seeds)]
            mean = statistics.mean(each)
            exact = mean if exact is None else exact
            print(f"{name:34} {mean:6.2f} %  {mean - exact:+5.2f}  ({', '.join(f'{a:.2f}' for a in each)})", flush=True)
            if exact - mean > args.points:
                far.append(name)
    if far:
        sys.exit(f"error: more than {args.points} points behind ddp: {', '.join(far)}")


if __name__ == "__main__":
    main()
