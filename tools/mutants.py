"""Applies the edits of tools/mutants/*.txt one at a time in copies of the tree and runs the tests on each.

Prints `caught  NAME  by PROGRAM: TEST CASE` or `ALIVE   NAME`, and closes with `N caught, N alive, N flaky`. A failure
counts only when it repeats: a test case that fails in the whole program and passes in one of four runs alone is flaky.
It is printed as `FLAKY`, the mutant is tried without it, and the run fails. --update keeps what was caught, when and by
which test, in tools/mutants/caught.tsv; --new tries only the mutants that are not in it or have changed since.
"""
import argparse
import dataclasses
import datetime
import hashlib
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import threading
import time

# The test programs of each preset, in the order in which they are tried.
PROGRAMS = {
    "release": ["core", "kernels", "autograd", "ops", "nn", "optim", "data", "interop", "distributed", "trainer",
                "strategies", "c_api", "film"],
    "emulate": ["emulator", "cuda", "nccl", "ops"],
    "emulate-asan": ["emulator", "cuda", "ops"],
    "emulate-msan": ["emulator", "cuda", "ops"],
    "emulate-tsan": ["emulator", "cuda", "ops"],
}

REPEATS = 4  # further runs in which a failed test case must fail again to count


@dataclasses.dataclass
class Mutant:
    name: str
    file: str
    old: str
    new: str
    tests: list[str]
    preset: str

    def edit(self) -> str:
        """Returns a short hash of the edit: a mutant that was changed is a new one."""
        return hashlib.sha256("\n".join((self.file, self.old, self.new)).encode()).hexdigest()[:8]

    def apply(self, root: pathlib.Path) -> str:
        """Returns the mutated text. Raises ValueError if the edit no longer applies."""
        path = root / self.file
        text = path.read_text() if path.is_file() else None
        if text is None:
            raise ValueError(f"{self.name}: {self.file} does not exist")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: `{self.old}` occurs {text.count(self.old)} times in {self.file}, not once")
        if self.old == self.new:
            raise ValueError(f"{self.name}: old and new are the same")
        return text.replace(self.old, self.new)


def read_table(path: pathlib.Path) -> list[Mutant]:
    mutants = []
    for block in re.split(r"\n\s*\n", path.read_text()):
        fields = {}
        for line in block.splitlines():
            if line.strip() and not line.startswith("#"):
                key, _, value = line.partition(":")
                fields[key] = value.removeprefix(" ")
        if not fields:
            continue
        missing = {"name", "file", "old", "new"} - fields.keys()
        unknown = fields.keys() - {"name", "file", "old", "new", "tests", "preset", "note"}
        if missing or unknown:
            sys.exit(f"error: {path}: the block `{fields.get('name', block[:40])}` lacks {sorted(missing)} "
                     f"and has unknown fields {sorted(unknown)}")
        emulated = fields["file"].startswith(("emulator/", "kernels/cuda/", "distributed/cuda/"))
        preset = fields.get("preset", "emulate" if emulated else "release")
        if preset not in PROGRAMS:
            sys.exit(f"error: {path}: `{fields['name']}` names the preset {preset}; choose one of {list(PROGRAMS)}")
        tests = fields.get("tests", "").split()
        foreign = [t for t in tests if t not in PROGRAMS[preset]]
        if foreign:
            sys.exit(f"error: {path}: `{fields['name']}` names the tests {foreign}, which preset {preset} does not run")
        mutants.append(Mutant(fields["name"], fields["file"], fields["old"], fields["new"], tests, preset))
    return mutants


class Record:
    """The table of mutants that were caught: name, hash of the edit, date, and the test that caught it."""

    def __init__(self, path: pathlib.Path, mutants: list[Mutant]):
        self.path = path
        edits = {m.name: m.edit() for m in mutants}
        lines = path.read_text().splitlines() if path.is_file() else []
        rows = [line.split("\t") for line in lines]
        self.rows = {row[0]: row[1:] for row in rows if edits.get(row[0]) == row[1]}

    def add(self, mutant: Mutant, by: str) -> None:
        self.rows[mutant.name] = [mutant.edit(), str(datetime.date.today()), " ".join(by.split())[:160]]
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text("".join("\t".join([name, *self.rows[name]]) + "\n" for name in sorted(self.rows)))
        temporary.replace(self.path)


def tracked_files(root: pathlib.Path) -> list[str]:
    out = subprocess.run(["git", "-c", f"safe.directory={root}", "ls-files", "-z", "--cached", "--others",
                          "--exclude-standard"], cwd=root, check=True, capture_output=True).stdout
    return [name for name in out.decode().split("\0") if name and (root / name).is_file()]


def copy_tree(root: pathlib.Path, copy: pathlib.Path) -> None:
    """Makes `copy` equal to the tree. Unchanged files keep their time stamps, so that ninja does not rebuild them."""
    names = tracked_files(root)
    for name in names:
        source, target = root / name, copy / name
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    wanted = set(names)
    for path in copy.rglob("*"):
        relative = path.relative_to(copy)
        if path.is_file() and relative.parts[0] != "build" and str(relative) not in wanted:
            path.unlink()


class Workplace:
    """A copy of the tree with its own build folder."""

    def __init__(self, root: pathlib.Path, number: int, only: list[str], preset: str):
        self.sanitized = preset in ("emulate-asan", "emulate-msan", "emulate-tsan")
        self.build_dir = f"build/{preset}"
        self.dir = root / "build" / "mutants" / str(number)
        self.dir.mkdir(parents=True, exist_ok=True)
        copy_tree(root, self.dir)
        done = self.run(["cmake", "--preset", preset, "-DLEVIN_BUILD_EXAMPLES=OFF", "-DLEVIN_BUILD_BENCH=OFF"]
                        + os.environ.get("LEVIN_CMAKE_ARGS", "").split())
        if done.returncode:
            sys.exit(f"error: cmake failed in {self.dir}:\n{done.stdout[-2000:]}")
        self.programs = [m for m in PROGRAMS[preset]
                         if any((self.dir / "tests" / m).rglob("*_test.cpp")) and (not only or m in only)]

    def run(self, command, timeout=None):
        env = {"TSAN_OPTIONS": "halt_on_error=1", "LEVIN_SMALL_CASES": "1"} if self.sanitized else {}
        return subprocess.run(command, cwd=self.dir, text=True, errors="replace", timeout=timeout,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env | os.environ)

    def build(self, program: str) -> None:
        done = self.run(["ninja", "-C", self.build_dir, f"levin_{program}_tests"])
        if done.returncode:
            raise RuntimeError("does not build:\n" + "\n".join(
                line for line in done.stdout.splitlines() if "error" in line or "FAILED" in line)[:800])

    def test(self, program: str, timeout: float, report_flaky):
        """Returns None if all passed, else a failure that repeated in `REPEATS` further runs. One that does not repeat
        is passed to report_flaky(text), and the other cases are run without it."""
        left_out = []
        while True:
            exclude = [f"-tce={','.join(left_out)}"] if left_out else []
            failure, case = self.failure(program, timeout, exclude)
            if failure is None:
                return None
            if case is None:  # after a crash, a sanitizer's report or a timeout, repeat the whole program
                if self.failure(program, timeout, exclude)[0]:
                    return failure
                report_flaky(f"levin_{program}_tests: {failure}, which did not repeat")
                return None
            again = sum(self.failure(program, timeout, [f"-tc={case}"])[0] is not None for _ in range(REPEATS))
            if again == REPEATS or case in left_out:
                return failure
            report_flaky(f"levin_{program}_tests: {failure} (failed in {again} of {REPEATS} runs alone)")
            left_out.append(case)

    def failure(self, program: str, timeout: float, options: list[str]):
        """Returns the failure and a filter for its case if known; (None, None) if all passed."""
        command = [f"{self.build_dir}/bin/levin_{program}_tests", "--no-colors=true", "--abort-after=1"] + options
        if self.sanitized and program == "ops" and not options:
            command.append("-tc=operations on cuda*")  # as test.sh does
        try:
            done = self.run(command, timeout)
        except subprocess.TimeoutExpired:
            return f"no exit within {timeout:.0f} s", None
        if done.returncode == 0:
            return None, None
        if reports := re.findall(r"SUMMARY: (\w+Sanitizer: .+)", done.stdout):
            return reports[0], None
        parts = re.split(r"TEST CASE:\s*", done.stdout)[1:]  # also lists passed cases that print messages
        failed = [part for part in parts if " ERROR: " in part] or parts
        if not failed:
            return f"exited with status {done.returncode}", None
        name = failed[0].split("\n")[0].strip()
        return name, name.replace(",", "?").replace("\\", "?")

    def named(self, mutant: Mutant) -> list[str]:
        return [p for p in mutant.tests if p in self.programs]

    def others(self, mutant: Mutant) -> list[str]:
        module = mutant.file.split("/")[0]
        later = self.programs[self.programs.index(module):] if module in self.programs else []
        return [p for p in dict.fromkeys(later + self.programs) if p not in self.named(mutant)]


class FlakyTests:
    """Failures that did not repeat. Each is printed when it is seen, and any of them fails the run."""

    def __init__(self):
        self.lock = threading.Lock()
        self.seen: list[str] = []

    def report(self, where: str, failure: str) -> None:
        with self.lock:
            self.seen.append(f"{where}: {failure}")
            print(f"FLAKY   {where}  {failure}", flush=True)


def baseline(place: Workplace, programs: list[str], flaky: FlakyTests) -> dict[str, float]:
    """Checks that the unchanged tree passes, or else every mutant would count as caught. Returns the time limits."""
    limits = {}
    for program in programs:
        place.build(program)
        start = time.monotonic()
        failure = place.test(program, 900, lambda text: flaky.report("unchanged tree", text))
        if failure:
            sys.exit(f"error: levin_{program}_tests fails on the unchanged tree: {failure}")
        limits[program] = 60 + 10 * (time.monotonic() - start)
    return limits


def try_mutant(place: Workplace, mutant: Mutant, programs: list[str], limits: dict[str, float],
               flaky: FlakyTests) -> tuple[str, str]:
    """Returns (caught, alive or error; the test that caught it)."""
    path = place.dir / mutant.file
    original = path.read_text()
    try:
        path.write_text(mutant.apply(place.dir))
        for program in programs:
            place.build(program)
            failure = place.test(program, limits[program], lambda text: flaky.report(mutant.name, text))
            if failure:
                return "caught", f"levin_{program}_tests: {failure}"
        return "alive", ""
    except (RuntimeError, ValueError) as error:
        return "error", str(error)
    finally:
        path.write_text(original)


def work(place, todo, choose, limits, results, lock, deadline, flaky, record):
    while time.monotonic() < deadline:
        try:
            mutant = todo.get_nowait()
        except queue.Empty:
            return
        verdict, by = try_mutant(place, mutant, choose(place, mutant), limits, flaky)
        with lock:
            results[mutant.name] = (verdict, by)
            if verdict == "caught" and record:
                record.add(mutant, by)
            if verdict != "alive":
                print(f"{verdict:6}  {mutant.name}  by {by}" if verdict == "caught" else
                      f"ERROR   {mutant.name}  {mutant.file}  {by}", flush=True)


def try_on(places, mutants, choose, limits, deadline, flaky, record) -> tuple[dict[str, tuple[str, str]], list[Mutant]]:
    """Runs the programs that choose(place, mutant) returns. Returns the verdicts by name and the live mutants."""
    needed = {program for mutant in mutants for program in choose(places[0], mutant)}
    fresh = [p for p in places[0].programs if p in needed and p not in limits]
    limits |= baseline(places[0], fresh, flaky)
    for place in places[1:]:
        for program in fresh:
            place.build(program)  # from the compiler cache, before a mutant's time starts
    todo, lock, results = queue.Queue(), threading.Lock(), {}
    for mutant in mutants:
        todo.put(mutant)
    threads = [threading.Thread(target=work, args=(p, todo, choose, limits, results, lock, deadline, flaky, record))
               for p in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, [m for m in mutants if results.get(m.name, ("", ""))[0] == "alive"]


def try_all(root, preset, mutants, args, results, deadline, flaky, record) -> int:
    """Tries the mutants of one preset. Returns how many were not tried for lack of time. First come the
    programs that a mutant names; if it survives or names none, all others, which are built only if needed."""
    places = [Workplace(root, i, args.tests, preset) for i in range(max(1, min(args.jobs, len(mutants))))]
    limits: dict[str, float] = {}
    found, survivors = try_on(places, mutants, Workplace.named, limits, deadline, flaky, record)
    left = len(mutants) - len(found)
    results += [verdict for verdict, _ in found.values() if verdict != "alive"]
    if not survivors or time.monotonic() >= deadline:
        return left + len(survivors)
    left += len(survivors)
    found, survivors = try_on(places, survivors, Workplace.others, limits, deadline, flaky, record)
    for mutant in survivors:
        print(f"ALIVE   {mutant.name}  {mutant.file}", flush=True)
    results += [verdict for verdict, _ in found.values()]
    return left - len(found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="only mutants whose names contain one of these")
    parser.add_argument("--check", action="store_true", help="only check that every edit applies")
    parser.add_argument("--new", action="store_true", help="only mutants that caught.tsv does not list")
    parser.add_argument("--update", action="store_true", help="write what was caught into caught.tsv")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="copies that run in parallel")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PROGRAM", help="only these programs: core, ops, ...")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no mutant after this time")
    args = parser.parse_args()
    deadline = time.monotonic() + args.seconds

    root = pathlib.Path(__file__).resolve().parent.parent
    mutants = [m for table in sorted((root / "tools/mutants").glob("*.txt")) for m in read_table(table)]
    names = [m.name for m in mutants]
    errors = [f"{name}: the name is used twice" for name in set(names) if names.count(name) > 1]
    record = Record(root / "tools/mutants/caught.tsv", mutants)
    known = len(record.rows)
    mutants = [m for m in mutants if not args.new or m.name not in record.rows]
    if not mutants and not args.names:
        print(f"all {known} mutants have been caught")
        return 0
    mutants = [m for m in mutants if not args.names or any(part in m.name for part in args.names)]
    if not mutants:
        errors.append("no mutant has that name")
    for mutant in mutants:
        try:
            mutant.apply(root)
        except ValueError as error:
            errors.append(str(error))
    if errors:
        sys.exit("error: " + "\nerror: ".join(errors))
    if args.check:
        print(f"{len(mutants)} mutants apply; caught.tsv lists {known}")
        return 0

    results, left, flaky = [], 0, FlakyTests()
    for preset in PROGRAMS:
        of_preset = [m for m in mutants if m.preset == preset]
        if of_preset:
            left += try_all(root, preset, of_preset, args, results, deadline, flaky, record if args.update else None)

    if left:
        print(f"{left} not tried: the time was used up")
    if results.count("error"):
        print(f"{results.count('error')} could not be tried")
    if flaky.seen:
        print("flaky tests, which failed once and then passed:")
        for line in flaky.seen:
            print(f"  {line}")
    print(f"{results.count('caught')} caught, {results.count('alive')} alive, {len(flaky.seen)} flaky")
    return 1 if results.count("alive") or results.count("error") or flaky.seen else 0


if __name__ == "__main__":
    sys.exit(main())
