"""Fig. 2, Chess with 40 % reversed labels, in NumPy: how much the labels still tell.

    python fig2_chess.py CHESS.csv [SPLITS]

2131 rows to learn from, 1065 clean ones to test, splits from 100 on. U = [1, X r, tanh(g X r N / sqrt(M) + b)] with standardised
inputs and 300 nodes; gain and ridge by leave-one-out. Test accuracy in percent of three networks:

- plain: all inputs alike (r = 1),
- relevance: r from the slopes of the fitted network, six rounds: what the wrong labels tell about the inputs,
- clean relevance: the same W-step on the wrong labels, but r from the slopes of a network that was fitted to the *clean* labels, which
  nobody has: a bound on what any choice of inputs by their slopes can reach.

The last column counts: in how many splits leave-one-out on the wrong labels scores the clean relevances worse than the other ones, so
that no choice by that score could have found them. Written from the method alone: it shares no code and no random numbers with
the library. Some ten seconds a split.
"""

import sys

import numpy as np

TEST, WRONG, NODES, ROUNDS = 1065, 0.4, 300, 6
GAINS, RIDGES = (0.3, 0.7, 1.5, 3.0), np.array([1.0, 10.0, 100.0, 300.0, 1000.0, 3000.0])
# An input matters at least this much.
LEAST = 0.1


def table(file):
    """Inputs and classes 0 and 1, the target last."""
    with open(file) as lines:
        cells = np.array([line.strip().split(",") for line in lines][1:])
    return cells[:, :-1].astype(float), np.unique(cells[:, -1], return_inverse=True)[1]


class Network:
    """The random nodes for these relevances, and the best ridge for the targets by leave-one-out."""

    def __init__(self, x, targets, relevance, gain, seed):
        random = np.random.default_rng(seed)
        self.relevance = relevance
        self.weights = relevance[:, None] * random.normal(size=(x.shape[1], NODES)) * gain / np.sqrt(x.shape[1])
        self.bias = random.uniform(-gain, gain, NODES)
        u = self.state(x)
        values, vectors = np.linalg.eigh(u.T @ u)
        v = u @ vectors
        self.score = np.inf
        for ridge in RIDGES:
            c = (v.T @ targets) / (values + ridge)
            left_out = (targets - v @ c) / (1.0 - (v**2 / (values + ridge)).sum(1))
            if np.mean(left_out**2) < self.score:
                self.score, self.w = np.mean(left_out**2), vectors @ c

    def state(self, x):
        hidden = np.tanh(x @ self.weights + self.bias)
        return np.hstack([np.ones((len(x), 1)), x * self.relevance, hidden])

    def outputs(self, x):
        return self.state(x) @ self.w

    def relevances(self, x):
        """From the slopes, to the power 1.5."""
        inputs = x.shape[1]
        slopes = 1.0 - self.state(x)[:, inputs + 1 :] ** 2
        along = self.w[1 : inputs + 1] * self.relevance + (slopes * self.w[inputs + 1 :]) @ self.weights.T
        sharp = np.mean(along**2, axis=0) ** 0.75
        return np.maximum(sharp / np.sqrt(np.mean(sharp**2)), LEAST)


def best(x, targets, relevance, seed):
    return min((Network(x, targets, relevance, gain, seed) for gain in GAINS), key=lambda network: network.score)


def split(inputs, classes, seed):
    random = np.random.default_rng(seed)
    order = random.permutation(len(classes))
    test, train = order[:TEST], order[TEST:]
    varying = inputs[train].std(0) > 0
    centre, width = inputs[train].mean(0)[varying], inputs[train].std(0)[varying]
    x, x_test = ((inputs[rows][:, varying] - centre) / width for rows in (train, test))
    clean = 2.0 * classes[train] - 1.0
    wrong = clean.copy()
    wrong[random.permutation(len(train))[: int(WRONG * len(train))]] *= -1.0

    def accuracy(network):
        return 100.0 * np.mean((network.outputs(x_test) > 0) == classes[test])

    even = np.ones(x.shape[1])
    plain = best(x, wrong, even, seed)
    found = plain
    for step in range(ROUNDS):
        following = best(x, wrong, found.relevances(x), seed + 1000 * (step + 1))
        if step > 0 and following.score >= found.score:
            break
        found = following
    known = best(x, wrong, best(x, clean, even, seed).relevances(x), seed)
    return accuracy(plain), accuracy(found), accuracy(known), known.score > found.score


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    inputs, classes = table(sys.argv[1])
    splits = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    print("split  plain  relevance  clean relevance  scored worse")
    figures = []
    for seed in range(100, 100 + splits):
        figures.append(split(inputs, classes, seed))
        print("{}    {:5.2f}  {:9.2f}  {:15.2f}  {}".format(seed, *figures[-1][:3], "yes" if figures[-1][3] else "no"))
    figures = np.array(figures, dtype=float)
    print("mean   {:5.2f}  {:9.2f}  {:15.2f}  {:.0f} of {}".format(*figures[:, :3].mean(0), figures[:, 3].sum(), splits))
    print("sd     {:5.2f}  {:9.2f}  {:15.2f}".format(*figures[:, :3].std(0, ddof=1)))
