"""Runs the benchmarks and prints GB/s or GFLOP/s next to the peer: OpenBLAS for a GEMM rung, else the measured peak.

Rows are `name`, `levin`, `peer`, `ratio`, `unit`; for a peak, ratio is the fraction of it that was reached.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "build/release/bin/levin_bench"


def main():
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__)
    parser.add_argument("filter", nargs="?", default="", help="regular expression on names")
    parser.add_argument("--json", help="also write the rows to this file")
    args = parser.parse_args()
    command = [BINARY, "--benchmark_format=json"] + ([f"--benchmark_filter={args.filter}"] if args.filter else [])
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0 or not result.stdout.strip():
        sys.exit(f"error: no benchmark's name matches \"{args.filter}\"" if args.filter else f"error: {result.stderr}")
    report = json.loads(result.stdout)
    peaks = {"GFLOP/s": float(report["context"]["peak GFLOP/s"]), "GB/s": float(report["context"]["peak GB/s"])}
    print(f"measured peaks: {peaks['GFLOP/s']:.0f} GFLOP/s float32, {peaks['GB/s']:.1f} GB/s copy\n")
    openblas = {b["name"].split("/")[1]: b["GFLOP/s"] for b in report["benchmarks"]
                if re.match("gemm_ladder/[^/]+/openblas", b["name"])}
    rows = []
    print(f"{'':58s} {'levin':>10s} {'peer':>10s} {'unit':8s} {'ratio':>6s}")
    for b in report["benchmarks"]:
        name = re.sub(r"/(real_time|min_time:[0-9.]+)", "", b["name"])
        bound_by_flops = b.get("GFLOP/s", 0) / peaks["GFLOP/s"] > b.get("GB/s", 0) / peaks["GB/s"]
        unit = "GFLOP/s" if bound_by_flops else "GB/s"
        rung = re.match("gemm_ladder/([^/]+)/(?!openblas)", name)
        peer = openblas.get(rung[1], peaks[unit]) if rung else peaks[unit]
        row = {"name": name, "levin": b.get(unit, 0.0), "peer": peer, "ratio": b.get(unit, 0.0) / peer, "unit": unit}
        rows.append(row)
        print(f"{name[:58]:58s} {row['levin']:10.2f} {peer:10.2f} {unit:8s} {row['ratio']:6.2f}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


main()
