#!/usr/bin/env python3
"""PyTorch's side of the training comparison: four nets on synthetic inputs of the real shapes; data loading is excluded.
usage: torch_train.py [mlp|cnn|dcgan|gpt|all] [--threads 2] [--steps 60] [--compile] [--dump DIR]
Prints one line per net: name, items/s (tokens/s for gpt), median ms per step, mean loss over all steps.
--dump writes DIR/NET.safetensors with the initial weights and all inputs for the other side."""
import argparse, statistics, time, torch, torch.nn as nn, torch.nn.functional as F
p = argparse.ArgumentParser()
p.add_argument("what", nargs="?", default="all"); p.add_argument("--threads", type=int, default=2)
p.add_argument("--steps", type=int, default=60); p.add_argument("--compile", action="store_true"); p.add_argument("--dump", default="")
a = p.parse_args(); torch.set_num_threads(a.threads)
WARMUP = 8

def dump(name, nets, **inputs):
    if not a.dump: return
    from safetensors.torch import save_file
    tensors = {f"{prefix}{k}": v.detach().clone().contiguous() for prefix, net in nets.items() for k, v in net.state_dict().items()}
    save_file({**tensors, **{f"input.{k}": v for k, v in inputs.items()}}, f"{a.dump}/{name}.safetensors")

def timed(step, items):
    times, losses = [], []
    for i in range(WARMUP + a.steps):
        t = time.perf_counter(); loss = step(i); times.append(time.perf_counter() - t); losses.append(float(loss.detach()))
    m = statistics.median(times[WARMUP:]); return items / m, m * 1e3, statistics.fmean(losses)

def classifier(name, net, opt):
    x = torch.randn(128, 1, 28, 28); y = torch.randint(0, 10, (128,)); dump(name, {"": net}, x=x, y=y)
    f = torch.compile(net) if a.compile else net
    def step(i):
        opt.zero_grad(set_to_none=True); loss = F.cross_entropy(f(x), y); loss.backward(); opt.step(); return loss
    return timed(step, 128)

def mlp():
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return classifier("mlp", net, torch.optim.Adam(net.parameters(), lr=1e-3))
def cnn():
    net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))
    return classifier("cnn", net, torch.optim.Adam(net.parameters(), lr=1e-3))
def lenet():
    net = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10))
    return classifier("lenet", net, torch.optim.Adam(net.parameters(), lr=1e-3))

def dcgan():
    B, Z = 64, 100
    G = nn.Sequential(nn.ConvTranspose2d(Z, 256, 7, 1, 0, bias=False), nn.BatchNorm2d(256), nn.ReLU(True), nn.ConvTranspose2d(256, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.ReLU(True), nn.ConvTranspose2d(128, 1, 4, 2, 1), nn.Tanh())
    D = nn.Sequential(nn.Conv2d(1, 64, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(64, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.LeakyReLU(0.2, True), nn.Flatten(), nn.Linear(128 * 49, 1))
    og = torch.optim.Adam(G.parameters(), 2e-4, (0.5, 0.999)); od = torch.optim.Adam(D.parameters(), 2e-4, (0.5, 0.999))
    real = torch.randn(B, 1, 28, 28); one = torch.ones(B, 1); zero = torch.zeros(B, 1); zs = torch.randn(WARMUP + a.steps, B, Z, 1, 1)
    dump("dcgan", {"g.": G, "d.": D}, real=real, z=zs)
    g, d = (torch.compile(G), torch.compile(D)) if a.compile else (G, D)
    def step(i):
        fake = g(zs[i]); od.zero_grad(set_to_none=True)
        ld = F.binary_cross_entropy_with_logits(d(real), one) + F.binary_cross_entropy_with_logits(d(fake.detach()), zero)
        ld.backward(); od.step(); og.zero_grad(set_to_none=True); D.requires_grad_(False)  # the generator's step needs no gradient of D's weights
        lg = F.binary_cross_entropy_with_logits(d(fake), one); lg.backward(); og.step(); D.requires_grad_(True); return ld + lg
    return timed(step, B)

class Block(nn.Module):
    def __init__(s, C, H):
        super().__init__(); s.l1 = nn.LayerNorm(C); s.l2 = nn.LayerNorm(C); s.qkv = nn.Linear(C, 3 * C); s.o = nn.Linear(C, C); s.m = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C)); s.H = H
    def forward(s, x):
        B, T, C = x.shape; q, k, v = s.qkv(s.l1(x)).view(B, T, 3, s.H, C // s.H).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + s.o(y.transpose(1, 2).reshape(B, T, C)); return x + s.m(s.l2(x))
class GPT(nn.Module):
    def __init__(s, V=256, C=192, H=6, L=4, T=128):
        super().__init__(); s.te = nn.Embedding(V, C); s.pe = nn.Embedding(T, C); s.b = nn.Sequential(*[Block(C, H) for _ in range(L)]); s.n = nn.LayerNorm(C); s.h = nn.Linear(C, V, bias=False)
    def forward(s, i): return s.h(s.n(s.b(s.te(i) + s.pe(torch.arange(i.shape[1])))))
def gpt():
    B, T = 8, 128; net = GPT(); f = torch.compile(net) if a.compile else net
    x = torch.randint(0, 256, (B, T)); y = torch.randint(0, 256, (B, T)); opt = torch.optim.AdamW(net.parameters(), 3e-4); dump("gpt", {"": net}, x=x, y=y)
    def step(i):
        opt.zero_grad(set_to_none=True); loss = F.cross_entropy(f(x).view(-1, 256), y.view(-1)); loss.backward(); opt.step(); return loss
    return timed(step, B * T)

for n in (["mlp", "lenet", "cnn", "dcgan", "gpt"] if a.what == "all" else [a.what]):
    torch.manual_seed(0); r, ms, loss = globals()[n](); print(f"{n:6s} {r:12.0f} items/s {ms:9.3f} ms/step  loss {loss:.6f}", flush=True)
