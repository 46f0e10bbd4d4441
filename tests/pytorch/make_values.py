#!/usr/bin/env python3
"""Makes the stored PyTorch values that the tests compare with. Needs PyPI's torch; the tests do not.

usage: LEVIN_DUMP_INPUTS=inputs.txt levin_ops_tests -tc="*PyTorch*" && make_values.py operations inputs.txt
       make_values.py optimizers | schedulers | training | modules

Writes, beside itself, the file of that name:
  operations.txt   outputs and gradients of the operation cases that name a PyTorch expression
  optimizers.txt   parameters over ten steps of each optimizer
  schedulers.txt   learning rates (and momenta) over the steps of each scheduler
  training.txt     losses of ten training steps of the mlp and of lenet
  modules.txt      outputs and gradients of modules
Each line is `name dtype shape values`; numbers are written so that they read back exactly.
"""
import math
import pathlib
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import parametrizations

HERE = pathlib.Path(__file__).parent
DTYPES = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16,
          "int64": torch.int64, "int32": torch.int32, "int16": torch.int16, "int8": torch.int8, "uint8": torch.uint8,
          "bool": torch.bool}
NAMES = {v: k for k, v in DTYPES.items()}


def write_line(out, name, tensor):
    tensor = tensor.detach()
    shape = ",".join(str(s) for s in tensor.shape) or "-"
    kind = tensor.dtype
    digits = 17 if kind == torch.float64 else 9
    if kind.is_floating_point:
        values = " ".join(f"{v:.{digits}g}" for v in tensor.double().flatten().tolist())
    else:
        values = " ".join(str(int(v)) for v in tensor.flatten().tolist())
    out.write(f"{name} {NAMES[kind]} {shape} {values}\n")


def read_line(line):
    kind, shape, *values = line.split()
    sizes = [] if shape == "-" else [int(s) for s in shape.split(",")]
    dtype = DTYPES[kind]
    if dtype.is_floating_point:
        return torch.tensor([float(v) for v in values], dtype=torch.float64).to(dtype).reshape(sizes)
    return torch.tensor([int(v) for v in values], dtype=torch.int64).to(dtype).reshape(sizes)


def formula(n, salt):
    """Returns numbers that C++ computes too: a hash of the index, as a multiple of 2^-15 in [-1, 1)."""
    i = torch.arange(n, dtype=torch.int64)
    h = (i * 2654435761 + salt * 40503) % 4294967296
    h = ((h ^ (h >> 15)) * 2246822519) % 4294967296
    return ((h >> 16) - 32768).to(torch.float32) / 32768


def cotangent(like, output):
    """Returns the weights of an output's gradient."""
    return formula(like.numel(), 1000 + output).to(like.dtype).reshape(like.shape)


def stored_blocks():
    """Returns the lines of each case in operations.txt."""
    blocks = {}
    path = HERE / "operations.txt"
    for line in path.read_text().splitlines(keepends=True) if path.exists() else []:
        blocks.setdefault(line.split(" ", 1)[0].rpartition("/")[0], []).append(line)
    return blocks


def evaluate(out, block, inputs):
    """Writes the outputs and gradients of one case."""
    names = {f"x{i}": t for i, t in enumerate(inputs)}
    result = eval(block["eval"], {"torch": torch, "F": F, "math": math, "nn": nn, "n": len(inputs)} | names)
    write_line(out, f"{block['case']}/inputs", torch.tensor(int(block["fingerprint"])))
    result = list(result) if isinstance(result, (tuple, list)) else [result]
    for i, y in enumerate(result):
        write_line(out, f"{block['case']}/out{i}", y)
    loss = [(y, cotangent(y, i)) for i, y in enumerate(result) if y.requires_grad]
    wanted = [(i, t) for i, t in enumerate(inputs) if t.requires_grad]
    grads = [None] * len(wanted)
    if loss and wanted:
        try:
            grads = torch.autograd.grad([y for y, _ in loss], [t for _, t in wanted], [c for _, c in loss],
                                        allow_unused=True)
        except RuntimeError as e:  # scatter: an index smaller than its source
            print(f"{block['case']}: PyTorch has no gradient: {e}", file=sys.stderr)
            write_line(out, f"{block['case']}/no_gradients", torch.tensor(1))
            wanted = []
    for (i, t), g in zip(wanted, grads):  # a gradient that PyTorch leaves out is zero
        write_line(out, f"{block['case']}/grad{i}", torch.zeros_like(t) if g is None else g)


def operations(path):
    """Each block: `case NAME`, `fingerprint N`, `eval EXPRESSION`, `input grad|plain ...` lines, `end`.

    Values of cases whose fingerprint is unchanged are kept.
    """
    kept = stored_blocks()
    block, inputs = {}, []
    text = pathlib.Path(path).read_text()
    with open(HERE / "operations.txt", "w") as out:
        for line in text.splitlines():
            word, _, rest = line.partition(" ")
            if word in ("case", "eval", "fingerprint"):
                block[word] = rest
            elif word == "input":
                inputs.append(rest)
            elif word == "end":
                lines = kept.get(block["case"], [])
                if lines and lines[0].split()[-1] == block["fingerprint"]:
                    out.writelines(lines)
                else:
                    values = [(grad, read_line(rest)) for grad, _, rest in (i.partition(" ") for i in inputs)]
                    try:
                        evaluate(out, block, [t.requires_grad_(grad == "grad") for grad, t in values])
                    except Exception as e:
                        print(f"{block['case']}: {block['eval']}: {e}", file=sys.stderr)
                block, inputs = {}, []


def optimizers():
    kinds = {
        "sgd": (torch.optim.SGD, dict(lr=0.1)),
        "sgd_momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.05)),
        "sgd_nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
        "sgd_maximize": (torch.optim.SGD, dict(lr=0.1, momentum=0.5, maximize=True)),
        "adam": (torch.optim.Adam, dict(lr=0.05)),
        "adam_decay": (torch.optim.Adam, dict(lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)),
        "adam_amsgrad": (torch.optim.Adam, dict(lr=0.05, amsgrad=True)),
        "adamw": (torch.optim.AdamW, dict(lr=0.05, weight_decay=0.1)),
        "adamw_maximize": (torch.optim.AdamW, dict(lr=0.05, amsgrad=True, maximize=True)),
        "rmsprop": (torch.optim.RMSprop, dict(lr=0.05)),
        "rmsprop_momentum": (torch.optim.RMSprop, dict(lr=0.05, alpha=0.9, momentum=0.8, weight_decay=0.1)),
        "rmsprop_centered": (torch.optim.RMSprop, dict(lr=0.05, alpha=0.4, eps=1e-6, centered=True, maximize=True)),
        "adagrad": (torch.optim.Adagrad, dict(lr=0.05)),
        "adagrad_decay": (torch.optim.Adagrad, dict(lr=0.05, lr_decay=0.1, weight_decay=0.1,
                                                    initial_accumulator_value=0.2, eps=1e-6, maximize=True)),
    }
    kinds |= {
        "adadelta": (torch.optim.Adadelta, dict()),
        "adadelta_decay": (torch.optim.Adadelta, dict(lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.1, maximize=True)),
        "adamax": (torch.optim.Adamax, dict(lr=0.05)),
        "adamax_decay": (torch.optim.Adamax, dict(lr=0.05, betas=(0.4, 0.9), eps=1e-3, weight_decay=0.1,
                                                  maximize=True)),
        "radam": (torch.optim.RAdam, dict(lr=0.05)),
        "radam_decay": (torch.optim.RAdam, dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1)),
        "radam_decoupled": (torch.optim.RAdam, dict(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True,
                                                    maximize=True)),
        "rprop": (torch.optim.Rprop, dict()),
        "rprop_narrow": (torch.optim.Rprop, dict(lr=0.05, etas=(0.4, 1.5), step_sizes=(0.03, 0.1), maximize=True)),
        "asgd": (torch.optim.ASGD, dict(lr=0.05)),
        "asgd_average": (torch.optim.ASGD, dict(lr=0.05, lambd=0.1, alpha=0.5, t0=3, weight_decay=0.1,
                                                maximize=True)),
    }
    kinds |= {
        "nadam": (torch.optim.NAdam, dict()),
        "nadam_decay": (torch.optim.NAdam, dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1,
                                                momentum_decay=0.1, maximize=True)),
        "nadam_decoupled": (torch.optim.NAdam, dict(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True)),
        "muon": (torch.optim.Muon, dict(lr=0.05)),
        "muon_plain": (torch.optim.Muon, dict(lr=0.05, momentum=0.8, nesterov=False, ns_steps=3, weight_decay=0.2,
                                              adjust_lr_fn="match_rms_adamw")),
    }
    torch.set_default_dtype(torch.float64)  # ASGD keeps its rate in the default type
    torch.Tensor.bfloat16 = lambda self: self.clone()  # Muon's iteration, without its rounding
    with open(HERE / "optimizers.txt", "w") as out:
        for name, (kind, arguments) in kinds.items():
            shapes = ((7, 1), (4, 5)) if name.startswith("muon") else (7, 20)
            params = [nn.Parameter(formula(math.prod([s] if isinstance(s, int) else s), salt).double().reshape(s))
                      for salt, s in enumerate(shapes, 1)]
            optimizer = kind(params, **({} if name.startswith("muon") else dict(foreach=False)), **arguments)
            for step in range(10):
                for i, p in enumerate(params):
                    p.grad = (p.detach() * 0.5 + formula(p.numel(), 100 + 10 * step + i).double().reshape(p.shape))
                if step == 4:
                    params[1].grad = None
                optimizer.step()
                for i, p in enumerate(params):
                    if step in (0, 4, 9):
                        write_line(out, f"{name}/step{step}/param{i}", p)
            if "ax" in optimizer.state[params[1]]:
                write_line(out, f"{name}/ax", optimizer.state[params[1]]["ax"])
        for name, arguments in (("lbfgs", dict(lr=0.5, max_iter=4)), ("lbfgs_short", dict(history_size=2, max_eval=3)),
                                ("lbfgs_search", dict(max_iter=3, line_search_fn="strong_wolfe"))):
            params = [nn.Parameter(formula(n, salt).double()) for salt, n in ((1, 7), (2, 20))]
            optimizer = torch.optim.LBFGS(params, **arguments)

            def closure():
                optimizer.zero_grad()
                loss = sum((p**2).sum() * (i + 1) + torch.sin(3 * p).sum() for i, p in enumerate(params))
                loss.backward()
                return loss

            for step in range(5):
                optimizer.step(closure)
                for i, p in enumerate(params):
                    write_line(out, f"{name}/step{step}/param{i}", p)
        rows = {
            "rows_sgd": (torch.optim.SGD, dict(lr=0.1)),
            "rows_sgd_momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9)),
            "rows_adagrad": (torch.optim.Adagrad, dict(lr=0.1, lr_decay=0.2, initial_accumulator_value=0.1)),
            "rows_sparse_adam": (torch.optim.SparseAdam, dict(lr=0.1, betas=(0.8, 0.95), eps=1e-3)),
            "rows_sparse_adam_maximize": (torch.optim.SparseAdam, dict(lr=0.05, maximize=True)),
        }
        for name, (kind, arguments) in rows.items():
            table = nn.Parameter(formula(36, 1).double().reshape(12, 3))
            optimizer = kind([table], **arguments)
            for step in range(6):
                optimizer.zero_grad()
                index = torch.tensor([[1, step * 5 % 11, 3], [(step * 7 + 2) % 11, 1, 0]])
                y = F.embedding(index, table, padding_idx=0, sparse=True)
                ((y * formula(18, 200 + step).double().reshape(2, 3, 3)).sum() + y.square().sum()).backward()
                optimizer.step()
                write_line(out, f"{name}/step{step}", table)
    torch.set_default_dtype(torch.float32)


def schedulers():
    lr = torch.optim.lr_scheduler
    adam = lambda p: torch.optim.Adam([dict(params=[p[0]]), dict(params=[p[1]], lr=0.02)], lr=0.1)
    sgd = lambda p: torch.optim.SGD([dict(params=[p[0]]), dict(params=[p[1]], lr=0.02)], lr=0.1, momentum=0.9)
    kinds = {
        "step": (adam, lambda o: lr.StepLR(o, 3, 0.5), 12),
        "cosine": (adam, lambda o: lr.CosineAnnealingLR(o, 8, eta_min=1e-3), 20),
        "warmup": (adam, lambda o: lr.LinearLR(o, start_factor=0.1, total_iters=4), 10),
        "linear": (adam, lambda o: lr.LinearLR(o, start_factor=0.5, end_factor=0.2, total_iters=6), 10),
        "lambda": (adam, lambda o: lr.LambdaLR(o, lambda e: 0.9**e), 10),
        "one_cycle": (adam, lambda o: lr.OneCycleLR(o, 0.4, total_steps=20), 19),
        "one_cycle_linear": (sgd, lambda o: lr.OneCycleLR(o, 0.4, epochs=3, steps_per_epoch=7, anneal_strategy="linear",
                                                          pct_start=0.4, div_factor=10.0), 20),
        "one_cycle_three": (sgd, lambda o: lr.OneCycleLR(o, 0.4, total_steps=15, three_phase=True), 14),
        "multiplicative": (adam, lambda o: lr.MultiplicativeLR(o, lambda e: 1 - 0.05 * e), 10),
        "multi_step": (adam, lambda o: lr.MultiStepLR(o, [2, 5, 5, 8], 0.5), 10),
        "exponential": (adam, lambda o: lr.ExponentialLR(o, 0.8), 10),
        "constant": (adam, lambda o: lr.ConstantLR(o, 0.25, 4), 8),
        "polynomial": (adam, lambda o: lr.PolynomialLR(o, 6, 2.0), 8),
        "warm_restarts": (adam, lambda o: lr.CosineAnnealingWarmRestarts(o, 4, 2, eta_min=1e-3), 30),
        "warm_restarts_equal": (adam, lambda o: lr.CosineAnnealingWarmRestarts(o, 5), 16),
        "cyclic": (sgd, lambda o: lr.CyclicLR(o, 0.01, 0.2, step_size_up=4, step_size_down=6), 24),
        "cyclic_triangular2": (adam, lambda o: lr.CyclicLR(o, 0.01, 0.2, step_size_up=3, mode="triangular2"), 20),
        "cyclic_exp_range": (sgd, lambda o: lr.CyclicLR(o, 0.01, 0.2, step_size_up=3, mode="exp_range", gamma=0.9,
                                                        cycle_momentum=False), 20),
        "sequential": (adam, lambda o: lr.SequentialLR(o, [lr.LinearLR(o, 0.1, total_iters=4),
                                                           lr.CosineAnnealingLR(o, 6, 1e-3), lr.ExponentialLR(o, 0.5)],
                                                       [4, 10]), 15),
        "chained": (adam, lambda o: lr.ChainedScheduler([lr.ConstantLR(o, 0.1, 3), lr.ExponentialLR(o, 0.9)]), 10),
        "plateau": (adam, lambda o: lr.ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=1, min_lr=0.01), 16),
        "plateau_max": (adam, lambda o: lr.ReduceLROnPlateau(o, mode="max", factor=0.5, patience=0, threshold=0.1,
                                                             threshold_mode="abs"), 16),
    }
    metrics = [1.0, 0.9, 0.9, 0.95, 0.9, 0.91, 0.5, 0.49999, 0.6, 0.7, 0.8, 0.2, 0.9, 0.9, 0.9, 0.9]
    with open(HERE / "schedulers.txt", "w") as out:
        for name, (make_optimizer, make, steps) in kinds.items():
            params = [nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))]
            optimizer = make_optimizer(params)
            scheduler = make(optimizer)
            rows = []
            for step in range(steps + 1):
                group = optimizer.param_groups[0]
                momentum = group["betas"][0] if "betas" in group else group["momentum"]
                rows.append([g["lr"] for g in optimizer.param_groups] + [momentum])
                if step == steps:
                    break
                optimizer.step()
                scheduler.step(*([metrics[step]] if name.startswith("plateau") else []))
            write_line(out, name, torch.tensor(rows, dtype=torch.float64))


def training():
    """Ten steps on two batches of 32 synthetic images in turn; float32, initial weights by formula.

    Adam's eps is large, since with the usual one a gradient that is zero but for rounding moves its weight by the whole
    rate to one side or the other, and no two implementations agree.
    """
    nets = {
        "mlp": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                     nn.Linear(512, 10)),
        "lenet": lambda: nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5),
                                       nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 128), nn.ReLU(),
                                       nn.Linear(128, 10)),
    }
    optimizers = {
        "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        "adam": lambda p: torch.optim.Adam(p, 2e-3, eps=1e-3),
    }
    with open(HERE / "training.txt", "w") as out:
        for name, kind in ((n, k) for n in nets for k in optimizers):
            net = nets[name]()
            with torch.no_grad():
                scale = 1.0
                for salt, p in enumerate(net.parameters()):
                    if p.dim() > 1:  # a power of two near 1 / sqrt(fan in): exact on both sides
                        scale = 2.0 ** -round(math.log2(p[0].numel()) / 2)
                    p.copy_(formula(p.numel(), salt).reshape(p.shape) * scale)
            optimizer = optimizers[kind](net.parameters())
            losses = []
            for step in range(10):
                x = formula(32 * 784, 50 + step % 2).reshape(32, 1, 28, 28)
                y = (torch.arange(32) * 7 + step % 2) % 10
                loss = F.cross_entropy(net(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            write_line(out, f"{name}/{kind}", torch.tensor(losses, dtype=torch.float64))


def modules():
    """Outputs and gradients of modules in double precision; parameters and inputs by formula.

    A line's name is module/out0, module/grad/weight (of a parameter) or module/grad_input0.
    """
    def x(*shape, salt=1):
        return (formula(math.prod(shape), 100 + salt).double().reshape(shape) * 2).requires_grad_()

    lengths = [3, 5, 1]
    packed = lambda net: lambda a: nn.utils.rnn.pad_packed_sequence(
        net(nn.utils.rnn.pack_padded_sequence(a, lengths, enforce_sorted=False))[0], total_length=5)[0]
    triangle = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    padding = torch.tensor([[False, False, True, True], [False, False, False, True]])
    layer = dict(dim_feedforward=8, dropout=0.0)

    def known_vectors(net):
        norm = net.parametrizations.weight[0]
        for salt, vector in ((1, norm._u), (2, norm._v)):
            values = formula(vector.numel(), salt).double()
            vector.copy_(values / values.norm())
        return net

    kinds = {
        "rnn": (nn.RNN(3, 4), [x(5, 2, 3)], None),
        "rnn_relu": (nn.RNN(3, 4, 2, "relu", bidirectional=True, batch_first=True), [x(2, 5, 3)], None),
        "gru": (nn.GRU(3, 4, 2), [x(5, 2, 3), x(2, 2, 4, salt=2)], None),
        "gru_unbatched": (nn.GRU(3, 4, bidirectional=True, bias=False), [x(5, 3)], None),
        "lstm": (nn.LSTM(3, 4), [x(5, 2, 3)], lambda n: lambda a: (lambda y, s: (y, *s))(*n(a))),
        "lstm_states": (nn.LSTM(3, 4, 2, bidirectional=True), [x(5, 2, 3), x(4, 2, 4, salt=2), x(4, 2, 4, salt=3)],
                        lambda n: lambda a, h, c: (lambda y, s: (y, *s))(*n(a, (h, c)))),
        "lstm_lengths": (nn.LSTM(3, 4, 2, bidirectional=True), [x(5, 3, 3)], packed),
        "gru_lengths": (nn.GRU(3, 4), [x(5, 3, 3)], packed),
        "rnn_cell": (nn.RNNCell(3, 4), [x(2, 3), x(2, 4, salt=2)], None),
        "gru_cell": (nn.GRUCell(3, 4), [x(2, 3), x(2, 4, salt=2)], None),
        "lstm_cell": (nn.LSTMCell(3, 4), [x(2, 3)], None),
        "attention": (nn.MultiheadAttention(4, 2), [x(3, 2, 4), x(4, 2, 4, salt=2), x(4, 2, 4, salt=3)], None),
        "attention_masks": (nn.MultiheadAttention(4, 2, batch_first=True), [x(2, 4, 4)],
                            lambda n: lambda a: n(a, a, a, key_padding_mask=padding, attn_mask=triangle,
                                                  average_attn_weights=False)),
        "attention_sizes": (nn.MultiheadAttention(4, 2, kdim=3, vdim=5, bias=False),
                            [x(3, 2, 4), x(4, 2, 3, salt=2), x(4, 2, 5, salt=3)],
                            lambda n: lambda q, k, v: n(q, k, v, need_weights=False)[0]),
        "encoder_layer": (nn.TransformerEncoderLayer(4, 2, **layer), [x(4, 2, 4)],
                          lambda n: lambda a: n(a, src_mask=triangle)),
        "encoder_layer_first": (nn.TransformerEncoderLayer(4, 2, **layer, norm_first=True, activation="gelu",
                                                           batch_first=True), [x(2, 4, 4)],
                                lambda n: lambda a: n(a, src_key_padding_mask=padding)),
        "decoder_layer": (nn.TransformerDecoderLayer(4, 2, **layer), [x(4, 2, 4), x(3, 2, 4, salt=2)],
                          lambda n: lambda a, b: n(a, b, tgt_mask=triangle)),
        "transformer": (nn.Transformer(4, 2, 2, 1, **layer), [x(3, 2, 4), x(4, 2, 4, salt=2)],
                        lambda n: lambda a, b: n(a, b, tgt_mask=nn.Transformer.generate_square_subsequent_mask(4,
                                                                              dtype=torch.float64))),
        "conv1d": (nn.Conv1d(2, 4, 3, stride=2, padding=1, groups=2), [x(2, 2, 7)], None),
        "conv2d_reflect": (nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode="reflect"), [x(2, 2, 4, 5)], None),
        "conv2d_same": (nn.Conv2d(2, 3, (2, 3), padding="same", dilation=(1, 2)), [x(1, 2, 4, 5)], None),
        "conv3d": (nn.Conv3d(2, 3, 2, padding=1), [x(1, 2, 3, 2, 3)], None),
        "conv_transpose1d": (nn.ConvTranspose1d(2, 3, 3, stride=2, output_padding=1), [x(2, 2, 4)], None),
        "conv_transpose3d": (nn.ConvTranspose3d(2, 1, 2, stride=2), [x(1, 2, 2, 2, 2)], None),
        "group_norm": (nn.GroupNorm(2, 4), [x(2, 4, 3)], None),
        "instance_norm": (nn.InstanceNorm1d(3, affine=True), [x(2, 3, 4)], None),
        "rms_norm": (nn.RMSNorm(4), [x(3, 4)], None),
        "local_response_norm": (nn.LocalResponseNorm(2), [x(2, 4, 3)], None),
        "batch_norm1d": (nn.BatchNorm1d(3), [x(4, 3)], None),
        "batch_norm3d": (nn.BatchNorm3d(2), [x(2, 2, 2, 2, 2)], None),
        "prelu": (nn.PReLU(3), [x(2, 3, 2)], None),
        "bilinear": (nn.Bilinear(3, 2, 4), [x(2, 3), x(2, 2, salt=2)], None),
        "weight_norm": (parametrizations.weight_norm(nn.Linear(3, 4)), [x(2, 3)], None),
        "weight_norm_conv": (parametrizations.weight_norm(nn.Conv1d(2, 3, 2), dim=1), [x(2, 2, 5)], None),
        "spectral_norm": (parametrizations.spectral_norm(nn.Linear(3, 4)), [x(2, 3)], known_vectors),
        "spectral_norm_conv": (parametrizations.spectral_norm(nn.ConvTranspose1d(2, 3, 2), n_power_iterations=2),
                               [x(2, 2, 5)], known_vectors),
        "adaptive_softmax": (nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 6], div_value=2.0, head_bias=True), [x(5, 4)],
                             lambda n: lambda a: tuple(n(a, torch.tensor([0, 9, 4, 2, 6])))),
        "embedding_bag_weights": (nn.EmbeddingBag(5, 3, mode="sum", include_last_offset=True), [x(4)],
                                  lambda n: lambda a: n(torch.tensor([0, 2, 2, 4]), torch.tensor([0, 1, 4]),
                                                        per_sample_weights=a)),
        "embedding_bag": (nn.EmbeddingBag(5, 3, mode="sum"), [],
                          lambda n: lambda: n(torch.tensor([0, 2, 2, 4, 1]), torch.tensor([0, 2, 2]))),
        "embedding_bag_mean": (nn.EmbeddingBag(5, 3, padding_idx=2), [],
                               lambda n: lambda: n(torch.tensor([[0, 2, 3], [2, 4, 4]]))),
        "embedding_bag_max": (nn.EmbeddingBag(5, 3, mode="max"), [],
                              lambda n: lambda: n(torch.tensor([[0, 2, 3], [1, 4, 4]]))),
    }
    with open(HERE / "modules.txt", "w") as out:
        for name, (module, inputs, wrap) in kinds.items():
            module.double()
            with torch.no_grad():
                for salt, p in enumerate(module.parameters()):
                    p.copy_(formula(p.numel(), salt).reshape(p.shape) * 0.5)
            result = (wrap(module) if wrap else module)(*inputs)
            flat = [t for t in (result if isinstance(result, tuple) else [result])]
            for i, y in enumerate(flat):
                write_line(out, f"{name}/out{i}", y)
            sum((y * cotangent(y, i)).sum() for i, y in enumerate(flat)).backward()
            for key, p in module.named_parameters():
                write_line(out, f"{name}/grad/{key}", p.grad)
            for i, t in enumerate(inputs):
                write_line(out, f"{name}/grad_input{i}", t.grad)


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"operations": operations, "optimizers": optimizers, "schedulers": schedulers,
     "training": training, "modules": modules}[sys.argv[1]](*sys.argv[2:])
