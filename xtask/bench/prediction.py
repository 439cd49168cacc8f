"""Rows per second of scikit-learn's perceptron, as many flops per row as `crates/broadlearn/examples/prediction.rs`.

    python prediction.py [REPEATS]

Two hidden layers of 490 nodes, or one of 793, relu, predict_proba of 60 000 rows in memory in double precision; trained on a
few random rows, which makes no difference to the time. The number of threads is that of OPENBLAS_NUM_THREADS.
"""

import sys
import time
import warnings

import numpy as np
from sklearn.neural_network import MLPClassifier

ROWS, INPUTS, OUTPUTS = 60_000, 784, 10


def main(repeats=5):
    warnings.filterwarnings("ignore")  # it has not converged
    random = np.random.default_rng(1)
    x, classes = random.random((ROWS, INPUTS)), np.arange(1000) % OUTPUTS
    for name, layers in (("two_layers", (490, 490)), ("one_layer", (793,))):
        model = MLPClassifier(layers, max_iter=1, random_state=0).fit(x[:1000], classes)
        widths = (INPUTS, *layers, OUTPUTS)
        print(f"{name}.flops {2 * sum(a * b for a, b in zip(widths, widths[1:]))}")
        least = np.inf
        for _ in range(int(repeats)):
            begun = time.perf_counter()
            model.predict_proba(x)
            least = min(least, time.perf_counter() - begun)
        print(f"{name}.rows_per_second {ROWS / least:.0f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
