#!/usr/bin/env python3
"""Measures what a build costs from an empty compiler cache: CPU seconds (user + system) by module and the ten most
expensive compilations; and the cost of `#include <levin/levin.h>` in a program.

  tools/build_cost.py [--preset P] [--update] [TARGET...]
  tools/build_cost.py --umbrella FOLDER    prints the compiler's memory (MB) for that include; FOLDER is configured

Builds the targets (default: mnist) in build/cost-P with the compiler cache off, sample programs as `./run` does.
--update writes the table into docs/building.md. As a compiler launcher (--record FILE COMMAND...) it appends one line
per compilation to FILE."""
import argparse
import collections
import datetime
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "building.md"
MODULES = ("core", "kernels", "autograd", "nn", "optim", "data", "interop", "distributed", "trainer", "c_api",
           "emulator", "tests", "examples")


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def record(log, command):
    """Runs one compiler command and records its CPU seconds and its output file."""
    status = subprocess.run(command).returncode
    output = command[command.index("-o") + 1] if "-o" in command else command[-1]
    with open(log, "a") as f:
        f.write(f"{cpu_seconds():.3f}\t{output}\n")
    return status


def module_of(output):
    """Returns the module of an object file, from the name of its batch or else from its path."""
    batch = re.search(r"/(?:Unity/unity|batches/simd)_([a-z]+)_", output)
    if batch:
        return batch.group(1)
    parts = output.split("/")
    if parts[0] == "tests" or parts[0] == "examples":
        return parts[0]
    return next((p for p in parts if p in MODULES), "precompiled headers" if "cmake_pch" in output else "other")


def simd_of(targets):
    """Returns the LEVIN_SIMD with which `./run` configures a fresh folder for these targets."""
    return "native" if all(t == "levin_library_tests" or (ROOT / "examples" / t).is_dir() for t in targets) else "all"


def build(preset, targets):
    """Builds `targets` in a fresh folder; returns wall and CPU seconds, and CPU seconds by object file."""
    folder = ROOT / "build" / f"cost-{preset}"
    shutil.rmtree(folder, ignore_errors=True)
    log = folder.parent / f"cost-{preset}.tsv"
    log.unlink(missing_ok=True)
    environment = dict(os.environ, CCACHE_DISABLE="1")
    subprocess.run(["cmake", "--preset", preset, "-B", str(folder), f"-DLEVIN_SIMD={simd_of(targets)}",
                    f"-DCMAKE_CXX_COMPILER_LAUNCHER={sys.executable};{__file__};--record;{log}"],
                   cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    start, cpu = time.monotonic(), cpu_seconds()
    subprocess.run(["ninja", "-C", str(folder), *targets], env=environment, check=True, stdout=subprocess.DEVNULL)
    wall, cpu = time.monotonic() - start, cpu_seconds() - cpu
    files = {}
    for line in log.read_text().splitlines():
        seconds, output = line.split("\t")
        files[output] = float(seconds)
    return wall, cpu, files


def umbrella(folder, *options):
    """Compiles `#include <levin/levin.h>` in the configuration of a build folder, and returns what GCC reports."""
    include = [f"-I{ROOT / m / 'include'}" for m in MODULES if (ROOT / m / "include").is_dir() and m != "emulator"]
    command = ["g++", "-std=c++20", "-fsyntax-only", "-x", "c++", *include,
               f"-I{folder / 'generated' / 'include'}", *options, "-"]
    return subprocess.run(command, input="#include <levin/levin.h>\n", check=True, text=True,
                          stderr=subprocess.PIPE).stderr


def umbrella_seconds(folder):
    """Returns the CPU seconds that GCC uses for levin.h, the minimum of three runs."""
    seconds = []
    for _ in range(3):
        before = cpu_seconds()
        umbrella(folder)
        seconds.append(cpu_seconds() - before)
    return min(seconds)


def umbrella_megabytes(folder):
    """Returns the megabytes that GCC uses for levin.h."""
    total = re.search(r"^ *TOTAL .* (\d+)([kM])\s*$", umbrella(folder, "-ftime-report"), re.MULTILINE)
    return round(int(total.group(1)) / (1 if total.group(2) == "M" else 1024))


def machine():
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    simd = "AVX-512" if " avx512f" in pathlib.Path("/proc/cpuinfo").read_text() else "AVX2"
    return f"{model.group(1).strip() if model else 'unknown CPU'} ({simd}), {os.cpu_count()} cores"


def report(preset, targets, wall, cpu, files, include):
    """Returns the tables in Markdown."""
    modules, count = collections.Counter(), collections.Counter()
    for output, seconds in files.items():
        modules[module_of(output)] += seconds
        count[module_of(output)] += 1
    rows = [f"`{' '.join(targets)}`, preset {preset}, LEVIN_SIMD={simd_of(targets)}: {cpu:.0f} s of CPU time "
            f"(user + system), {wall:.0f} s of wall time. {machine()}, {datetime.date.today()}.", "",
            "| module | CPU seconds | compilations |", "|---|---:|---:|"]
    rows += [f"| {name} | {seconds:.1f} | {count[name]} |" for name, seconds in modules.most_common()]
    rows += ["", "| most expensive compilations | CPU seconds |", "|---|---:|"]
    for output, seconds in sorted(files.items(), key=lambda item: -item[1])[:10]:
        name = re.sub(r"^.*?\.dir/|\.o$", "", output)
        rows.append(f"| `{name}` | {seconds:.1f} |")
    rows += ["", f"`#include <levin/levin.h>` in a program: {include[0]:.1f} s of CPU time and {include[1]} MB of the "
                 "compiler's memory (`g++ -std=c++20 -fsyntax-only`)."]
    return "\n".join(rows)


def update_page(text):
    start, end = "<!-- build_cost: start -->", "<!-- build_cost: end -->"
    page = PAGE.read_text()
    before, rest = page.split(start)
    after = rest.split(end)[1]
    PAGE.write_text(f"{before}{start}\n{text}\n{end}{after}")


def main():
    if len(sys.argv) > 3 and sys.argv[1] == "--record":
        sys.exit(record(sys.argv[2], sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="release")
    parser.add_argument("--update", action="store_true", help="write the tables into docs/building.md")
    parser.add_argument("--umbrella", metavar="FOLDER", type=pathlib.Path, help="print GCC's memory for levin.h, in MB")
    parser.add_argument("targets", nargs="*", default=["mnist"])
    arguments = parser.parse_args()
    if arguments.umbrella:
        print(umbrella_megabytes(arguments.umbrella))
        return
    built = build(arguments.preset, arguments.targets)
    folder = ROOT / "build" / f"cost-{arguments.preset}"
    include = umbrella_seconds(folder), umbrella_megabytes(folder)
    text = report(arguments.preset, arguments.targets, *built, include)
    print(text)
    if arguments.update:
        update_page(text)


if __name__ == "__main__":
    main()
