"""./run compare profiles [--update] [--table NAME]: where the time of training steps and forward passes goes, net by net,
beside the rates of this machine, which are measured just before; and which ratio to the best peer would be left at the
floor.

The ratios are those of docs/compare.md's table NAME (goals), if this machine measured it. --update writes the profiles
between docs/performance.md's markers of the same name (profiles).
"""
import argparse
import datetime
import json
import pathlib
import re
import sys

import compare_nets
import machine

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "bench"))
import page  # noqa: E402

SHORT_ROW = "conv_ladder/128x16x28_to_16/forward/direct"  # any row that takes little time
SHOWN = 3  # kernels of a net: those that take longest above their floors


def rates():
    """Returns this machine's GFLOP/s of multiply-adds and GB/s of a copy: the best of three measurements."""
    command = [compare_nets.BIN / "levin_bench", "--filter", SHORT_ROW, "--benchmark_min_time=0.01", "--benchmark_format=json"]
    context = [json.loads(compare_nets.run(command))["context"] for _ in range(3)]
    return [max(float(c[f"peak {unit}"]) for c in context) for unit in ("GFLOP/s", "GB/s")]


def ratios(text, marker):
    """Returns the ratio to the best peer by net and work, as the table names it, where this machine measured the table."""
    found = re.search(rf"<!-- {marker}:begin -->\n(.*?)<!-- {marker}:end -->", text, flags=re.S)
    if not found or f", {machine.machine()};" not in found[1].splitlines()[0]:
        return {}
    rows = [[c.strip() for c in line.split("|")] for line in found[1].splitlines()[3:] if line.startswith("| ")]
    return {(cells[1], cells[2]): float(cells[7]) for cells in rows}


def profile(net, batch, args, peaks):
    """Returns the ms of a step, of its kernels and of their floors, and (kernel, ms, floor ms) of each kernel."""
    mode = ["--inference", batch] if batch else []
    out = compare_nets.run([compare_nets.BIN / "levin_compare_nets", net, *mode, "--threads", args.threads, "--steps",
                            compare_nets.steps_of(net, batch, "", args), "--profile", *peaks])
    whole = re.search(r"step ([\d.]+) ms, kernels ([\d.]+) ms, floor ([\d.]+) ms", out)
    kernels = re.findall(r"^(\w+) +[\d.]+ +([\d.]+) +([\d.]+) +[\d.]+ +[\d.]+$", out, flags=re.M)
    return [float(x) for x in whole.groups()], [(name, float(ms), float(floor)) for name, ms, floor in kernels]


def line(net, way, whole, kernels, ratio):
    """Returns the cells of a row. Times have three digits after the point where a millisecond is long."""
    step, inside, floor = whole
    ms = (lambda x: f"{x:.2f}") if step >= 1 else (lambda x: f"{x:.3f}")
    above = sorted(((own - least, name, own) for name, own, least in kernels), reverse=True)[:SHOWN]
    where = ", ".join(f"`{name}` {ms(over)} of {ms(own)}" for over, name, own in above if over >= 0.01 * step)
    left = [f"{ratio:.2f}", f"{ratio * step / floor:.2f}"] if ratio else ["-", "-"]
    return [net, compare_nets.WORDS[way], ms(step), ms(floor), f"{floor / step:.2f}", where or "nothing above 1 %",
            ms(max(step - inside, 0)), *left, str(compare_nets.GOALS[net][way])]


def main():
    parser = argparse.ArgumentParser(prog="./run compare profiles", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the table into docs/performance.md")
    parser.add_argument("--table", help="the tables of a machine other than that of the other tables, as in ./run compare")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    path = compare_nets.ROOT / page.PAGE
    marker = f"{args.table}-profiles" if args.table else "profiles"
    page.part_of(path.read_text(), marker)  # ends here, rather than after the measurement, if the page has no such table
    peaks = rates()
    ratio_of = ratios((compare_nets.ROOT / "docs/compare.md").read_text(), args.table or "goals")
    head = ["net", "work", "ms", "floor, ms", "share", "ms above the floor, of the kernel's own", "outside kernels, ms",
            "ratio", "at the floor", "goal"]
    lines = [line(net, way, *profile(net, batch, args, peaks), ratio_of.get((net, compare_nets.WORDS[way])))
             for way, batch in (("", 0), ("/b64", 64), ("/b1", 1)) for net in compare_nets.GOALS]
    text = (f"{datetime.date.today():%Y-%m-%d}, {machine.machine()}; {args.threads} threads, {peaks[0]:.0f} GFLOP/s, {peaks[1]:.0f} GB/s.\n\n"
            + page.table(head, ["---", "---", "---:", "---:", "---:", "---", "---:", "---:", "---:", "---:"], lines))
    print(text)
    if args.update:
        path.write_text(page.replace_part(path.read_text(), marker, text))


if __name__ == "__main__":
    main()
