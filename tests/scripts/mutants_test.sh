# ./run mutants counts a failure only when it repeats: a test case that passes when it is run again is reported as flaky.
# It keeps a table of what was caught; ./run test --full keeps the results of its parts.
. tests/scripts/lib.sh
python3 - <<'PYTHON'
import pathlib
import sys
import tempfile

sys.path.insert(0, "tools")
import mutants

# Stands for a test program: `steady` fails always, `flaky` only in the first run, where the file "first" is missing.
PROGRAM = r'''#!/usr/bin/env bash
cd "$(dirname "$0")"
failed=0
fail() { printf 'TEST CASE:  %s\n\nfile.cpp:1: ERROR: CHECK( false )\n' "$1"; failed=1; }
runs() { case "$*" in *-tc=$1*) ;; *-tce=*$1* | *-tc=*) return 1 ;; esac; }
for case in $CASES; do
  if [ "$failed" = 1 ] || ! runs "$case" "$@"; then continue; fi
  if [ "$case" = steady ] || [ ! -e first ]; then fail "$case"; fi
done
touch first
exit "$failed"
'''


class FakePlace(mutants.Workplace):
    """One program of the given test cases, without a tree or a build."""

    def __init__(self, folder, cases):
        self.dir, self.build_dir, self.sanitized, self.cases = pathlib.Path(folder), ".", False, cases
        program = self.dir / "bin" / "levin_fake_tests"
        program.parent.mkdir()
        program.write_text(PROGRAM)
        program.chmod(0o755)

    def run(self, command, timeout=None):
        return super().run(["env", f"CASES={self.cases}"] + command, timeout)


for cases, wanted, reports in [("", None, 0), ("steady", "steady", 0), ("flaky", None, 1), ("flaky steady", "steady", 1)]:
    with tempfile.TemporaryDirectory() as folder:
        seen = []
        found = FakePlace(folder, cases).test("fake", 60, seen.append)
        if (found, len(seen)) != (wanted, reports):
            sys.exit(f"FAILED: of the cases [{cases}] the tool found {found} and reported {seen}")

# The table of caught mutants keeps the others' rows, and forgets a mutant whose edit has changed.
with tempfile.TemporaryDirectory() as folder:
    table = pathlib.Path(folder) / "caught.tsv"
    first, second = (mutants.Mutant(name, "a.cpp", "x", "y", [], "release") for name in ("first", "second"))
    mutants.Record(table, [first, second]).add(first, "levin_core_tests: a case")
    mutants.Record(table, [first, second]).add(second, "levin_nn_tests: another")
    if list(mutants.Record(table, [first, second]).rows) != ["first", "second"]:
        sys.exit(f"FAILED: the table of caught mutants has {table.read_text()!r}")
    second.new = "z"
    if list(mutants.Record(table, [first, second]).rows) != ["first"]:
        sys.exit("FAILED: a mutant whose edit has changed still counts as caught")
PYTHON

# ./run test --full keeps the result of a part and does not repeat one that passed on the same tree.
work=$build/full_test
rm -rf "$work"
mkdir -p "$work/tools/verbs" "$work/docs"
cp tools/full_test.py "$work/tools/"
printf '<!-- full_test: start -->\n<!-- full_test: end -->\n' >"$work/docs/testing.md"
printf '%s\n' 'echo run >>build/runs' 'echo "3 passed, ${FAILURES:-0} failed"' >"$work/tools/verbs/test.sh"
git -C "$work" init -q
printf 'build/\n' >"$work/.gitignore"
git -C "$work" add -A
git -C "$work" -c user.name=test -c user.email=test@localhost commit -qm "a tree"
full() {
  (cd "$work" && mkdir -p build && python3 tools/full_test.py --part release --part debug "$@" | tail -n 1) || true
}
[ "$(FAILURES=2 full)" = "6 passed, 4 failed" ] || fail "failures were not counted"
[ "$(full)" = "6 passed, 0 failed" ] && [ "$(full)" = "6 passed, 0 failed" ] || fail "passes were not counted"
[ "$(wc -l <"$work/build/runs")" = 4 ] || fail "parts that failed, or parts that passed before, ran wrongly"
[ "$(full --again --update)" = "6 passed, 0 failed" ] || fail "--again changed the result"
[ "$(wc -l <"$work/build/runs")" = 6 ] || fail "--again did not repeat the parts"
grep -q '^| `debug` | 20.* | 3 passed, 0 failed | 0 |$' "$work/docs/testing.md" || fail "--update wrote no row"
grep -q '^| `tsan` | - | - | not yet run | - |$' "$work/docs/testing.md" ||
  fail "--update lost the parts without a result"
rm -rf "$work"
