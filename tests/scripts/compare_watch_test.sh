# ./run compare waits for two free cores and repeats a round that has lost one, as long as its patience lasts.
. tests/scripts/lib.sh
python3 - <<'PYTHON'
import sys

sys.path.insert(0, "tools")
import two_cores


class Machine(two_cores.Watch):
    """Shows these speedups, one after the other, and the last for ever."""

    def __init__(self, patience, *shown):
        self.left, self.seen, self.repeated, self.shown = patience, [], 0, list(shown)

    def speedup(self):
        return self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]


two_cores.time.sleep = lambda seconds: None
rounds = iter(range(100))
watch = Machine(60, 1.0, 1.0, 2.0, 1.9)  # waits twice, then measures once
assert watch.measure(lambda: next(rounds)) == 0 and watch.repeated == 0, watch.repeated
assert watch.seen == [2.0, 1.9], watch.seen

watch = Machine(60, 2.0, 1.2, 2.0, 1.1, 1.9, 1.9)  # two rounds lose a core, the third does not
assert watch.measure(lambda: next(rounds)) == 3 and watch.repeated == 2, watch.repeated
assert watch.in_words().endswith("(1.90 to 2.00); 2 rounds after which they computed less were repeated"), watch.in_words()

clock = iter(range(0, 10000, 10))  # each look at it takes ten seconds
two_cores.time.monotonic = lambda: next(clock)
watch = Machine(100, 1.0)  # never two cores: the patience ends, and the last round counts
assert watch.measure(lambda: next(rounds)) >= 4 and watch.left < 100, watch.left
assert Machine(0, 1.0).measure(lambda: 7) == 7 and Machine(0, 1.0).in_words() == ""
PYTHON
