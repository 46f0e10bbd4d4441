"""The nets of ./run compare: training steps, and forward passes of 64 samples and of one, against each peer in turn.

Rows are named `NET`, `NET/b64` and `NET/b1` against PyTorch in eager mode, with `/compiled`, `/max-autotune`,
`/channels-last` or `/jax` behind it against another peer; `memory/NET` is the peak memory of the two processes that
trained in eager mode.
"""
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / "build/release/bin"
PEERS = ROOT / "build/peers"
LOSS_TOLERANCE = 0.02

# The ratio to the best of all peers that each net shall reach: of a training step, and of forward passes by their batch.
GOALS = {"mlp": {"": 1.3, "/b64": 1.3, "/b1": 3}, "lenet": {"": 2.5, "/b64": 1.3, "/b1": 3},
         "cnn": {"": 2.5, "/b64": 1.3, "/b1": 1.3}, "dcgan": {"": 1.6, "/b64": 1.3, "/b1": 1.3},
         "gpt": {"": 1.6, "/b64": 1.3, "/b1": 1.3}, "resnet18": {"": 1.3, "/b64": 1.3, "/b1": 1.3},
         "vit": {"": 1.3, "/b64": 1.3, "/b1": 1.3}, "lstm": {"": 1.3, "/b64": 1.3, "/b1": 1.3}}
MEMORY_GOAL = 2.5
WORDS = {"": "training step", "/b64": "forward, 64 samples", "/b1": "forward, one sample"}
IMAGES = ("lenet", "cnn", "dcgan", "resnet18")  # whose convolutions may prefer channels last
TOKENS = ("gpt", "lstm")
HEAVY = ("resnet18", "vit")  # a step takes most of a second

PEER_OPTIONS = {"": [], "/compiled": ["--compile"], "/max-autotune": ["--compile", "max-autotune"],
                "/channels-last": ["--channels-last"], "/jax": None}


def peak_memory(pid):
    """Returns the peak memory of a process so far in MB, or 0 if it has ended. The usage that wait4 reports would also
    count the memory of this process, from which the child was forked."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0


def run_measured(command):
    """Returns a program's output and its peak memory in MB."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen([str(c) for c in command], stdout=out, stderr=err, cwd=ROOT)
        peak = 0
        while process.poll() is None:
            peak = max(peak, peak_memory(process.pid))
            time.sleep(0.02)
        out.seek(0), err.seek(0)
        output = out.read()
        if process.returncode != 0:
            sys.exit(f"error: {' '.join(map(str, command))} ended with {process.returncode}:\n{output}{err.read()}")
    return output, peak


def run(command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=ROOT)
    if result.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


def figures(output):
    """Returns (items/s, loss) from the line of a net."""
    match = re.search(r"([\d.]+) items/s\s+[\d.]+ ms/step\s+loss ([-\d.naif]+)", output)
    if not match:
        sys.exit(f"error: no results in: {output}")
    return float(match[1]), float(match[2])


def row(name, levin, peer, unit):
    ratio = peer / levin if unit in ("us", "us/op", "s", "ms", "MB") else levin / peer
    return {"name": name, "levin": levin, "peer": peer, "ratio": ratio, "unit": unit}


def peers_of(net, args):
    """Returns the names of the peers of a net. The eager one is first, since it writes the weights."""
    peers = [""]
    if not args.no_compile:
        peers += ["/compiled", "/max-autotune"]
    if net in IMAGES:
        peers.append("/channels-last")
    return peers if args.no_jax else [*peers, "/jax"]


def steps_of(net, batch, peer, args):
    """XLA's gradients of convolutions take seconds on a CPU, so the steps are few."""
    if batch == 1:
        return 5 * args.steps
    most = 12 if peer == "/jax" and not batch else 20 if net in HEAVY else args.steps
    return min(args.steps, most)


def agrees(loss, other):
    return other is not None and abs(loss - other) <= LOSS_TOLERANCE * abs(other)


def compare_with(net, batch, peer, args, eager_loss):
    """Returns a row, and the peak memory of both sides in MB. Levin's loss has to agree with the peer's. Compiled nets
    round differently, so theirs may agree with that of the eager one instead; the output then says so."""
    mode = ["--inference", batch] if batch else []
    options = [net, *mode, "--threads", args.threads, "--steps", steps_of(net, batch, peer, args)]
    weights = PEERS / f"{net}.safetensors"
    if peer == "/jax":
        theirs = [sys.executable, "bench/peers/jax_train.py", *options, "--init", weights]
    else:
        theirs = [sys.executable, "bench/peers/torch_train.py", *options, *PEER_OPTIONS[peer], "--dump", PEERS]
    ours = [BIN / "levin_compare_nets", *options, "--init", weights]
    rates = [], []
    for _ in range(1 if peer == "/jax" and net in HEAVY else args.rounds):
        (output, peer_memory), (own_output, own_memory) = args.watch.measure(lambda: (run_measured(theirs), run_measured(ours)))
        rate, peer_loss = figures(output)
        rates[1].append(rate)
        rate, loss = figures(own_output)
        rates[0].append(rate)
    memory = own_memory, peer_memory
    name = net + (f"/b{batch}" if batch else "") + peer
    if not agrees(loss, peer_loss):
        if not agrees(loss, eager_loss):
            sys.exit(f"error: {name}: the losses differ by more than 2 %: {loss} here, {peer_loss} there")
        print(f"{name}: the last loss is {peer_loss} there and {eager_loss} in eager mode, {loss} here")
    unit = "tokens/s" if net in TOKENS else "images/s"
    spread = max((max(side) - min(side)) / statistics.median(side) for side in rates)
    return {**row(name, *map(statistics.median, rates), unit), "loss": loss, "peer_loss": peer_loss, "spread": spread}, memory


def compare_nets(args, show):
    """Calls show(row) for each net, way of running it and peer that contain the filter."""
    for net in GOALS:
        for batch in (0, 64, 1):
            eager_loss = None
            work = net + (f"/b{batch}" if batch else "")
            wanted = [p for p in peers_of(net, args) if args.filter in work + p]
            measures_memory = batch == 0 and args.filter in f"memory/{net}"
            if measures_memory and "" not in wanted:
                wanted.insert(0, "")
            if wanted and wanted[0] == "/jax":
                wanted = ["", "/jax"]  # JAX reads the weights that PyTorch wrote
            for peer in wanted:
                found, memory = compare_with(net, batch, peer, args, eager_loss)
                show(found)
                if peer == "":
                    eager_loss = found["peer_loss"]
                    if measures_memory:
                        show(row(f"memory/{net}", *memory, "MB"))


def work_of(name):
    """Returns the net and the way of running it, as GOALS has them, or None for another row."""
    match = re.fullmatch(r"(\w+)(/b64|/b1)?(/[a-z-]+)?", name)
    return (match[1], match[2] or "") if match and match[1] in GOALS else None


def best_peers(rows):
    """Returns for each net and way of running it the row with the least ratio, in the order of GOALS."""
    best = {}
    for r in rows:
        work = work_of(r["name"])
        if work and (work not in best or r["ratio"] < best[work]["ratio"]):
            best[work] = r
    order = [(net, way) for way in ("", "/b64", "/b1") for net in GOALS]
    return [best[work] for work in order if work in best]


def peer_of(name):
    last = name.split("/")[-1]
    known = {"compiled": "torch.compile", "max-autotune": "torch.compile, max-autotune", "jax": "JAX",
             "channels-last": "PyTorch, channels last", "libtorch": "LibTorch"}
    return known.get(last, "PyTorch")


def number(x):
    return f"{x:,.0f}" if x >= 1000 else f"{x:.4g}"


def best_table(rows):
    """Returns Markdown lines: each work beside its best peer and its goal."""
    lines = ["| net | work | Levin | best peer | | unit | ratio | goal |", "|---|---|---:|---:|---|---|---:|---:|"]
    for r in best_peers(rows):
        net, way = work_of(r["name"])
        goal = GOALS[net][way]
        lines.append(f"| {net} | {WORDS[way]} | {number(r['levin'])} | {number(r['peer'])} | {peer_of(r['name'])} | "
                     f"{r['unit']} | {r['ratio']:.2f} | {goal}{'' if r['ratio'] >= goal else ', not reached'} |")
    for r in rows:
        if r["name"].startswith("memory/"):
            lines.append(f"| {r['name'].removeprefix('memory/')} | peak memory, training | {number(r['levin'])} | "
                         f"{number(r['peer'])} | PyTorch | MB | {r['ratio']:.2f} | {MEMORY_GOAL}"
                         f"{'' if r['ratio'] >= MEMORY_GOAL else ', not reached'} |")
    return lines
