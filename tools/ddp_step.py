#!/usr/bin/env python3
"""Compares a training step of DDP on this host, with one thread per rank: Levin with PyTorch, and N ranks with one.

Both sides alternate for --rounds rounds; results are medians over the rounds. PyTorch is skipped if --python has none.
Build first: cmake --build --preset release --target levin_bench_ddp_step.
"""
import argparse
import collections
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "build/release/bin/levin_bench_ddp_step"


def figures_of(command):
    """Returns {(side, ranks, net, how): ms} as printed by the programs."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=ROOT)
    if result.returncode != 0:
        sys.exit(f"error: {command[0]} failed:\n{result.stderr}")
    rows = [line.split() for line in result.stdout.splitlines()]
    return {(row[0], int(row[1]), row[2], row[3]): float(row[4]) for row in rows if len(row) == 5}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--nets", nargs="+", default=["mlp", "lenet", "cnn"], choices=["mlp", "lenet", "cnn"])
    parser.add_argument("--steps", type=int, default=60, help="steps of each program per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="Python interpreter that has PyTorch")
    args = parser.parse_args()
    if not BINARY.exists():
        sys.exit(f"error: {BINARY.relative_to(ROOT)} is missing; build the target levin_bench_ddp_step")
    peer = subprocess.run([args.python, "-c", "import torch"], capture_output=True).returncode == 0
    took = collections.defaultdict(list)
    for _ in range(args.rounds):
        for net in args.nets:
            for ranks in (1, args.ranks):
                found = figures_of([BINARY, "--ranks", ranks, "--net", net, "--steps", args.steps])
                if peer:
                    found |= figures_of([args.python, "bench/peers/torch_ddp.py", ranks, net, args.steps])
                for key, ms in found.items():
                    took[key].append(ms)
    ms = {key: statistics.median(values) for key, values in took.items()}

    print(f"ms per step with a batch of 128 per rank; {args.ranks} ranks with one thread each on one host")
    print(f"{'':14s}{'one rank':>10s}{'alone':>10s}{'behind':>10s}{'ddp':>10s}{'one / ddp':>11s}"
          f"{'behind - alone':>16s}{'ddp - alone':>13s}")
    for side in ("levin", "torch"):
        for net in args.nets if side == "levin" or peer else ():
            one, alone, behind, ddp = (ms.get(key) for key in (
                (side, 1, net, "alone"), (side, args.ranks, net, "alone"), (side, args.ranks, net, "behind"),
                (side, args.ranks, net, "ddp")))
            after = (f"{behind:10.3f}", f"{behind - alone:16.3f}") if behind else (f"{'':10s}", f"{'':16s}")
            print(f"{side + ' ' + net:14s}{one:10.3f}{alone:10.3f}{after[0]}{ddp:10.3f}{one / ddp:11.2f}{after[1]}"
                  f"{ddp - alone:13.3f}")
    for net in args.nets if peer else ():
        print(f"PyTorch's ddp step / ours, {net}: "
              f"{ms['torch', args.ranks, net, 'ddp'] / ms['levin', args.ranks, net, 'ddp']:.2f}")


if __name__ == "__main__":
    main()
