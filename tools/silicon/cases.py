"""cases.py [options] PROGRAM: runs each test case of a doctest program in its own process, several in parallel.

A case that fails or runs too long is repeated with CUDA_LAUNCH_BLOCKING=1, so that the error names the failing call,
and then under compute-sanitizer's memcheck, racecheck, initcheck and synccheck, if the tool is installed. Their output
is in FOLDER/<number>_<case>.txt. --once leaves the repetitions out. Cases of the test suite "holds a stream" run with
CUDA_MODULE_LOADING=EAGER.

The last line is `result: N cases, N failed, N left out`; the status is 1 unless all passed.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
HOLDS_A_STREAM = "holds a stream"


def listed(program, *filters):
    """Returns the names of the program's test cases that match the filters."""
    text = subprocess.run([program, "--list-test-cases", "--no-colors=true", *filters], check=True, capture_output=True,
                          text=True, timeout=60).stdout
    return [line for line in text.splitlines() if line and not line.startswith(("[doctest]", "=="))]


def filter_of(name):
    """Returns the option that selects only this case. doctest splits names at commas; * and ? are wildcards."""
    return "-tc=" + name.replace("\\", "\\\\").replace(",", "\\,")


class Case:
    def __init__(self, number, name, command, environment):
        self.number, self.name, self.command, self.environment = number, name, command, environment
        self.status, self.seconds, self.notes = "left out", 0.0, []

    def file(self, folder):
        return folder / f"{self.number:03}_{re.sub(r'[^A-Za-z0-9]+', '_', self.name)[:60].strip('_')}.txt"


class Runner:
    def __init__(self, args):
        self.args, self.start = args, time.monotonic()
        self.sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
        self.lock = threading.Lock()

    def left(self):
        return self.args.seconds - (time.monotonic() - self.start)

    def run(self, command, environment, seconds):
        """Returns (status, output); the status is "passed" or the reason of the failure."""
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=seconds)
            code = process.returncode
            status = "passed" if code == 0 else f"status {code}" if code > 0 else f"signal {-code}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            status = f"longer than {seconds:.0f} s"
        return status, output.decode(errors="replace")

    def first(self, case):
        seconds = min(self.args.each, self.left())
        if seconds < 1:
            return
        start = time.monotonic()
        case.status, output = self.run(case.command, case.environment, seconds)
        case.seconds = time.monotonic() - start
        if case.status != "passed":
            case.file(self.args.out).write_text(f"{case.name}: {case.status}\n{output}\n")
            with self.lock:
                print(f"failed: {case.name} ({case.status})", flush=True)

    def again(self, case):
        """Repeats a failed case with blocking launches and under the sanitizers."""
        if self.left() < 1:
            return
        runs = [("CUDA_LAUNCH_BLOCKING=1", case.command, {"CUDA_LAUNCH_BLOCKING": "1"}, 1)]
        if self.sanitizer:
            runs += [(tool, [self.sanitizer, "--tool", tool, "--target-processes", "all", "--error-exitcode", "9",
                             *case.command], {"LEVIN_CUDA_CACHING": "0", "LEVIN_SMALL_CASES": "1"}, 3)
                     for tool in TOOLS]
        with case.file(self.args.out).open("a") as log:
            for name, command, more, factor in runs:
                seconds = min(factor * self.args.each, self.left())
                if seconds < 1:
                    log.write(f"==== {name}: left out, the time was used up\n")
                    continue
                status, output = self.run(command, {**case.environment, **more}, seconds)
                case.notes.append(f"{name}: {status}")
                log.write(f"==== {name}: {status}\n{output}\n")
                log.flush()


def cases_of(args):
    program = str(args.program)
    if args.shards:
        names = listed(program, *(["-tc=" + args.only] if args.only else []))
        if len(names) != 1:
            sys.exit(f"error: --shards needs one test case, and --only {args.only} picks {len(names)} of {program}")
        name = names[0]
        return [Case(i, f"{name} {i}/{args.shards}", [program, "--no-colors=true", filter_of(name)],
                     {"LEVIN_SHARD": f"{i}/{args.shards}"}) for i in range(1, args.shards + 1)]
    filters = ["-tc=" + args.only] if args.only else []
    eager = set(listed(program, *filters, "-ts=" + HOLDS_A_STREAM))
    return [Case(i, name, [program, "--no-colors=true", filter_of(name)],
                 {"CUDA_MODULE_LOADING": "EAGER"} if name in eager else {})
            for i, name in enumerate(listed(program, *filters), 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the output of failed cases")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--each", type=float, default=20, help="time limit of a case in seconds")
    parser.add_argument("--seconds", type=float, default=1e9, help="cases not started after this time are left out")
    parser.add_argument("--only", help="doctest filter for test cases")
    parser.add_argument("--once", action="store_true", help="does not repeat failed cases")
    parser.add_argument("--shards", type=int, help="splits the one case selected by --only into this many LEVIN_SHARDs")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    runner, cases = Runner(args), cases_of(args)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(runner.first, cases))
        failed = [case for case in cases if case.status not in ("passed", "left out")]
        if not args.once:
            list(pool.map(runner.again, failed))
    for case in failed:
        print(f"again: {case.name}: {'; '.join(case.notes) or 'no time was left'}")
    slowest = sorted(cases, key=lambda case: -case.seconds)[:5]
    print("slowest: " + "; ".join(f"{case.name} {case.seconds:.1f} s" for case in slowest))
    left_out = sum(case.status == "left out" for case in cases)
    print(f"result: {len(cases)} cases, {len(failed)} failed, {left_out} left out")
    sys.exit(0 if cases and not failed and not left_out else 1)


main()
