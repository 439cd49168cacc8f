"""The fits of `crates/broadlearn/examples/mnist.rs` in NumPy, SciPy and OpenBLAS.

    python mnist.py DATA MODEL [--wrong SHARE] [--sigma F] [--steps N] [--from-model]

DATA is the folder with mnist_train.npz and mnist_test.npz, MODEL the file that the example wrote: its
random map is used here, so that both do the same arithmetic. SHARE of the training rows get a wrong
class, the same as in the example. Without a kernel size the loss is squared; with one it is correntropy,
and the paper's iteration runs N steps or to the fixed point from the ridge solution, or N steps on from the
model's own outputs, to see how far from the fixed point these are. Prints a name and a number per line, as
the example does. The number of threads is that of OPENBLAS_NUM_THREADS.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk

RIDGE, TOLERANCE = 1e-5, 1e-6
BLOCKS = (2048, 8192)
TRIAL_ROWS = 8192


def main(options):
    begun = time.perf_counter()
    train, test = (np.load(options.data / f"mnist_{part}.npz") for part in ("train", "test"))
    x, classes = train["X"], train["y"]
    tell("reading", time.perf_counter() - begun)
    y = np.eye(10)[mislabelled(classes, options.wrong)]
    network = Network(load_file(options.model))
    if options.sigma is None:
        w = ridge_fit(network, x, y)
    else:
        w = robust_fit(network, x, y, options)

    begun = time.perf_counter()
    u = network.state(test["X"], {})
    outputs = u @ w
    tell("testing", time.perf_counter() - begun)
    tell("accuracy", 100.0 * np.mean(outputs.argmax(1) == test["y"]))
    theirs = u @ network.w
    tell("same_classes", 100.0 * np.mean(outputs.argmax(1) == theirs.argmax(1)))
    tell("difference", np.abs(outputs - theirs).max())
    tell("peak_mb", peak_mb())


def mislabelled(classes, share):
    """As the example's `mislabel`."""
    state, classes = 1, classes.astype(int)

    def draw():
        nonlocal state
        state = state * 48271 % 2147483647
        return state / 2147483647.0

    for row in range(len(classes)):
        if draw() < share:
            classes[row] = (classes[row] + 1 + int(9.0 * draw())) % 10
    return classes


def ridge_fit(network, x, y):
    # NumPy at its best: block size and product are those that do well on some of the rows.
    trials = {}
    normal_equations(network, x[:1000], y[:1000], 1000, add_by_syrk, {})  # wakes the threads
    for rows in BLOCKS:
        for product in (add_by_syrk, add_by_matmul):
            begun = time.perf_counter()
            normal_equations(network, x[:TRIAL_ROWS], y[:TRIAL_ROWS], rows, product, {})
            trials[rows, product] = time.perf_counter() - begun
    rows, product = min(trials, key=trials.get)
    tell("block_rows", rows)
    tell("by_syrk", float(product is add_by_syrk))

    seconds = dict.fromkeys(("scaling", "map", "activation", "product", "factor"), 0.0)
    begun, cpu_begun = time.perf_counter(), time.process_time()
    r, p = normal_equations(network, x, y, rows, product, seconds)
    factor_begun = time.perf_counter()
    r[np.diag_indices_from(r)] += RIDGE
    w = cho_solve(cho_factor(r, lower=True, overwrite_a=True, check_finite=False), p)
    seconds["factor"] = time.perf_counter() - factor_begun
    tell("solving", time.perf_counter() - begun)
    tell("solving_cpu", time.process_time() - cpu_begun)
    for name, value in seconds.items():
        tell(name, value)
    return w


def robust_fit(network, x, y, options):
    """The paper's iteration, with U in memory: ridge solution, then weights, weighted equations, factor."""
    tolerance = 0.0 if options.from_model else TOLERANCE
    seconds = {}
    begun = time.perf_counter()
    u = np.empty((len(x), network.nodes))
    for start in range(0, len(x), BLOCKS[0]):
        network.state(x[start : start + BLOCKS[0]], seconds, u[start:])
    tell("mapping", time.perf_counter() - begun)
    start_begun = time.perf_counter()
    outputs = u @ (w := network.w if options.from_model else weighted_ridge(u, y, np.ones(len(u))))
    tell("start", time.perf_counter() - start_begun)
    steps_begun, cpu_begun, steps, change = time.perf_counter(), time.process_time(), 0, np.inf
    while steps < options.steps and change > tolerance:
        weights = np.exp(-np.square(y - outputs).sum(1) / (2.0 * options.sigma**2))
        new = u @ (w := weighted_ridge(u, y, weights))
        change = np.linalg.norm(new - outputs) / np.linalg.norm(new)
        outputs, steps = new, steps + 1
    tell("step", (time.perf_counter() - steps_begun) / steps)
    tell("step_cpu", (time.process_time() - cpu_begun) / steps)
    tell("solving", time.perf_counter() - begun)
    tell("steps", steps)
    tell("last_change", change)
    return w


def weighted_ridge(u, y, weights):
    r = np.zeros((u.shape[1], u.shape[1]), order="F")
    p = u.T @ (weights[:, None] * y)
    roots = np.sqrt(weights)[:, None]
    for start in range(0, len(u), BLOCKS[0]):
        rows = slice(start, start + BLOCKS[0])
        r = add_by_syrk(r, roots[rows] * u[rows])
    r[np.diag_indices_from(r)] += RIDGE
    return cho_solve(cho_factor(r, lower=True, overwrite_a=True, check_finite=False), p)


class Network:
    """The map x -> u of a model file: feature groups, then one group of enhancement nodes."""

    def __init__(self, tensors):
        groups = sum(name.endswith(".bias") for name in tensors)
        part = lambda kind: [tensors[f"group.{i}.{kind}"] for i in range(groups)]
        *features, self.wh = part("weights")
        *biases, self.bh = part("bias")
        self.we, self.be = np.hstack(features), np.hstack(biases)
        self.w = tensors["output.weights"]
        self.nodes = len(self.be) + len(self.bh)

    def state(self, x, seconds, u=None):
        clock = Clock(seconds)
        x = x.astype(np.float64)
        x -= x.mean(axis=1, keepdims=True)
        x /= np.sqrt(np.einsum("ij,ij->i", x, x) / x.shape[1])[:, None]
        clock.note("scaling")
        u = np.empty((len(x), self.nodes)) if u is None else u[: len(x)]
        z, h = np.split(u, [len(self.be)], axis=1)
        np.matmul(x, self.we, out=z)
        z += self.be
        np.matmul(z, self.wh, out=h)
        h += self.bh
        clock.note("map")
        np.tanh(h, out=h)
        clock.note("activation")
        return u


def normal_equations(network, x, y, block_rows, add_product, seconds):
    """R = U'U, lower triangle, and P = U'Y."""
    r = np.zeros((network.nodes, network.nodes), order="F")
    p = np.zeros((network.nodes, y.shape[1]))
    buffer = np.empty((block_rows, network.nodes))
    for start in range(0, len(x), block_rows):
        u = network.state(x[start : start + block_rows], seconds, buffer)
        clock = Clock(seconds)
        r = add_product(r, u)
        p += u.T @ y[start : start + block_rows]
        clock.note("product")
    return r, p


def add_by_syrk(r, u):
    return dsyrk(1.0, u.T, beta=1.0, c=r, lower=1, overwrite_c=1)


def add_by_matmul(r, u):
    r += u.T @ u
    return r


class Clock:
    def __init__(self, seconds):
        self.seconds, self.begun = seconds, time.perf_counter()

    def note(self, name):
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self.begun
        self.begun = now


def tell(name, value):
    print(f"{name} {value:.6g}", flush=True)


def peak_mb():
    """The most memory that was ever in use; only Linux tells."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next(float(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--wrong", type=float, default=0.0)
    parser.add_argument("--sigma", type=float)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--from-model", action="store_true")
    main(parser.parse_args())
