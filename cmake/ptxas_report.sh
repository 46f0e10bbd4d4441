#!/usr/bin/env bash
# ptxas_report.sh COMMAND...: runs a compilation and keeps what ptxas said of each kernel (registers, spills) beside the
# object, for the test that reads it. All else that was said goes on to the user.
set -uo pipefail
object=
previous=
for word in "$@"; do
  [ "$previous" = -o ] && object=$word
  previous=$word
done
report=$object.ptxas
"$@" 2>"$report"
status=$?
grep -vE '^ptxas info|bytes stack frame|^$' "$report" >&2
exit "$status"
