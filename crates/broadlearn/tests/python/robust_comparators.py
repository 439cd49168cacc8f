"""Published robust broad learners on a given state, from their formulas and nothing else.

    robust_comparators.py l2rbls U.npy Y.npy W.npy LAMBDA STEPS
    robust_comparators.py wbls   U.npy Y.npy W.npy RIDGE TUNING STEPS
    robust_comparators.py elm    X.npy Y.npy F.npy RIDGE V.npy B.npy

L2RBLS: min |Y - U W|_1 + lambda/2 |W|^2 by alternating directions. WBLS: Huber's weights in units of the
median residual. ELM: ridge on sigmoid(X V + b); writes its outputs. Needs numpy.
"""

import sys

import numpy as np


def ridge_solution(u, y, ridge):
    """By least squares of the stacked system, not by normal equations."""
    stacked = np.vstack([u, np.sqrt(ridge) * np.eye(u.shape[1])])
    right = np.vstack([y, np.zeros((u.shape[1], y.shape[1]))])
    return np.linalg.lstsq(stacked, right, rcond=None)[0]


def l2rbls(u, y, penalty, steps):
    mu = 2 * len(y) / np.abs(y).sum()
    e, m = np.zeros_like(y), np.zeros_like(y)
    for _ in range(steps):
        w = ridge_solution(u, y - e + m / mu, penalty / mu)
        inner = y - u @ w + m / mu
        e = np.sign(inner) * np.maximum(np.abs(inner) - 1 / mu, 0)
        m = m + mu * (y - u @ w - e)
    return w


def wbls(u, y, ridge, tuning, steps):
    w = ridge_solution(u, y, ridge)
    for _ in range(steps):
        error = np.linalg.norm(y - u @ w, axis=1)
        scale = np.median(error) / 0.6745
        weights = np.sqrt(1 / np.maximum(1, error / (tuning * scale)))[:, None]
        w = ridge_solution(weights * u, weights * y, ridge)
    return w


kind, first, second, out, *rest = sys.argv[1:]
u, y = np.load(first), np.load(second)
if kind == "l2rbls":
    result = l2rbls(u, y, float(rest[0]), int(rest[1]))
elif kind == "wbls":
    result = wbls(u, y, float(rest[0]), float(rest[1]), int(rest[2]))
else:
    h = 1 / (1 + np.exp(-(u @ np.load(rest[1]) + np.load(rest[2]))))
    result = h @ ridge_solution(h, y, float(rest[0]))
np.save(out, result)
