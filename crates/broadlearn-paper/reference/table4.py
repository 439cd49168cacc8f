"""Table IV of the paper in NumPy: what the seed of a network does to its figures.

    python table4.py DATA [NETWORKS]

DATA holds mnist_train.npz and mnist_test.npz (`cargo xtask data mnist`). 10 x 10 feature nodes by a sparse autoencoder, 5000
enhancement nodes, the map from the first 20 000 rows; ridge 1e-5, squared loss (the paper's kernel of 32 makes every weight
exceed 0.999). Test accuracy in percent after every step, one line for each network, then mean and standard
deviation. Written from the recipe alone: it shares no code and no random numbers with the library. About a minute a network on
two cores.
"""

import sys

import numpy as np
import scipy.linalg

GROUPS, NODES, ENHANCEMENT = 10, 10, 5000
FIRST, MORE, STEPS = 20_000, 10_000, 5
RIDGE, SHRINK, CONSTANT = 1e-5, 0.8, 0.1


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
    """The map, from the rows that are there first."""

    def __init__(self, x, seed):
        random = np.random.default_rng(seed)
        x = with_constant(x)
        self.groups = []
        for _ in range(GROUPS):
            a = x @ random.uniform(-1, 1, (x.shape[1], NODES))
            a = 2 * (a - a.min(0)) / np.ptp(a, axis=0) - 1
            weights = sparse(a, x)
            t = x @ weights
            self.groups.append((weights, t.min(0), np.ptp(t, axis=0)))
        z = with_constant(self.features(x))
        weights = random.uniform(-1, 1, (z.shape[1], ENHANCEMENT))
        # Orthonormal rows: there are more nodes than features.
        self.enhancement = np.linalg.svd(weights.T, full_matrices=False)[0].T
        self.scale = SHRINK / (z @ self.enhancement).max()

    def features(self, x):
        return np.hstack([(x @ weights - least) / width for weights, least, width in self.groups])

    def state(self, x):
        z = self.features(with_constant(x))
        return np.hstack([z, np.tanh(self.scale * (with_constant(z) @ self.enhancement))])


def accuracies(train, test, seed):
    (x, digits), (test_x, test_digits) = train, test
    network = Network(x[:FIRST], seed)
    test_u = network.state(test_x)
    r, p, start, found = 0.0, 0.0, 0, []
    for step in range(STEPS):
        end = FIRST + step * MORE
        u = network.state(x[start:end])
        r, p, start = r + u.T @ u, p + u.T @ np.eye(10)[digits[start:end]], end
        factor = scipy.linalg.cho_factor(r + RIDGE * np.eye(len(r)), lower=True, overwrite_a=True)
        outputs = test_u @ scipy.linalg.cho_solve(factor, p)
        found.append(100 * np.mean(outputs.argmax(1) == test_digits))
    return found


def main():
    folder, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    train, test = rows(f"{folder}/mnist_train.npz"), rows(f"{folder}/mnist_test.npz")
    figures = []
    for seed in range(count):
        figures.append(accuracies(train, test, seed))
        print(seed, *(f"{figure:.2f}" for figure in figures[-1]), flush=True)
    print("mean", *(f"{figure:.2f}" for figure in np.mean(figures, axis=0)))
    if count > 1:
        print("deviation", *(f"{figure:.2f}" for figure in np.std(figures, axis=0, ddof=1)))


if __name__ == "__main__":
    main()
