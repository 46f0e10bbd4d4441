"""peer_torch.py BENCH.jsonl --to FILE [--seconds N] [--check]: measures the rows of levin_bench_cuda with PyTorch.

FILE gets one line per row as soon as it is measured: family, rung, dtype, shape, and peers.torch (for attention
torch_flash and torch_cudnn) with seconds and ratio (PyTorch's over Levin's), or missing with the reason. Timing is as
in levin_bench_cuda: events, medians, cold caches for operations. cudnn.benchmark is on, so that cuDNN tries its
algorithms in the warm-up; convolutions are timed with contiguous and with channels-last tensors, and the faster layout
counts. Training steps come first: their lines have name (net/precision) and peers.torch; the nets, precisions and
optimizer are those of bench/cuda/training.cpp. --check runs each operation once on the CPU without timing.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

FLUSH_BYTES = 256 << 20
CALLS = 20


def gemm(torch, like, s):
    a, b = like(s["m"], s["k"]), like(s["k"], s["n"])
    out = torch.empty(s["m"], s["n"], dtype=a.dtype, device=a.device)
    return lambda: torch.matmul(a, b, out=out)


def conv_tensors(like, s):
    x = like(s["batch"], s["in"], s["side"], s["side"])
    weight = like(s["out"], s["in"], s["kernel"], s["kernel"])
    return x, weight, like(s["batch"], s["out"], s["side"], s["side"])


def laid_out(torch, tensor, s):
    """Returns the tensor in the problem's layout."""
    return tensor.to(memory_format=getattr(torch, s.get("layout", "contiguous_format")))


def conv(torch, like, s):
    x, weight, _ = (laid_out(torch, t, s) for t in conv_tensors(like, s))
    return lambda: torch.nn.functional.conv2d(x, weight, padding=1)


def conv_backward(wanted):
    def make(torch, like, s):
        x, weight, g = (laid_out(torch, t, s) for t in conv_tensors(like, s))
        return lambda: torch.ops.aten.convolution_backward(g, x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
                                                           wanted)
    return make


def attention(backend, backward):
    def make(torch, like, s):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        q, k, v, g = (like(1, s["heads"], s["length"], s["width"]) for _ in range(4))
        for x in (q, k, v):
            x.requires_grad_(backward)

        def forward():
            with sdpa_kernel([getattr(SDPBackend, backend)]):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(s["causal"]))
        if not backward:
            return forward
        out = forward()
        return lambda: torch.autograd.grad(out, (q, k, v), g, retain_graph=True)
    return make


def lines(function):
    def make(torch, like, s):
        x = like(s["rows"], s["columns"])
        return lambda: function(torch, x)
    return make


def layer_norm(torch, like, s):
    x, weight, bias = like(s["rows"], s["columns"]), like(s["columns"]), like(s["columns"])
    return lambda: torch.nn.functional.layer_norm(x, (s["columns"],), weight, bias)


def transpose(torch, like, s):
    x, out = like(s["columns"], s["rows"]), like(s["rows"], s["columns"])
    return lambda: out.copy_(x.t())


def add(torch, like, s):
    a, b, out = like(s["n"]), like(s["n"]), like(s["n"])
    return lambda: torch.add(a, b, out=out)


def vector(function):
    def make(torch, like, s):
        x = like(s["n"])
        return lambda: function(torch, x)
    return make


def adamw(torch, like, s):
    parameters = [torch.nn.Parameter(like(s["n"] // s["tensors"])) for _ in range(s["tensors"])]
    for p in parameters:
        p.grad = like(p.numel())
    return torch.optim.AdamW(parameters, lr=1e-3, fused=True).step


def images(like, s, side):
    return like(s["batch"], s["channels"], side, side)


def pool(torch, like, s):
    x = images(like, s, s["side"])
    return lambda: torch.nn.functional.max_pool2d(x, 2, return_indices=True)


def pool_backward(torch, like, s):
    x, g = images(like, s, s["side"]), images(like, s, s["side"] // 2)
    indices = torch.nn.functional.max_pool2d(x, 2, return_indices=True)[1]
    return lambda: torch.ops.aten.max_pool2d_with_indices_backward(g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, indices)


def channel_sum(torch, like, s):
    x = images(like, s, s["side"])
    return lambda: x.sum((0, 2, 3))


LAYOUTS = {family: ("contiguous_format", "channels_last")
           for family in ("conv", "conv_backward_input", "conv_backward_weight")}

FAMILIES = {
    "sgemm": {"torch": gemm}, "hgemm": {"torch": gemm}, "conv": {"torch": conv},
    "conv_backward_input": {"torch": conv_backward([True, False, False])},
    "conv_backward_weight": {"torch": conv_backward([False, True, False])},
    "attention": {"torch_flash": attention("FLASH_ATTENTION", False),
                  "torch_cudnn": attention("CUDNN_ATTENTION", False)},
    "attention_backward": {"torch_flash": attention("FLASH_ATTENTION", True),
                           "torch_cudnn": attention("CUDNN_ATTENTION", True)},
    "reduce": {"torch": lines(lambda torch, x: x.sum(1, keepdim=True))},
    "softmax": {"torch": lines(lambda torch, x: torch.softmax(x, 1))},
    "layer_norm": {"torch": layer_norm}, "transpose": {"torch": transpose}, "add": {"torch": add},
    "gelu": {"torch": vector(lambda torch, x: torch.nn.functional.gelu(x))}, "adamw": {"torch": adamw},
    "scan": {"torch": vector(lambda torch, x: x.cumsum(0))},
    "pool": {"torch": pool}, "pool_backward": {"torch": pool_backward}, "channel_sum": {"torch": channel_sum},
    "column_sum": {"torch": lines(lambda torch, x: x.sum(0))},
    "sort": {"torch": vector(lambda torch, x: x.sort(stable=True))},
}


def seconds_of(torch, flush, call):
    """Returns the median time of calls that each follow a cache flush or, without one, the end of the call before."""
    for _ in range(5):
        call()
    marks = []
    for _ in range(CALLS):
        if flush is None:
            torch.cuda.synchronize()
        else:
            flush.fill_(1)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        marks.append((start, end))
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in marks) * 1e-3


def cnn(torch, device, check):
    """Returns the net with its inputs and labels."""
    nn, batch = torch.nn, 2 if check else 2048
    net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    return net, torch.randn(batch, 1, 28, 28, device=device), torch.randint(0, 10, (batch,), device=device)


def gpt_blocks(torch, device, check):
    """Returns the net with its inputs and labels."""
    nn = torch.nn
    blocks, batch, length, width, heads = (1, 2, 16, 32, 2) if check else (8, 8, 1024, 1024, 16)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            parts = self.qkv(self.before_attention(x)).view(*x.shape[:2], 3, heads, width // heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = x + self.out(y.transpose(1, 2).reshape(x.shape))
            return h + self.mlp(self.before_mlp(h))

    net = nn.Sequential(*(Block() for _ in range(blocks)), nn.LayerNorm(width), nn.Flatten(0, 1),
                        nn.Linear(width, 256)).to(device)
    labels = torch.randint(0, 256, (batch * length,), device=device)
    return net, torch.randn(batch, length, width, device=device), labels


NETS = {"cnn": cnn, "gpt_blocks": gpt_blocks}


def training_step(torch, net, precision, device, check):
    """Returns one training step in the given precision."""
    module, x, labels = NETS[net](torch, device, check)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, fused=True)
    scaler = torch.amp.GradScaler(device, enabled=precision == "16-mixed")
    dtype = torch.float16 if precision == "16-mixed" else torch.bfloat16

    def step():
        with torch.autocast(device, dtype, enabled=precision != "32-true"):
            loss = torch.nn.functional.cross_entropy(module(x), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return step


class Side:
    """PyTorch on one device. Results are cached by problem, because several rungs share one."""

    def __init__(self, torch, check):
        self.torch, self.check, self.known = torch, check, {}
        self.device = "cpu" if check else "cuda"
        self.flush = None if check else torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")

    def figure(self, name, make, row):
        tf32 = row.get("unit") == "tf32" or row["rung"] == "tf32"
        key = (name, row["family"], row["dtype"], row["shape"], tf32)
        if key not in self.known:
            self.known[key] = self.measure(make, row, tf32)
        return self.known[key]

    def training(self, row):
        torch = self.torch
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        try:
            step = training_step(torch, row["net"], row["precision"], self.device, self.check)
            if self.check:
                step()
                return {}
            return {"seconds": seconds_of(torch, None, step)}
        except (RuntimeError, NotImplementedError, TypeError) as e:
            return {"missing": "PyTorch: " + (str(e).splitlines() or [type(e).__name__])[0]}

    def measure(self, make, row, tf32):
        torch = self.torch
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        dtype = getattr(torch, row["dtype"])
        best = {}
        for layout in LAYOUTS.get(row["family"], (None,)):
            sizes = {**row["sizes"], **({"layout": layout} if layout else {})}
            try:
                call = make(torch, lambda *shape: torch.randn(shape, dtype=dtype, device=self.device), sizes)
                if self.check:
                    call()
                    continue
                figure = {"seconds": seconds_of(torch, self.flush, call), **({"layout": layout} if layout else {})}
            except (RuntimeError, NotImplementedError, TypeError) as e:
                figure = {"missing": "PyTorch: " + (str(e).splitlines() or [type(e).__name__])[0]}
            if "seconds" not in best or figure.get("seconds", best["seconds"]) < best["seconds"]:
                best = figure
        return best


def no_torch(check):
    """Returns PyTorch, or None and the reason."""
    try:
        import torch
    except ImportError:
        return None, "this machine's python3 has no PyTorch."
    if not check and not torch.cuda.is_available():
        return None, "this machine's PyTorch sees no GPU."
    return torch, ""


def rows_of(path):
    """Returns the training steps, and then the rows, of levin_bench_cuda's file that PyTorch can compute too."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    steps = [line for line in lines if line["kind"] == "training" and line.get("net") in NETS]
    return steps + [line for line in lines if line["kind"] == "row" and "sizes" in line]


def with_ratio(figure, row):
    peer = dict(figure)
    if "seconds" in peer and row.get("seconds"):
        peer["ratio"] = peer["seconds"] / row["seconds"]
    return peer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", type=pathlib.Path)
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    start = time.monotonic()
    torch, reason = no_torch(args.check)
    side = Side(torch, args.check) if torch else None
    count = 0
    with args.to.open("w") as out:
        for row in rows_of(args.bench):
            peers, training = {}, row["kind"] == "training"
            makers = {"torch": None} if training else FAMILIES.get(row["family"], {})
            for name, make in makers.items():
                if not side:
                    peers[name] = {"missing": reason}
                elif time.monotonic() - start > args.seconds:
                    peers[name] = {"missing": "the time for PyTorch's rows was used up."}
                else:
                    peers[name] = with_ratio(side.training(row) if training else side.figure(name, make, row), row)
            if peers:
                line = {key: row[key] for key in (("name",) if training else ("family", "rung", "dtype", "shape"))}
                out.write(json.dumps({**line, "peers": peers}) + "\n")
                out.flush()
                count += 1
    print(f"{count} rows, {reason or torch.__version__}")


main()
