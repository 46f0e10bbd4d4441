"""Compares the samples of two runs row by row: is a row faster, slower, the same, or is that not known?

The ratio of the new to the old time has a confidence interval of 99 % without assumptions on the distribution: the
ratios of all pairs of samples, cut where the test of Mann and Whitney rejects (Hodges and Lehmann, 1963). A ratio counts
only beyond a band of 5 %, or of the noise within the noisier of the two runs where that is more:

    slower   the interval is above 1, and the estimate is above the band
    faster   the interval is below 1, and the estimate is below the band
    same     the interval of 90 % is within the band: two one-sided tests of equivalence at 5 % (Schuirmann, 1987)
    unsure   otherwise

The speed of a machine changes from one minute to the next. Each sample therefore comes with the machine's speed just
before it: of a copy for a row that memory bounds, of multiply-adds for others. The test is done on the times at equal
speed, and `slower` and `faster` also need the times as they are to differ by more than 5 % in the same direction.
"""
import functools
import math
import statistics

CONFIDENCE = 0.99
CONFIDENCE_SAME = 0.90
LEAST_BAND = 0.05
LEAST_SAMPLES = 5  # fewer have no interval of 99 %


@functools.lru_cache(maxsize=None)
def _arrangements(n, m):
    """The numbers of arrangements of n and m samples by the value of U, Mann and Whitney's statistic: 0 ... n m."""
    if n == 0 or m == 0:
        return (1,)
    counts = [0] * (n * m + 1)
    for u, count in enumerate(_arrangements(n - 1, m)):  # the largest value is of the first kind: it beats all m
        counts[u + m] += count
    for u, count in enumerate(_arrangements(n, m - 1)):
        counts[u] += count
    return tuple(counts)


@functools.lru_cache(maxsize=None)
def _pairs_cut(n, m, confidence):
    """How many pairs an interval of this confidence leaves out at either end; none: there is no such interval."""
    counts, allowed = _arrangements(n, m), (1 - confidence) / 2
    total, below, cut = math.comb(n + m, n), 0, 0
    for u, count in enumerate(counts):
        below += count
        if below / total > allowed:
            break
        cut = u + 1
    return cut or None


def interval(old, new, confidence=CONFIDENCE):
    """Returns (low, estimate, high) of the ratio of new times to old ones; low is 0 and high infinite for too few."""
    ratios = sorted(b / a for a in old for b in new)
    cut = _pairs_cut(len(old), len(new), confidence)
    estimate = statistics.median(ratios)
    return (ratios[cut - 1], estimate, ratios[-cut]) if cut else (0.0, estimate, math.inf)


def noise(samples):
    """The relative standard deviation, estimated by the median distance to the median, which outliers hardly move."""
    middle = statistics.median(samples)
    return 1.4826 * statistics.median(abs(s - middle) for s in samples) / middle


def judge(old, new):
    """Returns the verdict of one test, the estimated ratio and the band."""
    low, estimate, high = interval(old, new)
    inner_low, _, inner_high = interval(old, new, CONFIDENCE_SAME)
    band = 1 + max(LEAST_BAND, noise(old), noise(new))
    if low > 1 and estimate > band:
        verdict = "slower"
    elif high < 1 and estimate < 1 / band:
        verdict = "faster"
    elif math.isfinite(high) and 1 / band < inner_low and inner_high < band:
        verdict = "same"
    else:
        verdict = "unsure"
    return verdict, estimate, band


def at_equal_speed(row, speed):
    """Returns seconds times speed: the work that the machine could have done in these times."""
    return [seconds * rate for seconds, rate in zip(row["samples"], row["speeds"][speed])]


def compare_rows(old, new):
    """Returns the verdict on two rows, the ratio of the times and that at equal speed."""
    speed = "GB/s" if old["bound"] == "memory" else "GFLOP/s"
    ratio = interval(old["samples"], new["samples"])[1]
    verdict, equal_ratio, _ = judge(at_equal_speed(old, speed), at_equal_speed(new, speed))
    agrees = {"slower": ratio > 1 + LEAST_BAND, "faster": ratio < 1 / (1 + LEAST_BAND)}
    if not agrees.get(verdict, True):
        verdict = "unsure"
    return {"name": new["name"], "verdict": verdict, "ratio": ratio, "ratio_at_equal_speed": equal_ratio}


def drift(old, new):
    """Returns the machine's speed in the new run by that in the old one: medians over all samples, by unit."""
    def speed(run, unit):
        return statistics.median(rate for row in run["rows"] for rate in row["speeds"][unit])

    return {unit: speed(new, unit) / speed(old, unit) for unit in ("GFLOP/s", "GB/s")}


def compare(old, new):
    """Compares two runs (see rows.py): verdicts by name, and the names that only one of them has."""
    before = {row["name"]: row for row in old["rows"]}
    after = {row["name"]: row for row in new["rows"]}
    return {"rows": [compare_rows(before[name], row) for name, row in after.items() if name in before],
            "new": [name for name in after if name not in before],
            "missing": [name for name in before if name not in after]}
