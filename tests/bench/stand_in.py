#!/usr/bin/env python3
"""Stands in for levin_bench in the tests of ./run bench: the same options and output, with made-up seconds.

STAND_IN_FACTOR multiplies the times of relu, STAND_IN_SPEED the speed of the machine; STAND_IN_LOG collects the options.
"""
import json
import os
import random
import sys

ROWS = {"relu/(4096,1024)": (1e-4, 32e6, 4e6), "exp/(4096,1024)": (3e-4, 32e6, 8e7), "sort/(256,1024)": (7e-4, 3e6, 0.0),
        "compare/pad reflect fwd": (1e-5, 8e6, 0.0), "matmul/(256,256)/(256,256)": (7e-5, 8e5, 3.3e7), "copy/(64)": (2e-7, 512.0, 0.0),
        "gemm_ladder/256/04_packed": (9e-5, 8e5, 3.3e7), "gemm_ladder/256/06_in_place": (7e-5, 8e5, 3.3e7),
        "gemm_ladder/256/openblas": (8e-5, 8e5, 3.3e7)}


def main(argv):
    filters = [argv[i + 1] for i, word in enumerate(argv) if word == "--filter"]
    names = [name for name in ROWS if not filters or any(f in name for f in filters)]
    if "--list" in argv:
        print("\n".join(f"{name}/real_time" for name in names))
        return
    if "STAND_IN_LOG" in os.environ:
        with open(os.environ["STAND_IN_LOG"], "a") as log:
            log.write(" ".join(argv) + "\n")
    speed = float(os.environ.get("STAND_IN_SPEED", "1"))
    factor = float(os.environ.get("STAND_IN_FACTOR", "1"))
    benchmarks = []
    for name in names:
        seconds, traffic, flops = ROWS[name]
        seconds *= random.gauss(1, 0.01) / speed * (factor if name.startswith("relu") else 1)
        benchmarks.append({"name": f"{name}/real_time", "run_type": "iteration", "real_time": seconds * 1e6,
                           "time_unit": "us", "bytes": traffic, "flops": flops,
                           "speed GFLOP/s": 550 * speed * random.gauss(1, 0.005),
                           "speed GB/s": 150 * speed * random.gauss(1, 0.005)})
    print(json.dumps({"context": {"peak GFLOP/s": "570.0", "peak GB/s": "160.0", "threads": "2",
                                  "instruction set": "AVX3", "compiler": "GNU 12.2.0", "flags": " -O3"},
                      "benchmarks": benchmarks}))


main(sys.argv[1:])
