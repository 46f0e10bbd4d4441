"""Answers levin_fuzz: reads programs as JSON lines, runs them in PyTorch, and writes values and gradients in float64.

Numbers are hexadecimal floats, which read back exactly. Weights of second gradients are those of weights_of() in
tests/fuzz/results.cpp.
"""
import json
import math
import sys
import warnings

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.set_num_threads(1)
warnings.filterwarnings("ignore")


def tensor_of(leaf):
    dtype = getattr(torch, leaf["dtype"])
    values = [float.fromhex(word) for word in leaf["values"].split()]
    if not dtype.is_floating_point:
        values = [int(v) for v in values]
    return torch.tensor(values, dtype=dtype).reshape(leaf["sizes"])


def text_of(number):
    return "nan" if math.isnan(number) else "inf" if number == math.inf else "-inf" if number == -math.inf else number.hex()


def answer_of(tensor):
    if tensor is None:
        return None
    tensor = tensor.detach()
    if tensor._is_zerotensor():  # it has no memory
        tensor = torch.zeros(tensor.shape)
    return {"sizes": list(tensor.shape), "values": " ".join(text_of(v) for v in tensor.double().reshape(-1).tolist())}


def fit(x, sizes):
    """Cuts or repeats x to the sizes, as Program's steps do."""
    if list(x.shape) == sizes:
        return x
    count = math.prod(sizes)
    flat = x.reshape(-1)
    if count <= flat.numel():
        return flat[:count].reshape(sizes)
    return flat[torch.arange(count) % flat.numel()].reshape(sizes)


def outputs_of(program, leaves):
    values, used, outputs = list(leaves), set(), []
    for step in program["steps"]:
        used.update(step["sources"])
    for i, step in enumerate(program["steps"]):
        inputs = [fit(values[s], sizes) for s, sizes in zip(step["sources"], step["sizes"])]
        names = {f"x{k}": x for k, x in enumerate(inputs)}
        result = eval(step["expression"], {"torch": torch, "F": F, "math": math, "n": len(inputs), **names})
        results = [result] if isinstance(result, torch.Tensor) else list(result)
        values.append(results[0])
        if i + 1 == len(program["steps"]):
            outputs += results
        elif len(leaves) + i not in used:
            outputs.append(results[0])
    return outputs


def weights_of(count, gradient):
    return [((i * 5 + gradient * 3) % 7 - 2.5) / 4 for i in range(count)]


def gradients_of(program, outputs, wanted):
    cotangents = [tensor_of(g).requires_grad_() for g in program["cotangents"]]
    weighted = [y for y in outputs if y.requires_grad]
    first = torch.autograd.grad(weighted, wanted, cotangents, create_graph=program["twice"], allow_unused=True)
    second = []
    if program["twice"]:
        recorded = [(i, g) for i, g in enumerate(first) if g is not None and g.requires_grad]
        if recorded:
            weights = [torch.tensor(weights_of(g.numel(), i), dtype=g.dtype).reshape(g.shape) for i, g in recorded]
            second = torch.autograd.grad([g for _, g in recorded], wanted + cotangents, weights, allow_unused=True)
    return first, second


def answer(program):
    leaves, wanted = [], []
    for leaf in program["leaves"]:
        leaves.append(tensor_of(leaf))
        if leaf["differentiable"]:
            wanted.append(leaves[-1].requires_grad_())
    outputs = outputs_of(program, leaves)
    first, second = gradients_of(program, outputs, wanted) if program["cotangents"] else ([], [])
    return {"outputs": [answer_of(t) for t in outputs], "first": [answer_of(t) for t in first],
            "second": [answer_of(t) for t in second]}


def main():
    print("ready", flush=True)
    for line in sys.stdin:
        program = json.loads(line)
        try:
            with sdpa_kernel(SDPBackend.MATH):  # the one with second gradients
                result = answer(program)
        except RuntimeError:  # not supported by PyTorch, such as some second gradients
            result = {"refused": True}
        except Exception as error:  # levin_fuzz prints it with the program
            result = {"error": str(error).splitlines()[0] if str(error) else repr(error)}
        print(json.dumps({"number": program["number"], **result}), flush=True)


if __name__ == "__main__":
    main()
