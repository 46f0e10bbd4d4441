"""./run compare profiles [--update]: where the time of a training step goes, net by net, beside the machine's rates.

The rates are those that the last `./run bench` wrote into docs/performance.md. --update rewrites the table there.
"""
import argparse
import datetime
import pathlib
import re
import sys

import compare_nets
import machine

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "bench"))
import page  # noqa: E402

SHOWN = 3  # kernels of a net: those that take longest above their floors


def rates(text):
    """Returns the page's GFLOP/s of multiply-adds and GB/s of a copy."""
    found = re.search(r"Measured peaks: (\d+) GFLOP/s of float32 multiply-adds, (\d+) GB/s of a copy", text)
    if not found:
        sys.exit(f"error: {page.PAGE} has no measured peaks; ./run bench --update writes them")
    return found[1], found[2]


def profile(net, args, peaks):
    """Returns the ms of a step, of its kernels and of their floors, and (kernel, ms, floor ms) of each kernel."""
    steps = min(args.steps, 20) if net in compare_nets.HEAVY else args.steps
    out = compare_nets.run([compare_nets.BIN / "levin_compare_nets", net, "--threads", args.threads, "--steps", steps,
                            "--profile", *peaks])
    whole = re.search(r"step ([\d.]+) ms, kernels ([\d.]+) ms, floor ([\d.]+) ms", out)
    kernels = re.findall(r"^(\w+) +[\d.]+ +([\d.]+) +([\d.]+) +[\d.]+ +[\d.]+$", out, flags=re.M)
    return [float(x) for x in whole.groups()], [(name, float(ms), float(floor)) for name, ms, floor in kernels]


def line(net, whole, kernels):
    step, inside, floor = whole
    above = sorted(((ms - least, name, ms) for name, ms, least in kernels), reverse=True)[:SHOWN]
    where = ", ".join(f"`{name}` {over:.2f} of {ms:.2f}" for over, name, ms in above if over >= 0.01 * step)
    return [net, f"{step:.2f}", f"{floor:.2f}", f"{floor / step:.2f}", where or "nothing above 1 %", f"{max(step - inside, 0):.2f}"]


def main():
    parser = argparse.ArgumentParser(prog="./run compare profiles", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the table into docs/performance.md")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    path = compare_nets.ROOT / page.PAGE
    peaks = rates(path.read_text())
    head = ["net", "step, ms", "floor, ms", "share", "ms above the floor, of the kernel's own", "outside kernels, ms"]
    lines = [line(net, *profile(net, args, peaks)) for net in compare_nets.GOALS]
    text = (f"{datetime.date.today():%Y-%m-%d}, {machine.machine()}; {args.threads} threads, {peaks[0]} GFLOP/s, {peaks[1]} GB/s.\n\n"
            + page.table(head, ["---", "---:", "---:", "---:", "---", "---:"], lines))
    print(text)
    if args.update:
        path.write_text(page.replace_part(path.read_text(), "profiles", text))


if __name__ == "__main__":
    main()
