"""Recursive least squares in NumPy: rows per second, one by one and in batches, at 600 nodes.

The counterpart of crates/broadlearn/examples/row_updates.rs. It carries the inverse of R, as the
textbook and the paper do, and gets the state for nothing; the library computes it from the inputs.
"""

import time

import numpy as np

NODES, RIDGE = 600, 1e-3


def single(u, y, inverse, w):
    begun = time.perf_counter()
    for row, target in zip(u, y):
        v = inverse @ row
        gain = v / (1.0 + row @ v)
        w += gain * (target - row @ w)
        inverse -= np.outer(gain, v)
    return len(u) / (time.perf_counter() - begun)


def batched(u, y, inverse, w, size):
    begun = time.perf_counter()
    for start in range(0, len(u), size):
        rows, targets = u[start:start + size], y[start:start + size]
        v = inverse @ rows.T
        gain = np.linalg.solve(np.eye(len(rows)) + rows @ v, v.T).T
        w += gain @ (targets - rows @ w)
        inverse -= gain @ v.T
    return len(u) / (time.perf_counter() - begun)


def main():
    random = np.random.default_rng(1)
    u = np.tanh(random.normal(size=(10_000, NODES)))
    y = random.normal(size=10_000)
    first = u[:4000]
    inverse = np.linalg.inv(first.T @ first + RIDGE * np.eye(NODES))
    w = inverse @ (first.T @ y[:4000])
    print(f"single {single(u[4000:7000], y[4000:7000], inverse.copy(), w.copy()):.0f}")
    print(f"batched {batched(u[4000:], y[4000:], inverse.copy(), w.copy(), 256):.0f}")


main()
