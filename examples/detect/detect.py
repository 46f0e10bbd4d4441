"""The same model with PyTorch and Lightning."""
import argparse
import gzip
import math
import pathlib
import random

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset
from torchvision.ops import batched_nms, box_iou
from torchvision.utils import draw_bounding_boxes, save_image

SIDE, MOST_ITEMS, NAMES, PRIORS = 64, 3, 11, 4  # class 0 is the background; prior boxes at each place of a map


def parse():
    line = argparse.ArgumentParser(description="Trains a single-shot detector on images composed of clothes.")
    line.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    line.add_argument("--scenes", type=int, default=20000)
    line.add_argument("--held-out", type=int, default=1000)
    line.add_argument("--width", type=int, default=32)
    line.add_argument("--batch-size", type=int, default=32)
    line.add_argument("--lr", type=float, default=0.02)
    line.add_argument("--max-epochs", type=int, default=10)
    return line.parse_args()


class Scenes(Dataset):
    def __init__(self, folder, part, count):
        def read(kind, skip):
            return np.frombuffer(gzip.open(next(folder.glob(f"{part}-{kind}*.gz"))).read(), np.uint8, offset=skip)
        self.images = torch.tensor(read("images", 16)).view(-1, 28, 28)
        self.labels = torch.tensor(read("labels", 8)).long()
        self.fixed, self.count = part == "t10k", count

    def __len__(self):
        return self.count

    @staticmethod
    def cut_out(image):
        def bright(axis):
            places = (image.amax(axis) > 0.1).nonzero().flatten()
            return slice(places[0], places[-1] + 1)
        return image[bright(1), bright(0)]

    def __getitem__(self, index):
        rng = random.Random(index) if self.fixed else random.Random(torch.randint(2**62, ()).item())
        noise = torch.Generator().manual_seed(rng.randrange(2**62))
        image = 0.2 * torch.rand(SIDE, SIDE, generator=noise)
        boxes, classes = torch.zeros(MOST_ITEMS, 4), torch.zeros(MOST_ITEMS, dtype=torch.long)
        wanted, found = rng.randint(1, MOST_ITEMS), 0
        for _ in range(20):
            if found == wanted:
                break
            item = rng.randrange(len(self.images))
            cut = self.cut_out(self.images[item] / 255)
            scale = rng.uniform(20, 48) / max(cut.shape)
            h, w = (max(round(scale * size), 4) for size in cut.shape)
            y, x = rng.randrange(SIDE - h + 1), rng.randrange(SIDE - w + 1)
            box = torch.tensor([x, y, x + w, y + h]) / SIDE
            if found > 0 and box_iou(box[None], boxes[:found]).max() > 0.05:
                continue
            part = image[y:y + h, x:x + w]
            part.copy_(torch.maximum(part, F.interpolate(cut[None, None], (h, w), mode="bilinear")[0, 0]))
            boxes[found], classes[found] = box, 1 + self.labels[item]
            found += 1
        return image[None], boxes, classes


def prior_boxes():
    out = []
    for side, scale, larger in (8, 0.28, 0.38), (4, 0.5, 0.63):
        for place in range(side * side):
            for w, h in (scale, scale), (larger, larger), (1.4 * scale, 0.7 * scale), (0.7 * scale, 1.4 * scale):
                out.append([(0.5 + place % side) / side, (0.5 + place // side) / side, w, h])
    return torch.tensor(out)


def average_precision(images, threshold):
    """COCO's average precision of images of (boxes, scores, classes, real boxes, real classes), mean of the classes."""
    values = []
    for name in range(1, NAMES):
        ranked, targets = [], 0
        for boxes, scores, classes, real_boxes, real_classes in images:
            boxes, scores, real = boxes[classes == name], scores[classes == name], real_boxes[real_classes == name]
            targets, free = targets + len(real), torch.ones(len(real), dtype=torch.bool)
            for score, overlaps in zip(scores.tolist(), box_iou(boxes, real)):
                overlaps = overlaps * free
                hit = len(real) > 0 and overlaps.max().item() >= threshold
                if hit:
                    free[overlaps.argmax()] = False
                ranked.append((-score, hit))
        hits = torch.tensor([hit for _, hit in sorted(ranked, key=lambda r: r[0])], dtype=torch.float64).cumsum(0)
        recall, precision = hits / max(targets, 1), hits / torch.arange(1, len(hits) + 1)
        precision = precision.flip(0).cummax(0).values.flip(0) if len(hits) else precision
        at = torch.searchsorted(recall, torch.linspace(0, 1, 101, dtype=torch.float64))
        if targets:
            values.append(F.pad(precision, (0, 1))[at].mean())
    return torch.stack(values).mean() if values else torch.tensor(-1.0)


def stage(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, 2, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Detector(L.LightningModule):
    def __init__(self, o):
        super().__init__()
        self.o = o
        self.register_buffer("centers", prior_boxes()[:, :2].clone())
        self.register_buffer("sizes", prior_boxes()[:, 2:].clone())
        self.body = nn.Sequential(stage(1, o.width), stage(o.width, 2 * o.width), stage(2 * o.width, 4 * o.width))
        self.coarse = nn.Sequential(stage(4 * o.width, 4 * o.width))
        self.head1 = nn.Conv2d(4 * o.width, PRIORS * (4 + NAMES), 3, padding=1)
        self.head2 = nn.Conv2d(4 * o.width, PRIORS * (4 + NAMES), 3, padding=1)
        self.images = []

    def outputs(self, x):
        fine = self.body(x)

        def rows(y):
            return y.permute(0, 2, 3, 1).reshape(len(y), -1, 4 + NAMES)
        y = torch.cat([rows(self.head1(fine)), rows(self.head2(self.coarse(fine)))], 1)
        return y[..., :4], y[..., 4:]

    def encode(self, boxes):
        low, high = boxes[..., :2], boxes[..., 2:]
        middle = ((low + high) / 2 - self.centers) / (0.1 * self.sizes)
        return torch.cat([middle, torch.log((high - low) / self.sizes) / 0.2], -1)

    def decode(self, offsets):
        middle = self.centers + 0.1 * self.sizes * offsets[..., :2]
        half = self.sizes / 2 * torch.exp(0.2 * offsets[..., 2:])
        return torch.cat([middle - half, middle + half], -1)

    def match(self, boxes, classes):
        priors = self.decode(torch.zeros_like(torch.cat([self.centers, self.sizes], 1)))
        iou = box_iou(boxes.flatten(0, 1), priors).view(*boxes.shape[:2], -1)
        best = (iou > iou.amax(2, True) - 1e-3) & (iou > 0)
        overlap, which = (iou + 2 * best).max(1)
        return (boxes.gather(1, which[..., None].expand(-1, -1, 4)),
                torch.where(overlap > 0.5, classes.gather(1, which), 0))

    def training_step(self, batch, index):
        x, boxes, classes = batch
        offsets, logits = self.outputs(x)
        matched, wanted = self.match(boxes, classes)
        positive = wanted > 0
        count = positive.sum()
        box_loss = F.smooth_l1_loss(offsets[positive], self.encode(matched)[positive], reduction="sum") / count
        losses = F.cross_entropy(logits.transpose(1, 2), wanted, reduction="none")
        place = losses.detach().masked_fill(positive, 0).argsort(1, True).argsort(1)
        class_loss = losses[positive | (place < 3 * positive.sum(1, True))].sum() / count
        self.log_dict({"train_boxes": box_loss, "train_classes": class_loss})
        self.log("train_loss", box_loss + class_loss, prog_bar=True)
        return box_loss + class_loss

    def found(self, offsets, logits):
        scores, places = F.softmax(logits.float(), 1)[:, 1:].flatten().topk(200)
        boxes, classes = self.decode(offsets.float())[places // (NAMES - 1)], 1 + places % (NAMES - 1)
        kept = batched_nms(boxes, scores, classes, 0.45)
        return boxes[kept], scores[kept], classes[kept]

    def validation_step(self, batch, index):
        x, boxes, classes = batch
        for i, outputs in enumerate(zip(*self.outputs(x))):
            self.images.append([*self.found(*outputs), boxes[i][classes[i] > 0], classes[i][classes[i] > 0]])

    def on_validation_epoch_end(self):
        self.log("val_map", average_precision(self.images, 0.5), prog_bar=True)
        self.images = []

    def configure_optimizers(self):
        sgd = optim.SGD(self.parameters(), lr=self.o.lr, momentum=0.9, weight_decay=5e-4)
        rate = optim.lr_scheduler.OneCycleLR(sgd, self.o.lr, int(self.trainer.estimated_stepping_batches),
                                             cycle_momentum=False, div_factor=1000)
        return [sgd], [{"scheduler": rate, "interval": "step"}]


class Drawing(L.Callback):
    def __init__(self, scenes):
        self.scenes = scenes

    def on_validation_epoch_end(self, trainer, model):
        images = []
        for scene, outputs in zip(self.scenes, zip(*model.outputs(self.scenes.to(model.centers)))):
            boxes, scores, _ = model.found(*outputs)
            large = F.interpolate(scene[None], scale_factor=3)[0].expand(3, -1, -1)
            images.append(draw_bounding_boxes(large, 3 * SIDE * boxes[scores > 0.5].cpu(), colors="lime"))
        save_image(torch.stack(images), pathlib.Path(trainer.default_root_dir) / "found.png", nrow=4)


def main():
    o = parse()
    L.seed_everything(1)
    train_loader = DataLoader(Scenes(o.data, "train", o.scenes), batch_size=o.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(Scenes(o.data, "t10k", o.held_out), batch_size=100)

    model = Detector(o)
    scenes = next(iter(DataLoader(Scenes(o.data, "t10k", 12), batch_size=12)))[0]
    trainer = L.Trainer(max_epochs=o.max_epochs, num_sanity_val_steps=0, default_root_dir="runs/detect",
                        callbacks=[LearningRateMonitor(), Drawing(scenes)])
    trainer.fit(model, train_loader, val_loader)
    found = trainer.validate(model, val_loader)[0]["val_map"]
    print(f"images: runs/detect/found.png\nresult: map={found:.4f} held_out={o.held_out} steps={trainer.global_step}")


if __name__ == "__main__":
    main()
