#!/usr/bin/env python3
"""Measures training on a machine that two programs share: training steps of one program alone and of two at once, each
with one thread per core. A program's figure is the mean over its steps. Prints medians over the rounds as a table, and
with --update writes it to docs/guides/threads.md. With --other NAME=PROGRAM another build of levin_compare_nets takes
turns, such as one with LEVIN_THREADS=openmp. Build first: ninja -C build/release levin_compare_nets.
"""
import argparse
import datetime
import os
import pathlib
import statistics
import subprocess
import sys

from machine import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/guides/threads.md"
BEGIN, END = "<!-- shared machine: begin -->", "<!-- shared machine: end -->"
NETS = {"mlp": 400, "lenet": 100, "cnn": 20, "dcgan": 10, "gpt": 10}  # steps, a second or less on two cores


def items_per_second(program, net, steps, threads, at_once):
    """Runs `at_once` processes side by side and returns the rate of each."""
    command = [str(program), net, "--mean", "--threads", str(threads), "--steps", str(steps)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(at_once)]
    lines = [process.communicate()[0] for process in running]
    if any(process.returncode != 0 for process in running):
        sys.exit(f"error: {' '.join(command)} failed")
    return [float(line.split()[1]) for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", nargs="+", default=list(NETS), choices=list(NETS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--other", action="append", default=[], metavar="NAME=PROGRAM")
    parser.add_argument("--update", action="store_true", help=f"rewrite the table in {PAGE.relative_to(ROOT)}")
    args = parser.parse_args()
    programs = {"pool": ROOT / "build/release/bin/levin_compare_nets"}
    programs |= {name: pathlib.Path(path).resolve() for name, path in (other.split("=", 1) for other in args.other)}
    for path in programs.values():
        if not path.exists():
            sys.exit(f"error: {path} is missing; build the target levin_compare_nets")

    cores = len(os.sched_getaffinity(0))
    text = [f"{datetime.date.today()}, {machine()}; items per second over all steps, medians of {args.rounds} "
            "alternating rounds.", "",
            "| net | threads | alone | two at once, each | of half of the speed alone |", "|---|---|---:|---:|---:|"]
    for net in args.nets:
        alone, pairs = {name: [] for name in programs}, {name: [] for name in programs}
        for _ in range(args.rounds):
            for name, program in programs.items():
                alone[name] += items_per_second(program, net, NETS[net], cores, 1)
                pairs[name].append(min(items_per_second(program, net, NETS[net], cores, 2)))
        for name in programs:
            one, each = statistics.median(alone[name]), statistics.median(pairs[name])
            text.append(f"| {net} | {name} | {one:,.0f} | {each:,.0f} | {2 * each / one:.2f} |")
            print(text[-1], flush=True)
    if args.update:
        page = PAGE.read_text()
        before, after = page.index(BEGIN) + len(BEGIN), page.index(END)
        PAGE.write_text(page[:before] + "\n" + "\n".join(text) + "\n" + page[after:])


if __name__ == "__main__":
    main()
