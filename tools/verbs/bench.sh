# ./run bench [FILTER...] [OPTIONS]: measures kernels beside this machine's roofline, and compares with an earlier run;
# --help lists the options.
set -euo pipefail
. tools/lib.sh
need python3
exec python3 tools/bench/run.py "$@"
