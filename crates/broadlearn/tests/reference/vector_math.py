"""Numbers behind `src/features/vector_math.rs`; needs mpmath (`pip install mpmath`).

    python vector_math.py coefficients          prints the polynomial and its error
    python vector_math.py rational              prints the quotient for tanh in single precision
    python vector_math.py > vector_math.txt     writes the reference values of the tests

The references are lines `x tanh(x) sigmoid(x) exp(x)` of IEEE 754 bit patterns in hexadecimal:
values computed with 60 digits (more where tanh cancels) and rounded once, to nearest even.
"""

import random
import struct
import sys

from mpmath import cos, exp, expm1, fabs, factorial, inf, linspace, log, lu_solve, matrix
from mpmath import mp, mpf, pi

mp.dps = 60


def bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def from_bits(pattern):
    return struct.unpack("<d", struct.pack("<Q", pattern))[0]


def nearest(value):
    """The double nearest to a number: Python divides integers with one correct rounding."""
    mantissa, exponent = value.man_exp
    try:
        return mantissa / (1 << -exponent) if exponent < 0 else float(mantissa << exponent)
    except OverflowError:
        return float("inf")


def coefficients(degree=10):
    """Remez: e^r = 1 + r + r^2 (1/2 + r g(r)), |r| <= ln2/2, relative error of expm1 equalised.

    1/2 stays exact. The relative error of expm1 is about r^2 (g - polynomial), weight 0 at r = 0.
    """
    bound = log(2) / 2 * (1 + mpf(2) ** -20)
    count = degree  # coefficients of r^0 .. r^(degree-1) in g

    def wanted(r):  # (e^r - 1 - r - r^2/2) / r^3, by its series: no cancellation
        return sum(r**j / factorial(j + 3) for j in range(45))

    def error(c, r):
        return r * r * (sum(c[j] * r**j for j in range(count)) - wanted(r))

    points = [bound * cos(pi * (i + mpf(1) / 2) / (count + 1)) for i in range(count + 1)]
    if count % 2 == 0:  # the middle Chebyshev point is 0, where the weight is 0
        points[count // 2] = bound / 20
    for _ in range(30):
        system = matrix(count + 1, count + 1)
        right = matrix(count + 1, 1)
        for i, r in enumerate(points):
            for j in range(count):
                system[i, j] = r ** (2 + j)
            system[i, count] = (-1) ** i
            right[i] = r * r * wanted(r)
        solution = lu_solve(system, right)
        c = [solution[j] for j in range(count)]
        grid = linspace(bound, -bound, 2001)
        values = [error(c, r) for r in grid]
        peaks, sign = [], 0
        for r, v in zip(grid, values):
            if v == 0:
                continue
            if (v > 0) - (v < 0) != sign:
                sign = (v > 0) - (v < 0)
                peaks.append((fabs(v), r))
            elif fabs(v) > peaks[-1][0]:
                peaks[-1] = (fabs(v), r)
        while len(peaks) > count + 1:
            peaks.remove(min(peaks))
        if len(peaks) < count + 1:
            break
        points = [r for _, r in peaks]
        if max(peaks)[0] < min(peaks)[0] * (1 + mpf(10) ** -4):
            break
    rounded = [nearest(v) for v in c]
    worst = max(fabs(error([mpf(v) for v in rounded], r)) for r in grid)
    return rounded, max(fabs(v) for v in values), worst


def rational(most=mpf("8.8"), degree=4, points=240):
    """tanh(x) = x P(x^2) / Q(x^2), |x| <= most: weighted least squares with the weights of Lawson, which raise
    where the relative error is large until it is even."""
    xs = [most * cos(pi * (i + mpf(1) / 2) / (2 * points)) for i in range(points)]
    ratios = [x / (expm1(2 * x) / (expm1(2 * x) + 2)) for x in xs]
    powers = [[(x / most) ** (2 * k) for k in range(degree + 1)] for x in xs]
    weights, q, best = [mpf(1)] * points, [mpf(1)] * points, None
    for step in range(12):
        rows = [[ratio * s / d for s in power] + [-s / d for s in power[1:]]
                for ratio, power, d in zip(ratios, powers, q)]
        size = 2 * degree + 1
        left, right = matrix(size, size), matrix(size, 1)
        for row, d, weight in zip(rows, q, weights):
            for i in range(size):
                right[i] += weight * row[i] / d
                for j in range(size):
                    left[i, j] += weight * row[i] * row[j]
        c = list(lu_solve(left, right))
        over, under = c[: degree + 1], [mpf(1)] + c[degree + 1 :]
        q = [sum(a * s for a, s in zip(under, power)) for power in powers]
        errors = [fabs(ratio * sum(a * s for a, s in zip(over, power)) / d - 1)
                  for ratio, power, d in zip(ratios, powers, q)]
        if best is None or max(errors) < best[0]:
            best = max(errors), over, under
        if step > 2:
            weights = [w * (e / max(errors) + mpf("1e-3")) for w, e in zip(weights, errors)]
            weights = [w * points / sum(weights) for w in weights]
    error, over, under = best
    return error, *([c / most ** (2 * k) for k, c in enumerate(part)] for part in (over, under))


def arguments():
    random.seed(20240817)
    found = [0.0, 2.0**-1074, 2.0**-1022, 1e-300, 709.782712893384, 709.7827128933841, 710.0]
    found += [-708.3964185322641, -708.3964185322642, -745.1332191019411, -745.1332191019412]
    found += [-746.0, float("inf"), -float("inf"), 1e308, -1e308]
    for k in list(range(-60, 61, 4)) + [-1075, -1074, -1023, -1022, -1021, 1023, 1024]:
        tie = float((k + mpf(1) / 2) * log(2))  # where the range reduction changes k
        found += [tie, from_bits(bits(tie) + 1), tie / 2]
    for low, high, count in [(-320, -20, 60), (-20, -1, 120)]:
        found += [random.choice([-1, 1]) * 10 ** random.uniform(low, high) for _ in range(count)]
    for span, count in [(1, 150), (5, 150), (25, 120), (750, 150)]:
        found += [random.uniform(-span, span) for _ in range(count)]
    found += [random.uniform(-746, -708) for _ in range(60)]
    return found


def references():
    for x in arguments():
        if x in (inf, -inf):
            triple = (1.0, 1.0, float("inf")) if x > 0 else (-1.0, 0.0, 0.0)
        else:
            v = mpf(x)
            mp.dps = 60 + (700 if fabs(v) < 1e-20 else 0)
            t = -expm1(-2 * fabs(v)) / (2 + expm1(-2 * fabs(v)))
            small = exp(-fabs(v)) if fabs(v) < 2000 else mpf(2) ** -2000
            e = 1 / small if v > 0 else small
            s = 1 / (1 + small) if v > 0 else small / (1 + small)
            triple = (nearest(t) * (-1.0 if x < 0 else 1.0), nearest(s), nearest(e))
        yield "%016x %016x %016x %016x" % tuple(bits(y) for y in (x,) + triple)


if __name__ == "__main__":
    if sys.argv[1:] == ["coefficients"]:
        rounded, before, after = coefficients()
        for j, v in enumerate(rounded):
            print("r^%-2d %r  (1/%d! = %r)" % (j + 3, v, j + 3, float(1 / factorial(j + 3))))
        print("relative error of expm1: 2^%.2f, coefficients rounded: 2^%.2f"
              % (log(before, 2), log(after, 2)))
        hi = nearest(log(2))
        print("ln2 hi %r lo %r, log2e %r" % (hi, float(log(2) - mpf(hi)), nearest(1 / log(2))))
    elif sys.argv[1:] == ["rational"]:
        error, over, under = rational()
        print("relative error 2^%.2f" % log(error, 2))
        print("P", *(nearest(c) for c in over))
        print("Q", *(nearest(c) for c in under))
    else:
        print("\n".join(references()))
