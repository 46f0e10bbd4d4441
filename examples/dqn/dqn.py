"""The same program with PyTorch and Lightning."""
import argparse
import math
import random
import time

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn, optim
from torch.utils.data import DataLoader, IterableDataset, TensorDataset


def parse():
    line = argparse.ArgumentParser(
        description="Learns CartPole by deep Q-learning until the mean return of 20 episodes is 475 of 500.")
    line.add_argument("--hidden", type=int, default=128)
    line.add_argument("--batch-size", type=int, default=128)
    line.add_argument("--play", type=int, default=4)
    line.add_argument("--start", type=int, default=1000)
    line.add_argument("--memory", type=int, default=50000)
    line.add_argument("--explore", type=int, default=10000)
    line.add_argument("--sync", type=int, default=200)
    line.add_argument("--lr", type=float, default=1e-3)
    line.add_argument("--gamma", type=float, default=0.99)
    line.add_argument("--max-steps", type=int, default=30000)
    return line.parse_args()


class CartPole:
    def __init__(self, rng):
        self.rng = rng
        self.reset()

    def reset(self):
        self.state = [self.rng.uniform(-0.05, 0.05) for _ in range(4)]
        self.steps = 0

    def step(self, action):
        x, speed, angle, turn = self.state
        force, cosine, sine = 10 if action == 1 else -10, math.cos(angle), math.sin(angle)
        push = (force + 0.05 * turn * turn * sine) / 1.1
        bend = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        drive = push - 0.05 * bend * cosine / 1.1
        self.state = [x + 0.02 * speed, speed + 0.02 * drive, angle + 0.02 * turn, turn + 0.02 * bend]
        self.steps += 1
        return abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095

    def over(self):
        return self.steps >= 500


class Replay(IterableDataset):
    def __init__(self, memory):
        self.memory = memory

    def __iter__(self):
        while True:
            before, action, reward, after, failed = random.choice(self.memory)
            yield torch.tensor(before), action, reward, torch.tensor(after), failed


def network(hidden):
    return nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2))


class Dqn(L.LightningModule):
    def __init__(self, o):
        super().__init__()
        self.o, self.memory, self.rng, self.played = o, [], random.Random(1), 0
        self.q, self.target = network(o.hidden), network(o.hidden)
        self.target.load_state_dict(self.q.state_dict())
        self.target.requires_grad_(False)
        self.cart = CartPole(self.rng)
        while self.played < o.start:
            self.play(1.0)

    @torch.no_grad()
    def best_action(self, state):
        return self.q(torch.tensor([state], dtype=self.dtype, device=self.device)).argmax().item()

    def play(self, chance):
        before = self.cart.state
        action = self.rng.randrange(2) if self.rng.random() < chance else self.best_action(before)
        failed = self.cart.step(action)
        transition = before, action, 1.0, self.cart.state, failed
        if len(self.memory) < self.o.memory:
            self.memory.append(transition)
        else:
            self.memory[self.played % self.o.memory] = transition
        if failed or self.cart.over():
            self.cart.reset()
        self.played += 1

    def on_train_batch_start(self, batch, index):
        if self.global_step % self.o.sync == 0:
            self.target.load_state_dict(self.q.state_dict())
        for _ in range(self.o.play):
            self.play(max(0.05, 1 - self.played / self.o.explore))

    def training_step(self, batch, index):
        before, action, reward, after, failed = batch
        value = self.q(before).gather(1, action.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            goal = self.target(after).gather(1, self.q(after).argmax(1, keepdim=True)).squeeze(1)
            goal = reward + self.o.gamma * goal * ~failed
        loss = F.smooth_l1_loss(value, goal)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        rng, total = random.Random(7), 0
        for _ in batch[0]:
            cart = CartPole(rng)
            while not cart.over() and not cart.step(self.best_action(cart.state)):
                pass
            total += cart.steps
        self.log("val_return", total / len(batch[0]), prog_bar=True)

    def configure_optimizers(self):
        return optim.Adam(self.q.parameters(), lr=self.o.lr)


def main():
    o = parse()
    L.seed_everything(1)
    dqn = Dqn(o)
    train_loader = DataLoader(Replay(dqn.memory), batch_size=o.batch_size)
    val_loader = DataLoader(TensorDataset(torch.arange(20)), batch_size=20)

    stop = EarlyStopping("val_return", patience=1000, mode="max", stopping_threshold=474.99)
    trainer = L.Trainer(max_epochs=1, max_steps=o.max_steps, val_check_interval=500, check_val_every_n_epoch=None, num_sanity_val_steps=0,
                        default_root_dir="runs/dqn", callbacks=[stop])
    start = time.perf_counter()
    trainer.fit(dqn, train_loader, val_loader)
    seconds = time.perf_counter() - start
    result = trainer.validate(dqn, val_loader)[0]["val_return"]
    print(f"result: return={result:.1f} played={dqn.played} steps={trainer.global_step} "
          f"played_per_second={(dqn.played - o.start) / seconds:.0f} train_seconds={seconds:.1f}")


if __name__ == "__main__":
    main()
