"""./run bench from its arguments to its files, with tests/bench/stand_in.py in place of levin_bench."""
import contextlib
import csv
import io
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from unittest import mock

import page
import plots
import rows
import run
import svg

ROOT = pathlib.Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


class Result:
    def __init__(self, returncode, stdout, stderr):
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


def bench(*words, **environment):
    """Runs the verb in this process."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    stand_in = {"LEVIN_BENCH": str(ROOT / "tests/bench/stand_in.py"), **environment}
    with mock.patch.dict(os.environ, stand_in), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = run.main([str(word) for word in words])
        except SystemExit as end:
            status = end.code
    return Result(status, out.getvalue(), err.getvalue())


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def says(self, status, words, *arguments, **environment):
        """One sentence on stderr, nothing on stdout."""
        result = bench(*arguments, **environment)
        self.assertEqual(result.returncode, status, result)
        self.assertEqual(result.stdout, "")
        lines = [line for line in result.stderr.splitlines() if not line.startswith("==> ")]
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("error: "), lines)
        self.assertIn(words, lines[0])

    def run_to(self, name, *arguments, **environment):
        path = self.folder / name
        result = bench("--json", path, *arguments, **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return path, json.loads(path.read_text()), result.stdout


class Arguments(InFolder):
    def test_wrong_arguments_end_before_anything_is_built(self):
        wrong = {"LEVIN_BENCH": "/nonexistent"}
        for words, arguments in (("--nonsense", ["--nonsense"]), ("0 is not a positive whole", ["--repetitions", "0"]),
                                 ("-1 is not a positive whole", ["--threads=-1"]), ("many is not", ["--repetitions", "many"]),
                                 ("nan is not a positive number", ["--seconds", "nan"]),
                                 ("needs --against", ["--fail-if-slower"]), ("takes no FILTER", ["--update", "relu"]),
                                 ("expected one argument", ["--json"])):
            self.says(2, words, *arguments, **wrong)
        self.says(2, "needs --repetitions 5 or more", "--against", "old.json", "--repetitions", "4", **wrong)
        self.says(1, "none.json cannot be read", "--against", self.folder / "none.json", **wrong)
        self.says(1, "folder does not exist", "--json", self.folder / "none/a.json", **wrong)
        self.says(1, "/nonexistent cannot be run", **wrong)

    def test_a_filter_that_matches_nothing(self):
        self.says(1, 'no benchmark\'s name contains "nonsense"', "relu", "nonsense")

    def test_list_and_filters(self):
        self.assertEqual(bench("--list", "relu", "(256,256)").stdout, "relu/(4096,1024)\nmatmul/(256,256)/(256,256)\n")
        self.assertEqual(len(bench("--list").stdout.splitlines()), 9)
        # A filter is literal text, and may stand before and behind options.
        _, made, _ = self.run_to("a.json", "relu", "--repetitions", "2", "exp")
        self.assertEqual([row["name"] for row in made["rows"]], ["relu/(4096,1024)", "exp/(4096,1024)"])

    def test_options_reach_the_program(self):
        log = self.folder / "log"
        bench("relu", "--threads", "3", "--seconds", "0.5", "--repetitions", "2", STAND_IN_LOG=str(log))
        lines = log.read_text().splitlines()
        self.assertEqual(len(lines), 2)  # a process for each repetition
        for words in ("--filter relu", "--threads 3", "--benchmark_min_time=0.5"):
            self.assertIn(words, lines[0])


class Files(InFolder):
    def test_json(self):
        path, made, _ = self.run_to("a.json", "--repetitions", "5")
        self.assertIsNone(rows.problem_of(made))
        self.assertEqual(made["machine"]["threads"], 2)
        self.assertEqual(made["machine"]["instruction_set"], "AVX3")
        self.assertEqual((made["compiler"], made["flags"], made["peaks"]), ("GNU 12.2.0", "-O3", {"GFLOP/s": 570, "GB/s": 160}))
        self.assertRegex(made["date"], r"^\d{4}-\d\d-\d\dT")
        self.assertRegex(made["commit"], r"^[0-9a-f]{12}|^unknown")
        self.assertEqual(len(made["rows"]), 9)
        for row in made["rows"]:
            self.assertEqual({len(row["samples"]), *(len(rates) for rates in row["speeds"].values())}, {5})
            self.assertAlmostEqual(row["GB/s"], row["bytes"] / row["median"] / 1e9)
        self.assertEqual(list(self.folder.iterdir()), [path])  # no part is left

    def test_csv(self):
        path = self.folder / "a.csv"
        _, made, _ = self.run_to("a.json", "--csv", path)
        table = list(csv.DictReader(io.StringIO(path.read_text())))
        self.assertEqual([line["name"] for line in table], [row["name"] for row in made["rows"]])
        self.assertEqual([float(line["median"]) for line in table], [row["median"] for row in made["rows"]])
        self.assertEqual([float(s) for s in table[0]["samples"].split()], made["rows"][0]["samples"])
        self.assertNotIn("verdict", table[0])

    def test_against(self):
        old, _, _ = self.run_to("old.json")
        path, drawing = self.folder / "new.csv", self.folder / "new.svg"
        result = bench("--against", old, "--csv", path, "--svg", drawing, STAND_IN_FACTOR="1.5", STAND_IN_SPEED="0.8")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"\nslower +1\.[789]\d +at equal speed +1\.[45]\d +relu/")
        self.assertRegex(result.stdout, r"arithmetic 0\.(79|80|81), copy 0\.(79|80|81)\.")
        self.assertRegex(result.stdout, r"\n1 slower, 0 faster, \d unsure, \d same, 0 new, 0 missing\n$")
        lines = {line["name"]: line["verdict"] for line in csv.DictReader(io.StringIO(path.read_text()))}
        self.assertEqual([name for name, verdict in lines.items() if verdict == "slower"], ["relu/(4096,1024)"])
        self.assertIn("slower", "".join(xml.etree.ElementTree.fromstring(drawing.read_text()).itertext()))
        slower = bench("--against", old, "--fail-if-slower", STAND_IN_FACTOR="1.5")
        self.assertEqual(slower.returncode, 1)
        self.assertEqual(bench("--against", old, "--fail-if-slower", STAND_IN_SPEED="0.8").returncode, 0)

    def test_new_and_missing_rows(self):
        path, made, _ = self.run_to("old.json")
        made["rows"] = [row for row in made["rows"] if not row["name"].startswith("exp")]
        made["rows"].append({**made["rows"][0], "name": "gone/(3)"})
        path.write_text(json.dumps(made))
        said = bench("--against", path).stdout
        self.assertIn("\nnew      exp/(4096,1024)\n", said)
        self.assertIn("\nmissing  gone/(3)\n", said)
        self.assertNotIn("missing", bench("--against", path, "relu").stdout.split(" 0 missing")[0])
        made["machine"]["threads"] = 4
        path.write_text(json.dumps(made))
        self.assertIn("another machine or number of threads", bench("--against", path, "relu").stdout)

    def test_bad_old_runs(self):
        path, made, _ = self.run_to("old.json", "--repetitions", "5", "relu")

        def refused(words, change):
            bad = json.loads(json.dumps(made))
            change(bad)
            path.write_text(json.dumps(bad))
            self.says(1, words, "--against", path)

        row = {"name": "relu/(4096,1024)"}
        refused('"format" is not 1', lambda r: r.update(format=2))
        refused('"peaks" is missing', lambda r: r.pop("peaks"))
        refused('"rows" is missing', lambda r: r.update(rows={}))
        refused("no name of its own", lambda r: r["rows"].append(r["rows"][0]))
        refused(f"row {row['name']} has no samples", lambda r: r["rows"][0].update(samples=[]))
        refused("not one speed for each", lambda r: r["rows"][0]["speeds"]["GB/s"].pop())
        for value in (0, -1, "1", None, True, float("nan"), float("inf")):
            refused("not a positive number", lambda r: r["rows"][0]["samples"].__setitem__(2, value))
        refused('has no "bound"', lambda r: r["rows"][0].pop("bound"))
        path.write_text("[]")
        self.says(1, '"format" is not 1', "--against", path)
        path.write_text('{"format": 1')
        self.says(1, "cannot be read", "--against", path)


class Roofline(unittest.TestCase):
    PEAKS = {"GFLOP/s": 500.0, "GB/s": 100.0}

    def row(self, seconds, traffic, flops):
        return rows.finish({"name": "r", "bytes": traffic, "flops": flops, "samples": [seconds] * 3}, self.PEAKS)

    def test_shares_and_bounds(self):
        # 1 GB at 100 GB/s takes 10 ms; 10 GFLOP at 500 GFLOP/s take 20 ms.
        for seconds, traffic, flops, share, limit, bound in (
                (0.0125, 1e9, 1e9, 0.8, "memory", "memory"), (0.04, 1e9, 10e9, 0.5, "arithmetic", "arithmetic"),
                (0.041, 1e9, 10e9, 20 / 41, "arithmetic", "other"), (0.005, 1e9, 0.0, 2.0, "memory", "cache"),
                (0.1, 1e9, 0.0, 0.1, "memory", "other"),
                (2.1e-6, 1e5, 0.0, 1 / 2.1, "memory", "other"), (1e-6, 9e4, 0.0, 0.9, "memory", "memory"),
                (2.1e-6, 9e4, 0.0, 0.9 / 2.1, "memory", "call")):
            row = self.row(seconds, traffic, flops)
            self.assertAlmostEqual(row["share"], share)
            self.assertEqual((row["limit"], row["bound"]), (limit, bound))
        self.assertAlmostEqual(self.row(0.01, 2e9, 5e9)["intensity"], 2.5)

    def test_median_and_spread(self):
        row = rows.finish({"name": "r", "bytes": 1e9, "flops": 0.0, "samples": [1.0, 5.0, 2.0, 3.0, 4.0]}, self.PEAKS)
        self.assertAlmostEqual(row["median"], 3)
        self.assertAlmostEqual(row["spread"], (4.6 - 1.4) / 3)


class Charts(unittest.TestCase):
    def boxes(self, drawing):
        """The estimated boxes of all texts, as (left, top, right, bottom, words)."""
        found = []
        for text in xml.etree.ElementTree.fromstring(drawing).iter(f"{SVG}text"):
            if text.get("transform"):
                continue
            size = {"title": 16.0, "muted": 12.0, "small": 11.5}.get(text.get("class"), 13.0)
            width, x, y = svg.text_width(text.text, size), float(text.get("x")), float(text.get("y"))
            left = x - {"start": 0, "middle": width / 2, "end": width}[text.get("text-anchor")]
            found.append((left, y - size * 0.75, left + width, y + 2, text.text))
        return found

    def check(self, drawing):
        root = xml.etree.ElementTree.fromstring(drawing)
        height = float(root.get("height"))
        self.assertEqual(root.get("viewBox"), f"0 0 {svg.WIDTH} {root.get('height')}")
        boxes = self.boxes(drawing)
        self.assertGreater(len(boxes), 3)
        for box in boxes:
            self.assertTrue(0 <= box[0] and box[2] <= svg.WIDTH and 0 <= box[1] and box[3] <= height, box)
        for i, a in enumerate(boxes):
            for b in boxes[:i]:
                self.assertFalse(plots.overlaps(a, b), (a, b))
        return boxes

    def rooflines_run(self, count):
        made = [rows.finish({"name": f"operation_{i}/({i},7)", "bytes": 1e6, "flops": 1e6 * (0.06 + 0.4 * (i % 13)),
                             "samples": [1e-5 * (1 + i * 7 % 31)] * 3}, {"GFLOP/s": 500.0, "GB/s": 100.0})
                for i in range(count)]
        return {"rows": made, "peaks": {"GFLOP/s": 500.0, "GB/s": 100.0}, "date": "2026-01-01T00:00:00",
                "machine": {"cpu": "A < B & C", "threads": 2, "instruction_set": "AVX2"}}

    def test_roofline(self):
        for count in (1, 3, 250):
            drawing = plots.roofline(self.rooflines_run(count))
            words = [box[4] for box in self.check(drawing)]
            self.assertEqual(len(re.findall(r'<circle[^>]*class="dot ', drawing)), count)
            self.assertTrue(any(w.startswith("operation_") for w in words) or count == 250)

    def test_bars(self):
        for ratios in ([0.3, 0.9, 1.0, 2.0, 30.0], [1.2], [0.7, 0.8], [1.0], [0.001, 1000.0]):
            entries = [(f"a & b <{i}> with a long name, 4096 x 1024 fwd+bwd", r, f"{r:.2f}") for i, r in enumerate(ratios)]
            drawing = plots.bars("Title", ["Subtitle"], entries)
            self.check(drawing)
            bars = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"[^>]*class="(blue|orange)"', drawing)
            self.assertEqual([kind for _, _, kind in bars], ["blue" if r >= 1 else "orange" for r in ratios])
            for x, width, _ in bars:
                self.assertLessEqual(float(x) + float(width), svg.WIDTH)

    def test_shipped_charts(self):
        charts = sorted((ROOT / page.IMAGES).glob("*.svg"))
        self.assertGreaterEqual(len(charts), 2)
        for chart in charts:
            self.check(chart.read_text())
            self.assertIn(f"images/performance/{chart.name}", (ROOT / page.PAGE).read_text())


class Page(InFolder):
    def setUp(self):
        super().setUp()
        (self.folder / "docs").mkdir()
        for name in ("performance.md", "compare.md"):
            shutil.copy(ROOT / "docs" / name, self.folder / "docs")

    def test_the_page_agrees_with_the_table_of_compare(self):
        page.write_ratios(self.folder)
        self.assertEqual((self.folder / page.PAGE).read_text(), (ROOT / page.PAGE).read_text(),
                         "docs/compare.md changed; python3 tools/bench/page.py rewrites docs/performance.md from it")
        for name in ("operations.svg", "nets.svg"):
            self.assertEqual((self.folder / page.IMAGES / name).read_text(), (ROOT / page.IMAGES / name).read_text())

    def test_losing_rows_come_first(self):
        behind = [r for r in page.compare.rows_of((ROOT / "docs/compare.md").read_text())
                  if r["ratio"] < 1 and page.OPERATION.match(r["name"])]
        text = page.part_of((ROOT / page.PAGE).read_text(), "ratios")
        shown = [float(ratio) for ratio in re.findall(r"^\|(?:[^|]+\|){4} ([\d.]+) \|", text, flags=re.M)]
        self.assertEqual(shown, sorted(r["ratio"] for r in behind))

    def test_kernels_are_written_between_the_markers(self):
        before = (self.folder / page.PAGE).read_text()
        ratios = self.folder / "docs/compare.md"
        losing = re.sub(r"^(\| micro/pad reflect fwd \|.*\|) [\d.]+ \|$", r"\1 0.50 |", ratios.read_text(), flags=re.M)
        self.assertNotEqual(ratios.read_text(), losing)
        ratios.write_text(losing)
        made = json.loads(self.run_to("run.json")[0].read_text())
        page.write_kernels(self.folder, made)
        page.write_ratios(self.folder)
        after = (self.folder / page.PAGE).read_text()
        part = page.part_of(after, "kernels")
        for row in made["rows"]:
            self.assertIn(f"| `{row['name']}` |", part)
        self.assertEqual(page.replace_part(after, "kernels", ""), page.replace_part(
            page.replace_part(before, "ratios", page.part_of(after, "ratios")), "kernels", ""))
        self.assertRegex(page.bounds_on(part)["sort/(256,1024)"], r"^other, \d%$")
        self.assertRegex(page.part_of(after, "ratios"), r"\n\| pad reflect fwd \|.*\| cache, \d+% \|\n")
        for name in re.findall(r"\((images/[^)]+)\)", after):
            self.assertTrue((self.folder / "docs" / name).is_file(), name)

    def test_rows_have_a_table_for_each_section(self):
        row = page.compare.row
        rows = [row("size/relu 1x16 fwd", 2, 4, "us"), row("mlp", 4, 2, "images/s"), row("gemm/64x64x64 nt", 9, 3, "GFLOP/s")]
        text = page.compare.markdown(rows, "note")
        self.assertLess(text.index("| mlp | 4 | 2 | images/s | 2.00 |"), text.index("| gemm/64x64x64 nt | 9 | 3 | GFLOP/s | 3.00 |"))
        self.assertLess(text.index("| gemm/"), text.index("| size/relu 1x16 fwd | 2 | 4 | us | 2.00 |"))
        self.assertEqual(text.count("**"), 6)
        self.assertCountEqual(page.compare.rows_of(text), rows)
        self.assertNotIn("**", page.compare.markdown(rows[:1], "note"))

    def test_the_best_peer_of_each_net(self):
        row = page.compare_nets.row
        found = [row("lenet/b1/channels-last", 4, 3, "images/s"), row("mlp", 4, 2, "images/s"), row("mlp/jax", 4, 3, "images/s"),
                 row("lenet/b1", 4, 2, "images/s"), row("mlp/libtorch", 4, 2.5, "images/s"), row("micro/mlp", 1, 9, "us")]
        self.assertEqual([r["name"] for r in page.compare_nets.best_peers(found)], ["mlp/jax", "lenet/b1/channels-last"])
        self.assertEqual(page.compare_nets.best_table(found)[2:], [
            "| mlp | training step | 4 | 3 | JAX | images/s | 1.33 | 1.3 |",
            "| lenet | forward, one sample | 4 | 3 | PyTorch, channels last | images/s | 1.33 | 3, not reached |"])

    def test_a_page_without_markers(self):
        path = self.folder / page.PAGE
        path.write_text("# Performance\n")
        with self.assertRaisesRegex(SystemExit, "has lost the markers"):
            page.write_ratios(self.folder)
        self.assertEqual(path.read_text(), "# Performance\n")


if __name__ == "__main__":
    sys.exit(unittest.main())
