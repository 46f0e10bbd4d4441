"""The same model with PyTorch and Lightning."""
import argparse

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def parse():
    line = argparse.ArgumentParser(
        description="Classifies the nodes of a random graph, most of whose edges join nodes of one class.")
    line.add_argument("--nodes", type=int, default=3000)
    line.add_argument("--classes", type=int, default=6)
    line.add_argument("--features", type=int, default=64)
    line.add_argument("--degree", type=int, default=8)
    line.add_argument("--labels", type=int, default=20)
    line.add_argument("--hidden", type=int, default=64)
    line.add_argument("--homophily", type=float, default=0.6)
    line.add_argument("--noise", type=float, default=4)
    line.add_argument("--lr", type=float, default=1e-2)
    line.add_argument("--max-epochs", type=int, default=200)
    return line.parse_args()


class Graph:
    def __init__(self, o):
        self.label = torch.arange(o.nodes) % o.classes
        self.x = torch.randn(o.classes, o.features)[self.label] + o.noise * torch.randn(o.nodes, o.features)
        a = torch.arange(o.nodes).repeat_interleave(o.degree // 2)
        other = torch.randint(0, o.nodes, (len(a),))
        same = other - other % o.classes + self.label[a]
        b = torch.where(torch.rand(len(a)) < o.homophily, same.clamp(0, o.nodes - 1), other)
        self.source = torch.cat([a, b, torch.arange(o.nodes)])
        self.to = torch.cat([b, a, torch.arange(o.nodes)])
        degree = torch.bincount(self.to).float()
        self.weight = torch.rsqrt(degree[self.source] * degree[self.to])


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x, source, to, weight):
        messages = self.linear(x).index_select(0, source) * weight.unsqueeze(1)
        return torch.zeros(len(x), messages.size(1)).to(messages).index_add(0, to, messages)


class NodeClassifier(L.LightningModule):
    def __init__(self, o, g):
        super().__init__()
        self.o = o
        for name, value in [("x", g.x), ("label", g.label), ("from", g.source), ("to_", g.to), ("weight", g.weight)]:
            self.register_buffer(name, value)
        self.conv1 = GraphConv(o.features, o.hidden)
        self.conv2 = GraphConv(o.hidden, o.classes)

    def logits(self):
        edges = getattr(self, "from"), self.to_, self.weight
        return self.conv2(F.relu(self.conv1(self.x, *edges)), *edges)

    def training_step(self, batch, index):
        nodes = batch[0]
        loss = F.cross_entropy(self.logits()[nodes], self.label[nodes])
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        nodes = batch[0]
        self.log("val_acc", (self.logits()[nodes].argmax(1) == self.label[nodes]).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        return optim.Adam(self.parameters(), lr=self.o.lr, weight_decay=5e-4)


def train(o, graph, name):
    model = NodeClassifier(o, graph)
    known = o.labels * o.classes
    train_loader = DataLoader(TensorDataset(torch.arange(known)), batch_size=known)
    val_loader = DataLoader(TensorDataset(torch.arange(known, o.nodes)), batch_size=o.nodes)
    trainer = L.Trainer(max_epochs=o.max_epochs, check_val_every_n_epoch=20, num_sanity_val_steps=0,
                        log_every_n_steps=10, default_root_dir=f"runs/graph/{name}")
    trainer.fit(model, train_loader, val_loader)
    return trainer.validate(model, val_loader)[0]["val_acc"]


def main():
    o = parse()
    L.seed_everything(1)
    graph = Graph(o)
    edges = train(o, graph, "edges")
    graph.source = graph.to = torch.arange(o.nodes)
    graph.weight = torch.ones(o.nodes)
    alone = train(o, graph, "no_edges")
    print(f"result: accuracy={edges:.4f} without_edges={alone:.4f} nodes={o.nodes} labels={o.labels * o.classes}")


if __name__ == "__main__":
    main()
