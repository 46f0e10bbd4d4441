"""JAX's side of the comparison of nets: those of torch_nets.py, jitted, from the weights and inputs that torch_train.py wrote.

usage: jax_train.py NET --init FILE [--inference B] [--threads 2] [--steps 60]
A step, with its optimizer, is one compiled function whose buffers are donated; images and kernels lie channels last, which
is how XLA computes convolutions on CPUs. Prints the line of torch_train.py.
"""
import argparse
import os
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("net", choices=["mlp", "lenet", "cnn", "dcgan", "gpt", "resnet18", "vit", "lstm"])
parser.add_argument("--init", required=True, help="file of torch_train.py --dump")
parser.add_argument("--inference", type=int, default=0, metavar="B")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()
os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={str(args.threads > 1).lower()} intra_op_parallelism_threads={args.threads}"

import jax
import jax.numpy as jnp
from jax import lax
from safetensors.numpy import load_file

WARMUP = 8
LAYOUT = ("NHWC", "HWIO", "NHWC")


def linear(p, name, x):
    return x @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0)


def conv(p, name, x, stride=1, padding=0):
    pads = [(padding, padding)] * 2
    y = lax.conv_general_dilated(x, p[f"{name}.weight"], (stride, stride), pads, dimension_numbers=LAYOUT)
    return y + p.get(f"{name}.bias", 0)


def conv_transpose(p, name, x, stride=1, padding=0):
    """The weight is stored flipped, with input channels before output channels."""
    w = p[f"{name}.weight"]
    pads = [(w.shape[0] - 1 - padding,) * 2] * 2
    y = lax.conv_general_dilated(x, w, (1, 1), pads, lhs_dilation=(stride, stride), dimension_numbers=LAYOUT)
    return y + p.get(f"{name}.bias", 0)


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def batch_norm(p, name, x):
    if args.inference:
        mean, var = p[f"{name}.running_mean"], p[f"{name}.running_var"]
    else:
        mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * (p[f"{name}.weight"] * lax.rsqrt(var + 1e-5)) + p[f"{name}.bias"]


def layer_norm(p, name, x):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def bce_with_logits(x, target):
    return (jnp.maximum(x, 0) - x * target + jnp.log1p(jnp.exp(-jnp.abs(x)))).mean()


def flatten(x):
    return x.reshape(len(x), -1)


relu = jax.nn.relu


def mlp(p, x):
    return linear(p, "5", relu(linear(p, "3", relu(linear(p, "1", flatten(x))))))


def lenet(p, x):
    x = max_pool(relu(conv(p, "0", x, padding=2)))
    x = max_pool(relu(conv(p, "3", x)))
    return linear(p, "9", relu(linear(p, "7", flatten(x))))


def cnn(p, x):
    x = max_pool(relu(conv(p, "2", relu(conv(p, "0", x)))))
    return linear(p, "8", relu(linear(p, "6", flatten(x))))


def generator(p, z):
    x = relu(batch_norm(p, "1", conv_transpose(p, "0", z)))
    x = relu(batch_norm(p, "4", conv_transpose(p, "3", x, 2, 1)))
    return jnp.tanh(conv_transpose(p, "6", x, 2, 1))


def discriminator(p, x):
    x = jax.nn.leaky_relu(conv(p, "0", x, 2, 1), 0.2)
    x = jax.nn.leaky_relu(batch_norm(p, "3", conv(p, "2", x, 2, 1)), 0.2)
    return linear(p, "6", flatten(x))


def attention(p, name, x, heads, causal):
    batch, length, width = x.shape
    q, k, v = jnp.moveaxis(linear(p, f"{name}.qkv", x).reshape(batch, length, 3, heads, width // heads), 2, 0)
    y = jax.nn.dot_product_attention(q, k, v, is_causal=causal)  # (batch, length, heads, width / heads)
    return linear(p, f"{name}.o", y.reshape(batch, length, width))


def blocks(p, x, layers, heads, causal):
    for i in range(layers):
        x = x + attention(p, f"b.{i}", layer_norm(p, f"b.{i}.l1", x), heads, causal)
        hidden = jax.nn.gelu(linear(p, f"b.{i}.m.0", layer_norm(p, f"b.{i}.l2", x)), approximate=False)
        x = x + linear(p, f"b.{i}.m.2", hidden)
    return layer_norm(p, "n", x)


def gpt(p, tokens):
    x = p["te.weight"][tokens] + p["pe.weight"][jnp.arange(tokens.shape[1])]
    return linear(p, "h", blocks(p, x, 4, 6, True))


def vit(p, x):
    x = conv(p, "embedding", x, stride=4).reshape(len(x), 64, 192) + p["positions"]
    return linear(p, "h", blocks(p, x, 12, 3, False).mean(1))


def residual_block(p, name, x, stride):
    y = relu(batch_norm(p, f"{name}.bn1", conv(p, f"{name}.conv1", x, stride, 1)))
    y = batch_norm(p, f"{name}.bn2", conv(p, f"{name}.conv2", y, 1, 1))
    if f"{name}.shortcut.0.weight" in p:
        x = batch_norm(p, f"{name}.shortcut.1", conv(p, f"{name}.shortcut.0", x, stride))
    return relu(y + x)


def resnet18(p, x):
    x = relu(batch_norm(p, "1", conv(p, "0", x, padding=1)))
    for i, stride in enumerate((1, 1, 2, 1, 2, 1, 2, 1)):
        x = residual_block(p, str(3 + i), x, stride)
    return linear(p, "13", x.mean((1, 2)))


def lstm(p, tokens):
    x = p["e.weight"][tokens].swapaxes(0, 1)  # (length, batch, width)
    for layer in range(2):
        own = {k: p[f"r.{k}_l{layer}"] for k in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}

        def cell(state, gates):
            h, c = state
            i, f, g, o = jnp.split(gates + h @ own["weight_hh"].T, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros(x.shape[1:])
        _, x = lax.scan(cell, (zero, zero), x @ own["weight_ih"].T + own["bias_ih"] + own["bias_hh"])
    return linear(p, "h", x.swapaxes(0, 1))


def adam(params, grads, state, lr, betas=(0.9, 0.999), decay=0.0):
    """Adam, or AdamW with a decay; state is (step, first moments, second moments)."""
    step, first, second = state
    step = step + 1
    first = jax.tree.map(lambda m, g: betas[0] * m + (1 - betas[0]) * g, first, grads)
    second = jax.tree.map(lambda v, g: betas[1] * v + (1 - betas[1]) * g * g, second, grads)
    c1, c2 = 1 - betas[0] ** step, 1 - betas[1] ** step
    params = jax.tree.map(lambda p, m, v: p * (1 - lr * decay) - lr * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), params, first, second)
    return params, (step, first, second)


def fresh(params):
    return jnp.float32(0), jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params)


def weights(tensors, prefix="", transposed=(), maps=None):
    """Parameters in JAX's layout. `maps` gives the (channels, height, width) that a linear layer's input was flattened from."""
    params = {}
    for name, t in tensors.items():
        if not name.startswith(prefix) or name.startswith("input.") or "num_batches" in name:
            continue
        if "running_" in name and not args.inference:
            continue
        name = name[len(prefix):]
        if t.ndim == 4:
            t = t[:, :, ::-1, ::-1].transpose(2, 3, 0, 1) if name in transposed else t.transpose(2, 3, 1, 0)
        elif maps and name in maps:
            t = t.reshape(len(t), *maps[name]).transpose(0, 2, 3, 1).reshape(len(t), -1)
        params[name] = jnp.asarray(t)
    return params


def timed(step, state, items):
    times, losses = [], []
    for i in range(WARMUP + args.steps):
        start = time.perf_counter()
        state, loss = step(state, i)
        loss = float(loss)
        jax.block_until_ready(state)
        times.append(time.perf_counter() - start)
        losses.append(loss)
    median = statistics.median(times[WARMUP:])
    return items / median, median * 1e3, statistics.fmean(losses)


def infer(forward, params, x, items):
    """The "loss" is the mean square of the output, which is not part of the step that is timed."""
    run = jax.jit(lambda x: forward(params, x))
    times = []
    for _ in range(WARMUP + args.steps):
        start = time.perf_counter()
        y = jax.block_until_ready(run(x))
        times.append(time.perf_counter() - start)
    median = statistics.median(times[WARMUP:])
    return items / median, median * 1e3, float((y * y).mean())


def supervised(tensors):
    maps = {"lenet": {"7.weight": (32, 5, 5)}, "cnn": {"6.weight": (64, 12, 12)}}.get(args.net)
    params = weights(tensors, maps=maps)
    forward = globals()[args.net]
    x, y = jnp.asarray(tensors["input.x"]), jnp.asarray(tensors["input.y"]).reshape(-1)
    if x.ndim == 4:
        x = x.transpose(0, 2, 3, 1)
    if args.inference:
        return infer(forward, params, x, x.size if x.ndim == 2 else len(x))
    lr, decay = (3e-4, 0.01) if x.ndim == 2 else (1e-3, 0.0)

    @lambda f: jax.jit(f, donate_argnums=(0, 1))
    def update(params, state):
        loss, grads = jax.value_and_grad(lambda p: cross_entropy(forward(p, x).reshape(len(y), -1), y))(params)
        return *adam(params, grads, state, lr, decay=decay), loss

    def step(state, _):
        *state, loss = update(*state)
        return state, loss

    return timed(step, (params, fresh(params)), len(y))


def adversarial(tensors):
    g = weights(tensors, "g.", transposed=("0.weight", "3.weight", "6.weight"))
    if args.inference:
        x = jnp.asarray(tensors["input.x"]).transpose(0, 2, 3, 1)
        return infer(generator, g, x, len(x))
    d = weights(tensors, "d.", maps={"6.weight": (128, 7, 7)})
    real = jnp.asarray(tensors["input.real"]).transpose(0, 2, 3, 1)
    noise = jnp.asarray(tensors["input.z"]).transpose(0, 1, 3, 4, 2)

    @lambda f: jax.jit(f, donate_argnums=(0, 1, 2, 3))
    def update(g, d, g_state, d_state, z):
        fake, back = jax.vjp(lambda p: generator(p, z), g)
        d_loss, d_grads = jax.value_and_grad(
            lambda p: bce_with_logits(discriminator(p, real), 1.0) + bce_with_logits(discriminator(p, fake), 0.0))(d)
        d, d_state = adam(d, d_grads, d_state, 2e-4, (0.5, 0.999))
        g_loss, slope = jax.value_and_grad(lambda x: bce_with_logits(discriminator(d, x), 1.0))(fake)
        g, g_state = adam(g, back(slope)[0], g_state, 2e-4, (0.5, 0.999))
        return g, d, g_state, d_state, d_loss + g_loss

    def step(state, i):
        *state, loss = update(*state, noise[i])
        return state, loss

    return timed(step, (g, d, fresh(g), fresh(d)), len(real))


tensors = load_file(args.init)
rate, ms, loss = (adversarial if args.net == "dcgan" else supervised)(tensors)
print(f"{args.net:6s} {rate:12.0f} items/s {ms:9.3f} ms/step  loss {loss:.6f}")
