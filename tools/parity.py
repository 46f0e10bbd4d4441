"""Generates docs/parity.md from tests/parity.txt and a run of the tests that it names.

usage: parity.py --programs PRESET    prints the test programs of this preset that rows need
       parity.py [--new]              runs the cases and writes the page; exit status 1 if a row is not shown.
                                      --new runs only cases that the page lacks and keeps its other results

A case counts if it passed with at least one assertion, a script if it passed without skipping itself.
"""
import collections
import datetime
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "parity.md"
CASE = re.compile(r'TEST_CASE(?:_TEMPLATE)?\s*\(\s*"((?:[^"\\]|\\.)*)"')
HEAD = """# Promised features and the tests that show them

What the articles on training with PyTorch show, and the surface of Lightning 2.x, row by row: with the tests that show it,
or the sentence why there is none. `./run docs --parity` runs these tests and writes this page from `tests/parity.txt`; a
test counts when it passed with at least one assertion. Names in `code` are this library's; a test finds each in a public
header or a table of flags.

A row is *shown*; or *shown in part*, with what is not there; or *refused*: tests show that the name is refused with the
reason; or *absent*.
"""
STATES = {"lacks": "shown in part", "refused": "refused", "absent": "absent"}  # by the field that gives the reason


def read_rows():
    """Returns ([(section, name, promise, {field: [values]})], {word: reason})."""
    rows, reasons, section = [], {}, ""
    for line in (ROOT / "tests" / "parity.txt").read_text().splitlines():
        field, _, value = line.partition(": ")
        if not line or line.startswith("#"):
            continue
        if field == "section":
            section = value
        elif field == "reason":
            word, _, sentence = value.partition(" = ")
            reasons[word] = sentence
        elif field == "row":
            name, _, promise = value.partition(" = ")
            rows.append((section, name, promise, collections.defaultdict(list)))
        else:
            rows[-1][3][field].append(value)
    return rows, reasons


def known_cases():
    """Returns the path of each test case."""
    cases = {}
    for path in sorted(ROOT.glob("tests/*/**/*.cpp")):
        for name in CASE.findall(path.read_text()):
            cases[name.replace('\\"', '"')] = path.relative_to(ROOT)
    return cases


def full_name(beginning, cases):
    if beginning in cases:
        return beginning
    found = [name for name in cases if name.startswith(beginning)]
    if len(found) != 1:
        raise SystemExit(f"error: tests/parity.txt: {len(found)} test cases begin with \"{beginning}\"; name one")
    return found[0]


def preset_of(path):
    return "emulate" if path.parts[1] in ("cuda", "emulator", "nccl") else "release"


def program_of(path):
    return f"levin_{path.parts[1]}_tests"


def run_cases(program, names):
    """Returns the names of the cases that passed with at least one assertion."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        # A comma ends a name in doctest's filter; ? matches any character.
        wanted = ",".join(re.sub(r"[,\\\"]", "?", name) + "*" for name in names)
        subprocess.run([program, "-r=xml", "-d", f"-o={report}", f"-tc={wanted}"], cwd=ROOT, check=False,
                       stdout=subprocess.DEVNULL)
        try:
            tree = xml.parse(report)
        except (OSError, xml.ParseError) as error:
            print(f"{program}: no readable report ({error})", file=sys.stderr)
            return set()
    passed, failed = set(), set()
    for case in tree.iter("TestCase"):
        result = case.find("OverallResultsAsserts")
        if result is None:
            continue
        # An instance of a template case is named name<type>.
        name = next((n for n in names if case.get("name") == n or case.get("name").startswith(n + "<")), None)
        good = int(result.get("successes")) > 0 and int(result.get("failures")) == 0
        good = good and result.get("test_case_success", "true") == "true"
        (passed if good else failed).add(name)
    return passed - failed


def run_script(name):
    done = subprocess.run(["bash", f"tests/scripts/{name}.sh"], cwd=ROOT, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "LEVIN_PRESET": "release"})
    return done.returncode == 0 and "SKIP: " not in done.stdout


def date_of(page):
    """Returns today's date, and also the date of the page if most cases are taken from it."""
    today = datetime.date.today()
    former = re.search(r"^(\d{4}-\d{2}-\d{2})[^:]*: \d+ rows", page, re.MULTILINE)
    return f"{former[1]} (new cases {today})" if former and former[1] != str(today) else str(today)


def write_page(rows, reasons, shown, cases, date):
    """Returns the names of rows whose tests did not all count."""
    lines, section, missing, counts = [], None, [], collections.Counter()
    for row_section, name, promise, fields in rows:
        if row_section != section:
            section = row_section
            lines += ["", f"## {section}", "", "| | what | | where it is shown, or why not |", "|---|---|---|---|"]
        parts = []
        for test in fields["test"]:
            case = full_name(test, cases)
            if case not in shown:
                missing.append(f"{name}: {case}")
            parts.append(f"[{case}](../{cases[case]})".replace("|", "\\|"))
        for script in fields["script"]:
            if script not in shown:
                missing.append(f"{name}: {script}")
            parts.append(f"[{script}](../tests/scripts/{script}.sh)")
        state = next((STATES[field] for field in STATES if fields[field]), "shown")
        for field in ("note", *STATES):
            parts += [reasons.get(why, why) for why in fields[field]]
        counts[state] += 1
        lines.append(f"| {name} | {promise} | {state} | {'; '.join(parts)} |")
    if not missing:
        total = f"{date}: {len(rows)} rows, {counts['shown']} shown by tests, " \
                f"{counts['shown in part']} shown in part, {counts['refused']} refused, {counts['absent']} absent."
        PAGE.write_text("\n".join([HEAD, total] + lines) + "\n")
    return missing


def main():
    rows, reasons = read_rows()
    cases = known_cases()
    wanted = collections.defaultdict(set)  # (preset, program) -> names
    scripts = set()
    for _, _, _, fields in rows:
        for test in fields["test"]:
            name = full_name(test, cases)
            wanted[preset_of(cases[name]), program_of(cases[name])].add(name)
        scripts.update(fields["script"])
    if sys.argv[1:2] == ["--programs"]:
        print(" ".join(sorted(program for preset, program in wanted if preset == sys.argv[2])))
        return 0
    shown = set()
    page = PAGE.read_text() if sys.argv[1:2] == ["--new"] else ""
    for (preset, program), names in sorted(wanted.items()):
        known = {name for name in names if f"[{name}](".replace("|", "\\|") in page}
        shown |= known
        names -= known
        if not names:
            continue
        print(f"{preset}: {len(names)} cases of {program}", file=sys.stderr)
        passed = run_cases(f"build/{preset}/bin/{program}", names)
        shown |= passed
        for name in sorted(names - passed):
            print(f"  did not pass with an assertion: {name}", file=sys.stderr)
    for script in sorted(scripts):
        print(f"release: {script}", file=sys.stderr)
        if f"[{script}](" in page or run_script(script):
            shown.add(script)
    missing = write_page(rows, reasons, shown, cases, date_of(page))
    for line in missing:
        print(f"not shown: {line}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
