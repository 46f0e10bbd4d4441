"""Measures operations and the GEMM ladder: seconds, GB/s, GFLOP/s, the share of the roofline and what bounds a row.

A FILTER is a part of a name; with several, a row needs one of them. tools/bench/rows.py describes the columns and
tools/bench/verdict.py the verdicts of --against. LEVIN_BENCH names another build's levin_bench, which is then run instead.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import subprocess
import sys

import page
import plots
import rows
import verdict

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import machine  # noqa: E402


def stop(sentence, status=1):
    print(f"error: {sentence}", file=sys.stderr)
    sys.exit(status)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        stop(f"{message}; ./run bench --help lists the options", 2)


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return int(text)


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of seconds")
    return value


def arguments(argv):
    parser = Parser(prog="./run bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="*", metavar="FILTER", help="part of a row's name")
    parser.add_argument("--list", action="store_true", help="print the names and measure nothing")
    parser.add_argument("--json", metavar="FILE", help="write the run with all samples, for --against")
    parser.add_argument("--csv", metavar="FILE", help="write the table")
    parser.add_argument("--svg", metavar="FILE", help="draw the roofline; with --against, the ratios of the times")
    parser.add_argument("--repetitions", type=positive, default=9, metavar="N",
                        help="samples of each row, each from a process of its own (default: 9)")
    parser.add_argument("--seconds", type=seconds, default=0.02, metavar="S", help="time of a sample (default: 0.02)")
    parser.add_argument("--threads", type=positive, metavar="N", help="threads of the kernels (default: all)")
    parser.add_argument("--against", metavar="OLD.json", help="compare with a run that --json wrote")
    parser.add_argument("--fail-if-slower", action="store_true", help="end with status 1 if a row is slower than in OLD.json")
    parser.add_argument("--update", action="store_true", help="rewrite docs/performance.md and its charts")
    args = parser.parse_intermixed_args(argv)
    if args.fail_if_slower and not args.against:
        parser.error("--fail-if-slower needs --against OLD.json")
    if args.update and args.filter:
        parser.error("--update rewrites the page from all rows, so it takes no FILTER")
    if args.against and args.repetitions < verdict.LEAST_SAMPLES:
        parser.error(f"--against needs --repetitions {verdict.LEAST_SAMPLES} or more")
    return args


def read_run(path):
    try:
        run = json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as problem:
        stop(f"{path} cannot be read as a run of ./run bench --json: {problem}")
    if (problem := rows.problem_of(run)) is not None:
        stop(f"{path} is not a run of ./run bench --json: {problem}")
    return run


def program():
    if "LEVIN_BENCH" in os.environ:
        return os.environ["LEVIN_BENCH"]
    script = ". tools/lib.sh && need $packages_build $packages_bench && build release levin_bench"
    if subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=ROOT).returncode != 0:
        sys.exit(1)
    return str(ROOT / "build/release/bin/levin_bench")


def output_of(command):
    try:
        result = subprocess.run(command, capture_output=True, text=True)
    except OSError as problem:
        stop(f"{command[0]} cannot be run: {problem}")
    if result.returncode != 0:
        stop(f"{' '.join(command)} ended with {result.returncode}: {result.stderr.strip()[-500:]}")
    return result.stdout


def names_of(binary, filters):
    """Returns the names that match; ends with one sentence if a filter matches none."""
    names = [name.removesuffix("/real_time") for name in output_of([binary, "--list"]).splitlines()]
    for part in filters:
        if not any(part in name for name in names):
            stop(f"no benchmark's name contains \"{part}\"; ./run bench --list prints the names")
    return [name for name in names if not filters or any(part in name for part in filters)]


def measure(binary, args, count):
    """Runs all rows once per repetition, so that the samples of a row are minutes apart and from several processes."""
    command = [binary, "--benchmark_format=json", f"--benchmark_min_time={args.seconds}"]
    for part in args.filter:
        command += ["--filter", part]
    if args.threads:
        command += ["--threads", str(args.threads)]
    reports = []
    for repetition in range(args.repetitions):
        print(f"==> measuring {count} rows: repetition {repetition + 1} of {args.repetitions}", file=sys.stderr)
        reports.append(json.loads(output_of(command)))
    return reports


def commit():
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True).stdout.strip()
    return (head or "unknown") + (" with changes" if changed else "")


def run_of(reports, args):
    context = reports[0]["context"]
    peaks, found = rows.rows_of(reports)
    return {"format": rows.FORMAT, "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            "commit": commit(),
            "machine": {"cpu": machine.cpu_model(), "cores": os.cpu_count(), "threads": int(context["threads"]),
                        "instruction_set": context["instruction set"]},
            "compiler": context["compiler"], "flags": context["flags"].strip(), "peaks": peaks,
            "repetitions": args.repetitions, "rows": found}


def print_rows(run):
    peaks = run["peaks"]
    print(f"measured peaks: {peaks['GFLOP/s']:.0f} GFLOP/s float32, {peaks['GB/s']:.1f} GB/s copy; "
          f"{rows.threads(run)}, {run['machine']['instruction_set']}\n")
    openblas = rows.openblas_ratios(run["rows"])
    width = max(20, *(min(len(row["name"]), 60) for row in run["rows"]))
    print(f"{'':{width}s} {'median':>10s} {'spread':>7s} {'GB/s':>8s} {'GFLOP/s':>8s} {'share':>6s}  bound")
    for row in run["rows"]:
        name = row["name"] if len(row["name"]) <= 60 else row["name"][:57] + "..."
        beside = f", {openblas[row['name']]:.2f} of OpenBLAS" if row["name"] in openblas else ""
        print(f"{name:{width}s} {rows.duration(row['median']):>10s} {row['spread']:7.0%} {row['GB/s']:8.2f} "
              f"{row['GFLOP/s']:8.2f} {row['share']:6.0%}  {row['bound']}{beside}")


def print_verdicts(old, run, path):
    """Prints the comparison, what is slower first, and returns the number of slower rows."""
    against = run["against"]
    speed = verdict.drift(old, run) if against["rows"] else None
    print(f"\nagainst {path} ({old['date']}, commit {old['commit']}); ratio: new time by old time, above 1 is slower")
    if old["machine"] != run["machine"]:
        print("The old run is of another machine or number of threads, so the ratios compare machines too.")
    if speed:
        print(f"The machine's speed by that in the old run: arithmetic {speed['GFLOP/s']:.2f}, copy {speed['GB/s']:.2f}.")
    order = {"slower": 0, "faster": 1, "unsure": 2, "same": 3}
    counts = dict.fromkeys(order, 0)
    for v in sorted(against["rows"], key=lambda v: (order[v["verdict"]], -v["ratio"])):
        counts[v["verdict"]] += 1
        if v["verdict"] != "same":
            print(f"{v['verdict']:7s} {v['ratio']:6.2f}  at equal speed {v['ratio_at_equal_speed']:6.2f}  {v['name']}")
    for name in against["new"]:
        print(f"new      {name}")
    for name in against["missing"]:
        print(f"missing  {name}")
    print(", ".join(f"{count} {name}" for name, count in counts.items()) +
          f", {len(against['new'])} new, {len(against['missing'])} missing")
    return counts["slower"]


def write(path, text):
    path = pathlib.Path(path)
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text)
        part.replace(path)
    except OSError as problem:
        stop(f"{path} cannot be written: {problem}")


def main(argv):
    args = arguments(argv)
    old = read_run(args.against) if args.against else None
    for path in (args.json, args.csv, args.svg):
        if path and not pathlib.Path(path).absolute().parent.is_dir():
            stop(f"{path} cannot be written: its folder does not exist")
    binary = program()
    names = names_of(binary, args.filter)
    if args.list:
        print("\n".join(names))
        return 0
    run = run_of(measure(binary, args, len(names)), args)
    print_rows(run)
    slower = 0
    if old is not None:
        if args.filter:  # rows that were not asked for are not missing
            old = {**old, "rows": [row for row in old["rows"] if any(part in row["name"] for part in args.filter)]}
        run["against"] = verdict.compare(old, run)
        slower = print_verdicts(old, run, args.against)
    if args.json:
        write(args.json, json.dumps(run, indent=1) + "\n")
    if args.csv:
        write(args.csv, rows.csv_of(run))
    if args.svg:
        write(args.svg, plots.changes(run) if old is not None else plots.roofline(run))
    if args.update:
        page.write_kernels(ROOT, run)
        page.write_ratios(ROOT)
    return 1 if slower and args.fail_if_slower else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
