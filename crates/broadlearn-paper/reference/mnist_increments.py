"""Tables IV to VI of the paper in NumPy: what the seed of a network does to its figures.

    python mnist_increments.py DATA TABLE [NETWORKS]

DATA holds mnist_train.npz and mnist_test.npz (`cargo xtask data mnist`), TABLE is 4, 5 or 6. Feature nodes in groups of 10 by a
sparse autoencoder; ridge 1e-5, squared loss (the paper's kernel of 32 makes every weight exceed 0.999).

- 4: 10 groups and 5000 enhancement nodes, the map from the first 20 000 rows; 10 000 rows a step.
- 5: 60 000 rows, 6 groups and 3000 enhancement nodes; a step adds a group, 200 enhancement nodes that read it and 300 that read all
  groups.
- 6: 10 groups and 1000 enhancement nodes from 20 000 rows; 10 000 rows and 1000 enhancement nodes a step.

Test accuracy in percent after every step, one line for each network, then mean and standard deviation. Each step is
solved anew from the rows and nodes that it has. Written from the recipe alone: it shares no code and no random numbers with the
library. About a minute a network on two cores.
"""

import sys

import numpy as np
import scipy.linalg

STEPS, NODES, RIDGE, SHRINK, CONSTANT, BLOCK = 5, 10, 1e-5, 0.8, 0.1, 10_000


def rows(file):
    """Pixels with mean 0 and deviation 1 in every row, and digits."""
    arrays = sorted((np.load(file)[name] for name in np.load(file).files), key=lambda array: array.size)
    digits, pixels = arrays[0].ravel().astype(int), arrays[-1].reshape(len(arrays[0]), -1).astype(float)
    return (pixels - pixels.mean(1, keepdims=True)) / pixels.std(1, keepdims=True), digits


def with_constant(x):
    return np.hstack([x, np.full((len(x), 1), CONSTANT)])


def sparse(a, x):
    """The lasso of A W ~ X by ADMM, 50 steps."""
    inverse = np.linalg.inv(a.T @ a + np.eye(a.shape[1]))
    least_squares = inverse @ (a.T @ x)
    found = dual = np.zeros_like(least_squares)
    for _ in range(50):
        c = least_squares + inverse @ (found - dual)
        found = np.sign(c + dual) * np.maximum(np.abs(c + dual) - 1e-3, 0.0)
        dual = dual + c - found
    return found.T


class Network:
    """A map whose nodes are added in blocks: each an array of rows and what it needs to know about others."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        # Every block of columns of the state is a function of scaled rows and of the blocks before it.
        self.groups, self.blocks = [], []

    def add_group(self, x):
        """Ten feature nodes; x are the rows that are there."""
        x = with_constant(x)
        a = x @ self.random.uniform(-1, 1, (x.shape[1], NODES))
        a = 2 * (a - a.min(0)) / np.ptp(a, axis=0) - 1
        weights = sparse(a, x)
        t = x @ weights
        self.groups.append((weights, t.min(0), np.ptp(t, axis=0)))
        group = len(self.groups) - 1
        self.blocks.append(lambda z: z[:, NODES * group : NODES * (group + 1)])

    def add_enhancement(self, x, nodes, groups):
        """Nodes that read a range of groups."""
        columns = slice(NODES * groups.start, NODES * groups.stop)
        z = with_constant(self.features(x)[:, columns])
        # Orthonormal rows: there are more nodes than features.
        weights = np.linalg.svd(self.random.uniform(-1, 1, (z.shape[1], nodes)).T, full_matrices=False)[0].T
        scale = SHRINK / (z @ weights).max()
        self.blocks.append(lambda z: np.tanh(scale * (with_constant(z[:, columns]) @ weights)))

    def features(self, x):
        x = with_constant(x)
        return np.hstack([(x @ weights - least) / width for weights, least, width in self.groups])

    def state(self, x):
        z = self.features(x)
        return np.hstack([block(z) for block in self.blocks])


def steps(table, x, network):
    """Builds the network; the numbers of rows and of blocks of nodes at every step."""
    first = 60_000 if table == 5 else 20_000
    for _ in range(6 if table == 5 else 10):
        network.add_group(x[:first])
    network.add_enhancement(x[:first], {4: 5000, 5: 3000, 6: 1000}[table], range(len(network.groups)))
    found = [(first, len(network.blocks))]
    for step in range(1, STEPS):
        rows = first if table == 5 else first + 10_000 * step
        if table == 5:
            network.add_group(x)
            network.add_enhancement(x, 200, range(len(network.groups) - 1, len(network.groups)))
            network.add_enhancement(x, 300, range(len(network.groups)))
        elif table == 6:
            network.add_enhancement(x[:rows], 1000, range(len(network.groups)))
        found.append((rows, len(network.blocks)))
    return found


def accuracies(table, train, test, seed):
    (x, digits), (test_x, test_digits) = train, test
    network = Network(seed)
    plan = steps(table, x, network)
    z = network.features(test_x)
    widths = np.cumsum([block(z[:1]).shape[1] for block in network.blocks])
    test_u = network.state(test_x)
    r, p, start, found = 0.0, 0.0, 0, []
    # All nodes for all rows: what a step has of them comes first.
    for rows, blocks in plan:
        while start < rows:
            u = network.state(x[start : start + BLOCK])
            r, p, start = r + u.T @ u, p + u.T @ np.eye(10)[digits[start : start + BLOCK]], start + BLOCK
        width = widths[blocks - 1]
        factor = scipy.linalg.cho_factor(r[:width, :width] + RIDGE * np.eye(width), lower=True, overwrite_a=True)
        outputs = test_u[:, :width] @ scipy.linalg.cho_solve(factor, p[:width])
        found.append(100 * np.mean(outputs.argmax(1) == test_digits))
    return found


def main():
    folder, table, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 3
    train, test = rows(f"{folder}/mnist_train.npz"), rows(f"{folder}/mnist_test.npz")
    figures = []
    for seed in range(count):
        figures.append(accuracies(table, train, test, seed))
        print(seed, *(f"{figure:.2f}" for figure in figures[-1]), flush=True)
    print("mean", *(f"{figure:.2f}" for figure in np.mean(figures, axis=0)))
    if count > 1:
        print("deviation", *(f"{figure:.2f}" for figure in np.std(figures, axis=0, ddof=1)))


if __name__ == "__main__":
    main()
