#!/usr/bin/env python3
"""Reads the logs of levin_log_demo with TensorBoard's own code: check_tensorboard.py DIR STEPS [CONTINUED].

CONTINUED: the run was resumed after that step, for one record. Needs PyPI's tensorboard.
"""
import io
import json
import pathlib
import struct
import sys
import zlib

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2

folder, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])


def check(what, ok):
    if not ok:
        sys.exit(f"FAILED: {what}")


logs = folder / "tensorboard" / "version_0"
events = event_accumulator.EventAccumulator(str(logs), size_guidance=dict.fromkeys(
    ["scalars", "images", "histograms", "tensors"], 0))
events.Reload()
tags = events.Tags()

if len(sys.argv) > 3:
    behind = int(sys.argv[3])
    points = [(e.step, e.value) for e in events.Scalars("train_loss")]
    check(f"{points[-3:]} does not go on behind {behind}", points[-2][0] == behind and points[-1] == (behind + 1, 0.125))
    for name in tags["images"]:
        check(f"{name} after {behind}", all(e.step <= behind for e in events.Images(name)))
    print("tensorboard: ok, continued")
    sys.exit()

# Scalars: the same numbers as in the JSON lines, in float32.
lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
wanted = {}
for line in lines:
    for name, value in line.get("values", {}).items():
        wanted.setdefault(name, []).append((line["step"], struct.unpack("f", struct.pack("f", value))[0]))
for name in ["train_loss", "train_acc", "val_loss", "val_acc", "val_auroc", "lr-AdamW", "test_acc"]:
    check(f"{name} is not among {sorted(wanted)}", name in wanted)
for name, points in wanted.items():
    got = [(e.step, e.value) for e in events.Scalars(name)]
    check(f"{name}: {got} is not {points}", got == points)
check("the last step", events.Scalars("train_loss")[-1].step == steps)
check("hp_metric", [e.value for e in events.Scalars("hp_metric")] == [-1.0])
check("wall times rise", all(a.wall_time <= b.wall_time for a, b in
                             zip(events.Scalars("train_loss"), events.Scalars("train_loss")[1:])))



def pixels_of(png):
    """Returns the packed rows, which may span several chunks."""
    packed, at = b"", 8
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        packed += png[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    return packed


# Images: PNG files of the sizes in the events, complete to the last chunk.
for name in ["Taken for something else", "Validation"]:
    images = events.Images(name)
    check(f"{len(images)} images {name}", len(images) >= 2)
    for p in images:
        data = p.encoded_image_string
        width, height = struct.unpack(">II", data[16:24])
        check(f"{name} is {width} x {height}", (width, height) == (p.width, p.height) and data.endswith(b"IEND\xaeB`\x82"))
        check(f"{name} inflates", len(zlib.decompress(pixels_of(data))) == height * (1 + 3 * width))

# Histograms: as many values as parameters, within their bounds.
for name, count in {"net.1.weight": 784 * 512, "net.5.bias": 10}.items():
    for e in events.Histograms(name):
        h = e.histogram_value
        check(f"{name} holds {h.num}", h.num == count and sum(h.bucket) == count)
        check(f"{name} has its least value below its buckets", h.bucket_limit[0] <= h.min or h.bucket[0] == 0)
        check(f"{name} has its greatest value above its buckets", h.max <= h.bucket_limit[-1])

# Hyperparameters, as read by the HParams tab.
contents = events.summary_metadata
start = plugin_data_pb2.HParamsPluginData.FromString(
    contents["_hparams_/session_start_info"].plugin_data.content).session_start_info
check("batch_size", start.hparams["batch_size"].number_value == 64)
check("optimizer", start.hparams["optimizer"].string_value == "AdamW, OneCycleLR")
check("augment", start.hparams["augment"].WhichOneof("kind") == "bool_value")
experiment = plugin_data_pb2.HParamsPluginData.FromString(contents["_hparams_/experiment"].plugin_data.content).experiment
check("names", [i.name for i in experiment.hparam_infos][:2] == ["model", "batch_size"])
end = plugin_data_pb2.HParamsPluginData.FromString(contents["_hparams_/session_end_info"].plugin_data.content)
check("status", end.session_end_info.status == 1)

# The graph: nodes whose inputs exist, parameters under their names, one output.
nodes = {n.name: n for n in events.Graph().node}
check("parameters", {"net/1/weight", "net/1/bias", "net/5/weight"} <= set(nodes))
check("shape", [d.size for d in nodes["net/1/weight"].attr["_output_shapes"].list.shape[0].dim] == [512, 784])
used = {i for n in nodes.values() for i in n.input}
check(f"inputs {used - set(nodes)}", used <= set(nodes))
check("one output", len([n for n in nodes if n not in used]) == 1)

print(f"tensorboard: ok, {len(tags['scalars'])} scalars, {len(nodes)} nodes")
