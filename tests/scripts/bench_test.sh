# ./run bench: arguments, files, charts, the verdicts' error rates, and docs/performance.md; with a stand-in for levin_bench.
. tests/scripts/lib.sh
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tools/bench:tests/bench python3 -m unittest discover -s tests/bench -p '*_test.py'
