#!/usr/bin/env python3
"""PyTorch's side of the comparison of nets, on synthetic inputs of real shapes; data loading is excluded.
usage: torch_train.py NET [--inference B] [--threads 2] [--steps 60] [--compile [MODE]] [--channels-last] [--dump DIR]
Prints the name, items/s (tokens/s of language models), the median ms of a step, and the mean loss over all steps or,
with --inference, which runs forward passes of B samples in evaluation mode, the mean square of the output. --dump writes
DIR/NET.safetensors with the initial weights and all inputs for the other side. Subnormal numbers are flushed to zero."""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F

import torch_nets

parser = argparse.ArgumentParser()
parser.add_argument("net", choices=[*torch_nets.SUPERVISED, "dcgan"])
parser.add_argument("--inference", type=int, default=0, metavar="B")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--compile", nargs="?", const="default", metavar="MODE")
parser.add_argument("--channels-last", action="store_true")
parser.add_argument("--dump", default="")
args = parser.parse_args()
WARMUP = 8


def dump(nets, **inputs):
    if not args.dump:
        return
    from safetensors.torch import save_file
    tensors = {prefix + k: v.detach().clone().contiguous() for prefix, net in nets.items() for k, v in net.state_dict().items()}
    save_file({**tensors, **{f"input.{k}": v for k, v in inputs.items()}}, f"{args.dump}/{args.net}.safetensors")


def prepared(*tensors_or_nets):
    """Converts nets and images to the layout and compiles nets, as the options say."""
    done = []
    for x in tensors_or_nets:
        if args.channels_last and (isinstance(x, torch.nn.Module) or x.dim() == 4):
            x = x.to(memory_format=torch.channels_last)
        if args.compile and isinstance(x, torch.nn.Module):
            x = torch.compile(x, mode=args.compile)
        done.append(x)
    return done


def raise_the_clock():
    """Multiplies matrices for a third of a second, as the other side does."""
    x, start = torch.full((256, 256), 1.0), time.perf_counter()
    while time.perf_counter() - start < 1 / 3:
        x.mm(x)


def timed(step, items):
    times, losses = [], []
    raise_the_clock()
    for i in range(WARMUP + args.steps):
        start = time.perf_counter()
        loss = step(i)
        times.append(time.perf_counter() - start)
        losses.append(float((loss.square().mean() if args.inference else loss).detach()))
    median = statistics.median(times[WARMUP:])
    return items / median, median * 1e3, statistics.fmean(losses)


def infer(net, x, items):
    net.eval()
    run, x = prepared(net, x)
    with torch.inference_mode():
        return timed(lambda _: run(x), items)


def supervised():
    make, shape, classes = torch_nets.SUPERVISED[args.net]
    if args.inference:
        shape = (args.inference, *shape[1:])
    net, tokens = make(), len(shape) == 2
    x = torch.randint(0, classes, shape) if tokens else torch.randn(shape)
    y = torch.randint(0, classes, shape if tokens else shape[:1])
    dump({"": net}, x=x, y=y)
    if args.inference:
        return infer(net, x, x.numel() if tokens else len(x))
    optimizer = torch.optim.AdamW(net.parameters(), 3e-4) if tokens else torch.optim.Adam(net.parameters(), lr=1e-3)
    f, x = prepared(net, x)

    def step(_):
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(f(x).view(-1, classes), y.view(-1))
        loss.backward()
        optimizer.step()
        return loss

    return timed(step, y.numel())


def dcgan():
    batch = args.inference or 64
    G, D = torch_nets.generator(), torch_nets.discriminator()
    if args.inference:
        x = torch.randn(batch, 100, 1, 1)
        dump({"g.": G, "d.": D}, x=x)
        return infer(G, x, batch)
    g_optimizer = torch.optim.Adam(G.parameters(), 2e-4, (0.5, 0.999))
    d_optimizer = torch.optim.Adam(D.parameters(), 2e-4, (0.5, 0.999))
    real, z = torch.randn(batch, 1, 28, 28), torch.randn(WARMUP + args.steps, batch, 100, 1, 1)
    one, zero = torch.ones(batch, 1), torch.zeros(batch, 1)
    dump({"g.": G, "d.": D}, real=real, z=z)
    g, d, real = prepared(G, D, real)

    def step(i):
        fake = g(z[i])
        d_optimizer.zero_grad(set_to_none=True)
        d_loss = F.binary_cross_entropy_with_logits(d(real), one) + F.binary_cross_entropy_with_logits(d(fake.detach()), zero)
        d_loss.backward()
        d_optimizer.step()
        g_optimizer.zero_grad(set_to_none=True)
        D.requires_grad_(False)  # the generator's step needs no gradient of D's weights
        g_loss = F.binary_cross_entropy_with_logits(d(fake), one)
        g_loss.backward()
        g_optimizer.step()
        D.requires_grad_(True)
        return d_loss + g_loss

    return timed(step, batch)


torch.set_num_threads(args.threads)
torch.set_flush_denormal(True)
torch.manual_seed(0)
rate, ms, loss = dcgan() if args.net == "dcgan" else supervised()
print(f"{args.net:8s} {rate:12.0f} items/s {ms:9.3f} ms/step  loss {loss:.6f}")
