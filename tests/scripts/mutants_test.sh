# ./run mutants counts a failure only when it repeats: a test case that passes when it is run again is reported as flaky.
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
PYTHON
