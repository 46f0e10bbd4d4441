"""The verdicts of ./run bench --against on made-up samples: how often each is wrong."""
import itertools
import math
import random
import sys
import unittest

import verdict

DRAWS = 400
SAMPLES = 9


def row(draw, *, factor=1.0, noise=0.03, speeds=(1.0,), bound="memory", samples=SAMPLES):
    """A row of 1 ms: normal noise, times the factor; the machine's speed is one of `speeds` at each sample."""
    times, rates = [], []
    for _ in range(samples):
        speed = draw.choice(speeds)
        times.append(1e-3 * factor * max(0.2, draw.gauss(1, noise)) / speed)
        rates.append(100 * speed * draw.gauss(1, 0.01))
    return {"name": "row", "bound": bound, "samples": times, "speeds": {"GB/s": rates, "GFLOP/s": rates}}


def rates_of(old, new):
    """The shares of the verdicts over many seeds."""
    counts = {"slower": 0, "faster": 0, "same": 0, "unsure": 0}
    for seed in range(DRAWS):
        draw = random.Random(seed)
        counts[verdict.compare_rows(row(draw, **old), row(draw, **new))["verdict"]] += 1
    return {name: count / DRAWS for name, count in counts.items()}


class Rates(unittest.TestCase):
    def test_unchanged_rows_are_same(self):
        rates = rates_of({}, {})
        self.assertGreaterEqual(rates["same"], 0.75)
        self.assertLessEqual(rates["slower"] + rates["faster"], 0.01)

    def test_noise_alone_is_not_slower(self):
        for noise in (0.005, 0.1, 0.3):
            rates = rates_of({"noise": noise}, {"noise": noise})
            self.assertLessEqual(rates["slower"], 0.01, noise)
            self.assertLessEqual(rates["faster"], 0.01, noise)

    def test_twenty_percent_slower(self):
        rates = rates_of({}, {"factor": 1.2})
        self.assertGreaterEqual(rates["slower"], 0.95)
        self.assertEqual(rates["faster"] + rates["same"], 0)

    def test_twenty_percent_faster(self):
        rates = rates_of({"factor": 1.2}, {})
        self.assertGreaterEqual(rates["faster"], 0.95)
        self.assertEqual(rates["slower"] + rates["same"], 0)

    def test_three_percent_is_below_the_band(self):
        rates = rates_of({"noise": 0.005}, {"noise": 0.005, "factor": 1.03})
        self.assertEqual(rates["slower"], 0)

    def test_a_machine_of_two_speeds(self):
        two = {"speeds": (0.85, 1.15)}
        rates = rates_of(two, two)
        self.assertLessEqual(rates["slower"] + rates["faster"], 0.01)
        self.assertGreaterEqual(rates["same"], 0.75)  # at equal speed the noise is 3 %

    def test_a_machine_that_became_slower_as_a_whole(self):
        rates = rates_of({"speeds": (1.15,)}, {"speeds": (0.85,)})
        self.assertGreaterEqual(rates["same"], 0.75)
        self.assertLessEqual(rates["slower"], 0.01)

    def test_a_slower_row_on_a_machine_that_became_slower_too(self):
        rates = rates_of({"speeds": (1.15,)}, {"speeds": (0.85,), "factor": 1.2})
        self.assertGreaterEqual(rates["slower"], 0.95)

    def test_slower_on_a_machine_of_two_speeds(self):
        two = {"speeds": (0.85, 1.15)}
        rates = rates_of(two, {**two, "factor": 1.2})
        self.assertGreaterEqual(rates["slower"], 0.85)
        self.assertEqual(rates["faster"] + rates["same"], 0)

    def test_a_time_that_does_not_follow_the_speed_is_unsure(self):
        for speeds in (0.8,), (1.25,):
            rates = rates_of({}, {"speeds": speeds, "factor": speeds[0]})  # the same times
            self.assertGreaterEqual(rates["unsure"], 0.99, speeds)

    def test_outliers(self):
        wrong = 0
        for seed in range(DRAWS):
            draw = random.Random(seed)
            old, new = row(draw), row(draw)
            for r in (old, new):
                r["samples"][draw.randrange(SAMPLES)] *= 10  # another process took the core
            wrong += verdict.compare_rows(old, new)["verdict"] in ("slower", "faster")
        self.assertLessEqual(wrong / DRAWS, 0.01)


class Statistics(unittest.TestCase):
    def test_interval_covers_the_ratio(self):
        covered = 0
        for seed in range(DRAWS):
            draw = random.Random(seed)
            low, _, high = verdict.interval(*([draw.expovariate(1) + 0.5 for _ in range(SAMPLES)] for _ in range(2)))
            covered += low <= 1 <= high
        self.assertGreaterEqual(covered / DRAWS, 0.98)  # 99 % less two standard errors
        self.assertLess(covered / DRAWS, 1)

    def test_distribution_of_u_by_enumeration(self):
        n, m = 4, 5
        counts = [0] * (n * m + 1)
        for places in itertools.combinations(range(n + m), n):
            counts[sum(place - i for i, place in enumerate(places))] += 1
        self.assertEqual(verdict._arrangements(n, m), tuple(counts))
        self.assertEqual(sum(counts), math.comb(n + m, n))

    def test_published_critical_values(self):
        # Two-sided at 0.01, the largest U that rejects: 0 for 5 and 5, 11 for 9 and 9, 16 for 10 and 10.
        for n, critical in ((5, 0), (9, 11), (10, 16)):
            self.assertEqual(verdict._pairs_cut(n, n, 0.99), critical + 1)

    def test_interval_of_five_samples_is_the_whole_range(self):
        old, new = [1.0, 1.25, 2.0, 2.5, 4.0], [8.0, 10.0, 12.5, 16.0, 20.0]
        self.assertEqual(verdict.interval(old, new), (2.0, 6.4, 20.0))

    def test_interval_leaves_out_the_same_number_at_both_ends(self):
        old, new = [1.0] * 9, [float(v) for v in range(1, 10)]  # the ratios are 1 ... 9, nine times each
        self.assertEqual(verdict.interval(old, new), (2.0, 5.0, 8.0))  # the 12th of 81 from either end

    def test_a_significant_ratio_within_the_band_is_not_slower(self):
        old = [1 + 0.001 * i for i in range(9)]
        self.assertEqual(verdict.judge(old, [1.03 * s for s in old])[0], "same")
        self.assertEqual(verdict.judge(old, [1.06 * s for s in old])[0], "slower")
        self.assertEqual(verdict.judge([1.06 * s for s in old], old)[0], "faster")

    def test_a_significant_ratio_within_the_noise_is_unsure(self):
        noisy = [1 + 0.5 * (i / 29 - 0.5) for i in range(30)]  # a noise of 19 %
        self.assertGreater(verdict.interval(noisy, [1.15 * s for s in noisy])[0], 1)
        self.assertEqual(verdict.judge(noisy, [1.15 * s for s in noisy])[0], "unsure")
        self.assertEqual(verdict.judge(noisy, [1.25 * s for s in noisy])[0], "slower")

    def test_same_needs_both_ends_within_the_band(self):
        steady, wide = [1.0] * 9, [0.88 + 0.02 * i for i in range(9)]
        self.assertEqual(verdict.judge(steady, wide)[0], "unsure")
        self.assertEqual(verdict.judge(wide, steady)[0], "unsure")

    def test_too_few_samples_decide_nothing(self):
        low, estimate, high = verdict.interval([1.0, 1.1, 1.2], [2.0, 2.1, 2.2])
        self.assertEqual((low, high), (0.0, math.inf))
        self.assertAlmostEqual(estimate, 2.0, delta=0.2)
        few = {"samples": 4}
        self.assertEqual(rates_of(few, {**few, "factor": 3.0})["unsure"], 1)

    def test_noise_is_the_standard_deviation_of_normal_samples(self):
        draw = random.Random(1)
        self.assertAlmostEqual(verdict.noise([draw.gauss(5, 0.5) for _ in range(4000)]), 0.1, delta=0.005)

    def test_the_speed_that_bounds_a_row_counts(self):
        draw = random.Random(2)
        for bound, unit in (("memory", "GB/s"), ("arithmetic", "GFLOP/s"), ("cache", "GFLOP/s"), ("other", "GFLOP/s")):
            old, new = row(draw, bound=bound), row(draw, bound=bound)
            new["speeds"] = {"GB/s": [1.0] * SAMPLES, "GFLOP/s": [1.0] * SAMPLES,
                             unit: [2 * rate for rate in old["speeds"][unit]]}
            self.assertAlmostEqual(verdict.compare_rows(old, new)["ratio_at_equal_speed"], 2, delta=0.1)

    def test_rows_are_joined_by_name(self):
        draw = random.Random(3)
        named = [{**row(draw), "name": name} for name in "abc"]
        result = verdict.compare({"rows": named[:2]}, {"rows": named[1:]})
        self.assertEqual([v["name"] for v in result["rows"]], ["b"])
        self.assertEqual((result["new"], result["missing"]), (["c"], ["a"]))


if __name__ == "__main__":
    sys.exit(unittest.main())
