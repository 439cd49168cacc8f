"""Rows per second of scikit-learn's perceptron, as many flops per row as `crates/broadlearn/examples/prediction.rs`.

    python prediction.py [REPEATS]

Two hidden layers of 490 nodes, or one of 793, relu, predict_proba of 60 000 rows in memory; trained on a few random rows,
which makes no difference to the time. In double precision, and in single precision, in which scikit-learn computes if it was
trained on such rows. The number of threads is that of OPENBLAS_NUM_THREADS.
"""

import sys
import time
import warnings

import numpy as np
from sklearn.neural_network import MLPClassifier

ROWS, INPUTS, OUTPUTS = 60_000, 784, 10
NETWORKS = (("two_layers", (490, 490)), ("one_layer", (793,)))


def rows_per_second(model, x, repeats):
    """The most of all repeats."""
    least = np.inf
    for _ in range(repeats):
        begun = time.perf_counter()
        model.predict_proba(x)
        least = min(least, time.perf_counter() - begun)
    return len(x) / least


def main(repeats=5):
    warnings.filterwarnings("ignore")  # it has not converged
    random = np.random.default_rng(1)
    x, classes = random.random((ROWS, INPUTS)), np.arange(1000) % OUTPUTS
    for name, layers in NETWORKS:
        widths = (INPUTS, *layers, OUTPUTS)
        print(f"{name}.flops {2 * sum(a * b for a, b in zip(widths, widths[1:]))}")
    for precision, kind in (("", np.float64), ("single.", np.float32)):
        x = x.astype(kind)
        for name, layers in NETWORKS:
            model = MLPClassifier(layers, max_iter=1, random_state=0).fit(x[:1000], classes)
            rate = rows_per_second(model, x, int(repeats))
            print(f"{precision}{name}.rows_per_second {rate:.0f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
