# The tour's session in gdb prints what the page shows.
. tests/scripts/lib.sh
(. tools/lib.sh; need gdb) || { echo "SKIP: network"; exit 0; }
python3 tools/gdb_session.py
