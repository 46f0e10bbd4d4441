#!/usr/bin/env python3
"""Makes metrics.txt, the values of torchmetrics and scikit-learn that tests/trainer/metrics/metrics_test.cpp compares with.

Needs PyPI's torch, torchmetrics and scikit-learn; the test does not. Lines as those of make_values.py; names begin with
tm/ (torchmetrics, computed in float32) or sk/ (scikit-learn, float64). The inputs are formulas that C++ computes too.
"""
import math
import pathlib
import sys
import warnings

import sklearn.metrics as sk
import torch
import torchmetrics as tm

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from make_values import formula, write_line  # noqa: E402

warnings.filterwarnings("ignore")
N, C = 61, 5


def share(salt, n=N):
    """Returns values in [0, 1] with ties: multiples of 1/16."""
    return ((formula(n, salt) + 1) * 8).floor() / 16


def classes(salt, count=C, n=N):
    return ((formula(n, salt) + 1) / 2 * count).floor().long()


def scores(salt, n=N):
    return formula(n * C, salt).reshape(n, C) * 3


class Writer:
    def __init__(self, out):
        self.out = out

    def tm(self, name, metric, preds, target):
        metric.update(preds, target)
        write_line(self.out, "tm/" + name, metric.compute())

    def sk(self, name, value):
        write_line(self.out, "sk/" + name, torch.as_tensor(value, dtype=torch.float64))


def binary(w):
    p, t = share(1), classes(2, 2)
    hard = (p > 0.5).long()
    holes = torch.where(torch.arange(N) % 7 == 0, -1, t)
    for name, preds, target, ignore in [("probabilities", p, t, None), ("logits", 3 * formula(N, 3), t, None),
                                        ("classes", hard, t, None), ("ignore", p, holes, -1)]:
        args = dict(task="binary", ignore_index=ignore)
        w.tm(f"accuracy/{name}", tm.Accuracy(**args), preds, target)
        w.tm(f"precision/{name}", tm.Precision(**args), preds, target)
        w.tm(f"recall/{name}", tm.Recall(**args), preds, target)
        w.tm(f"f1/{name}", tm.F1Score(**args), preds, target)
        w.tm(f"jaccard/{name}", tm.JaccardIndex(**args), preds, target)
        w.tm(f"confusion/{name}", tm.ConfusionMatrix(**args), preds, target)
        if name != "classes":
            w.tm(f"auroc/{name}", tm.AUROC(**args), preds, target)
            w.tm(f"ap/{name}", tm.AveragePrecision(**args), preds, target)
    w.tm("auroc/max_fpr", tm.AUROC(task="binary", max_fpr=0.3), p, t)
    w.tm("auroc/no_positives", tm.AUROC(task="binary"), p, torch.zeros_like(t))
    w.tm("auroc/no_negatives", tm.AUROC(task="binary"), p, torch.ones_like(t))
    w.tm("ap/no_positives", tm.AveragePrecision(task="binary"), p, torch.zeros_like(t))
    w.tm("ap/no_negatives", tm.AveragePrecision(task="binary"), p, torch.ones_like(t))
    w.tm("accuracy/threshold", tm.Accuracy(task="binary", threshold=0.25), p, t)
    w.sk("accuracy/probabilities", sk.accuracy_score(t, hard))
    w.sk("precision/probabilities", sk.precision_score(t, hard))
    w.sk("recall/probabilities", sk.recall_score(t, hard))
    w.sk("f1/probabilities", sk.f1_score(t, hard))
    w.sk("auroc/probabilities", sk.roc_auc_score(t, p))
    w.sk("auroc/max_fpr", sk.roc_auc_score(t, p, max_fpr=0.3))
    w.sk("ap/probabilities", sk.average_precision_score(t, p))


def multiclass(w):
    s = scores(4)
    for name, t in [("all", classes(5)), ("absent", classes(5).clamp(max=3))]:
        for average in ["micro", "macro", "weighted", "none"]:
            for k in [1, 2]:
                args = dict(task="multiclass", num_classes=C, average=average, top_k=k)
                w.tm(f"accuracy/{name}/{average}/{k}", tm.Accuracy(**args), s, t)
                w.tm(f"precision/{name}/{average}/{k}", tm.Precision(**args), s, t)
                w.tm(f"recall/{name}/{average}/{k}", tm.Recall(**args), s, t)
                w.tm(f"f1/{name}/{average}/{k}", tm.F1Score(**args), s, t)
        for average in ["micro", "macro", "weighted", "none"]:
            jaccard = tm.JaccardIndex(task="multiclass", num_classes=C, average=average)
            w.tm(f"jaccard/{name}/{average}", jaccard, s, t)
            if average != "none":
                jaccard = tm.JaccardIndex(task="multiclass", num_classes=C, average=average, ignore_index=2)
                w.tm(f"jaccard/{name}/{average}/ignore", jaccard, s, t)
        for average in ["macro", "weighted", "none"]:
            args = dict(task="multiclass", num_classes=C, average=average)
            w.tm(f"auroc/{name}/{average}", tm.AUROC(**args), s, t)
            w.tm(f"ap/{name}/{average}", tm.AveragePrecision(**args), s, t)
        for norm in ["none", "true", "pred", "all"]:
            w.tm(f"confusion/{name}/{norm}", tm.ConfusionMatrix(task="multiclass", num_classes=C, normalize=norm), s, t)
    few = s.clone()
    few[:, 3] = -9  # class 3 is never chosen, so its precision is 0 / 0
    t = classes(5).clamp(max=2)
    for average in ["macro", "weighted", "none"]:
        args = dict(task="multiclass", num_classes=C, average=average, zero_division=1.0)
        w.tm(f"precision/zero_division/{average}", tm.Precision(**args), few, t)
        w.tm(f"recall/zero_division/{average}", tm.Recall(**args), few, t)
        w.tm(f"f1/zero_division/{average}", tm.F1Score(**args), few, t)
    deep, deep_target = formula(8 * C * 7, 6).reshape(8, C, 7), classes(7, C, 56).reshape(8, 7)
    w.tm("accuracy/deep", tm.Accuracy(task="multiclass", num_classes=C), deep, deep_target)
    w.tm("auroc/deep", tm.AUROC(task="multiclass", num_classes=C), deep, deep_target)
    w.tm("accuracy/ignore_class", tm.Accuracy(task="multiclass", num_classes=C, average="macro", ignore_index=2), s,
         classes(5))
    w.tm("confusion/ignore_class", tm.ConfusionMatrix(task="multiclass", num_classes=C, ignore_index=2), s, classes(5))

    t = classes(5)
    hard, soft = s.argmax(1), torch.softmax(s.double(), 1)
    w.sk("accuracy/all/micro/1", sk.accuracy_score(t, hard))
    w.sk("accuracy/all/micro/2", sk.top_k_accuracy_score(t, s, k=2))
    w.sk("accuracy/all/macro/1", sk.balanced_accuracy_score(t, hard))
    for average in ["micro", "macro", "weighted"]:
        w.sk(f"precision/all/{average}/1", sk.precision_score(t, hard, average=average))
        w.sk(f"recall/all/{average}/1", sk.recall_score(t, hard, average=average))
        w.sk(f"f1/all/{average}/1", sk.f1_score(t, hard, average=average))
    for average in ["macro", "weighted"]:
        w.sk(f"auroc/all/{average}", sk.roc_auc_score(t, soft, multi_class="ovr", average=average))
        w.sk(f"ap/all/{average}", sk.average_precision_score(torch.nn.functional.one_hot(t, C), soft, average=average))


def regression(w):
    p, t = formula(N, 8) * 10 + 3, formula(N, 9) * 10 + 3
    p2, t2 = p[:60].reshape(30, 2), t[:60].reshape(30, 2) * torch.tensor([1.0, 5.0])
    w.tm("mse", tm.MeanSquaredError(), p, t)
    w.tm("rmse", tm.MeanSquaredError(squared=False), p, t)
    w.tm("mse/outputs", tm.MeanSquaredError(num_outputs=2), p2, t2)
    w.tm("mae", tm.MeanAbsoluteError(), p, t)
    w.tm("r2", tm.R2Score(), p, t)
    w.tm("r2/adjusted", tm.R2Score(adjusted=3), p, t)
    for output in ["uniform_average", "raw_values", "variance_weighted"]:
        w.tm(f"r2/{output}", tm.R2Score(multioutput=output), p2, t2)
        w.sk(f"r2/{output}", sk.r2_score(t2.double(), p2.double(), multioutput=output))
    w.sk("mse", sk.mean_squared_error(t.double(), p.double()))
    w.sk("mse/outputs", sk.mean_squared_error(t2.double(), p2.double(), multioutput="raw_values"))
    w.sk("rmse", math.sqrt(sk.mean_squared_error(t.double(), p.double())))
    w.sk("mae", sk.mean_absolute_error(t.double(), p.double()))
    w.sk("r2", sk.r2_score(t.double(), p.double()))
    w.tm("mean", tm.MeanMetric(), p, share(1))
    tokens, words = formula(4 * 9 * 11, 10).reshape(4, 9, 11) * 4, classes(11, 11, 36).reshape(4, 9)
    holes = torch.where(words == 0, -100, words)
    w.tm("perplexity", tm.text.Perplexity(), tokens, words)
    w.tm("perplexity/ignore", tm.text.Perplexity(ignore_index=-100), tokens, holes)


with open(pathlib.Path(__file__).parent / "metrics.txt", "w") as file:
    writer = Writer(file)
    binary(writer)
    multiclass(writer)
    regression(writer)
