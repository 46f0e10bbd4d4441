"""The rows of ./run bench: from the output of levin_bench to medians, spreads and shares of the roofline.

A run is a dictionary, which --json writes:

    {"format": 1, "date": ..., "commit": ..., "machine": {"cpu", "cores", "threads", "instruction_set"},
     "compiler": ..., "flags": ..., "peaks": {"GFLOP/s", "GB/s"}, "repetitions": ...,
     "rows": [{"name", "bytes", "flops", "samples": [seconds, ...], "speeds": {"GFLOP/s": [...], "GB/s": [...]},
               "median", "spread", "GB/s", "GFLOP/s", "intensity", "share", "limit", "bound"}, ...]}

`samples` are seconds per call, one of each repetition; `speeds` are the machine's rates just before each of them.
`spread` is the range from the 10th to the 90th percentile by the median. The roofline (Williams, Waterman and Patterson,
2009) is the smaller of the peak of arithmetic and of intensity (flops per byte) times the bandwidth of a copy; `limit`
says which of the two, and `share` how much of it was reached.

`bound` is `limit` for a row that reaches half of its roof. It is `cache` if a row is faster than the memory: its data
stay in a cache. Below half of the roof the row is bound by something that the roofline does not model: `call` if the work
takes less than a microsecond at the roof, since a call costs about that much (checks, dispatch, memory for the result);
else `other`, such as instructions or latency.
"""
import re
import statistics

FORMAT = 1
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
COLUMNS = ["name", "median", "spread", "GB/s", "GFLOP/s", "intensity", "share", "limit", "bound"]


def percentile(values, p):
    """Linear between the two nearest of the sorted values."""
    ordered = sorted(values)
    place = p / 100 * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


BOUNDS = ("arithmetic", "memory", "cache", "other", "call")


def bound_of(limit, share, seconds_at_roof):
    if share > 1 and limit == "memory":
        return "cache"
    if share >= 0.5:
        return limit
    return "call" if seconds_at_roof < 1e-6 else "other"


def finish(row, peaks):
    """Adds to a row of samples what follows from them."""
    median = statistics.median(row["samples"])
    memory = row["bytes"] / (peaks["GB/s"] * 1e9)
    arithmetic = row["flops"] / (peaks["GFLOP/s"] * 1e9)
    limit = "arithmetic" if arithmetic > memory else "memory"
    share = max(memory, arithmetic) / median
    return {**row, "median": median,
            "spread": (percentile(row["samples"], 90) - percentile(row["samples"], 10)) / median,
            "GB/s": row["bytes"] / median / 1e9, "GFLOP/s": row["flops"] / median / 1e9,
            "intensity": row["flops"] / row["bytes"] if row["bytes"] else 0.0,
            "share": share, "limit": limit, "bound": bound_of(limit, share, max(memory, arithmetic))}


def rows_of(reports):
    """Returns the peaks and the rows of some outputs of levin_bench, one sample of each."""
    peaks = {unit: max(float(r["context"][f"peak {unit}"]) for r in reports) for unit in ("GFLOP/s", "GB/s")}
    rows = {}
    for report in reports:
        for b in report["benchmarks"]:
            name = re.sub(r"/(real_time|min_time:[0-9.]+)", "", b["name"])
            row = rows.setdefault(name, {"name": name, "bytes": b["bytes"], "flops": b["flops"], "samples": [],
                                         "speeds": {unit: [] for unit in peaks}})
            row["samples"].append(b["real_time"] * SECONDS[b["time_unit"]])
            for unit in peaks:
                row["speeds"][unit].append(b[f"speed {unit}"])
    return peaks, [finish(row, peaks) for row in rows.values()]


def problem_of(run):
    """Returns the first reason why this is no run, or none."""
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        return f"\"format\" is not {FORMAT}"
    for key, kind in (("date", str), ("commit", str), ("machine", dict), ("compiler", str), ("flags", str),
                      ("peaks", dict), ("repetitions", int), ("rows", list)):
        if not isinstance(run.get(key), kind):
            return f"\"{key}\" is missing"
    names = set()
    for row in run["rows"]:
        name = row.get("name") if isinstance(row, dict) else None
        if not isinstance(name, str) or name in names:
            return "a row has no name of its own"
        names.add(name)
        samples, speeds = row.get("samples"), row.get("speeds")
        lists = [samples] + [speeds.get(unit) if isinstance(speeds, dict) else None for unit in ("GFLOP/s", "GB/s")]
        if not samples or any(not isinstance(x, list) or len(x) != len(samples) for x in lists):
            return f"row {name} has no samples, or not one speed for each"
        if any(isinstance(v, bool) or not isinstance(v, (int, float)) or not 0 < v < float("inf")
               for values in lists for v in values):
            return f"row {name} has a sample that is not a positive number"
        if row.get("bound") not in BOUNDS:
            return f"row {name} has no \"bound\""
    return None


def duration(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}" if seconds / scale < 1000 else f"{seconds / scale:.0f} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def threads(run):
    count = run["machine"]["threads"]
    return f"{count} thread{'s' if count > 1 else ''}"


def csv_of(run):
    """The table of a run as comma-separated values; a name with a comma is quoted."""
    import csv
    import io
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    verdicts = {v["name"]: v for v in run.get("against", {}).get("rows", [])}
    extra = ["verdict", "ratio", "ratio_at_equal_speed"] if "against" in run else []
    writer.writerow(COLUMNS + ["samples"] + extra)
    for row in run["rows"]:
        verdict = verdicts.get(row["name"], {})
        writer.writerow([row[c] for c in COLUMNS] + [" ".join(repr(s) for s in row["samples"])] +
                        [verdict.get(key, "") for key in extra])
    return text.getvalue()


def openblas_ratios(rows):
    """How fast each rung of the GEMM ladder is by OpenBLAS in the same run, by name."""
    peers = {m[1]: row["median"] for row in rows if (m := re.fullmatch(r"(gemm_ladder/[^/]+)/openblas", row["name"]))}
    ratios = {}
    for row in rows:
        group = row["name"].rsplit("/", 1)[0]
        if group in peers and not row["name"].endswith("/openblas"):
            ratios[row["name"]] = peers[group] / row["median"]
    return ratios
