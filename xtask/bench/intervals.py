"""90 % prediction intervals: `broadlearn predict --interval 0.9` against MAPIE.

    python intervals.py [--binary FILE] [--data DIR] [--out FILE.md] [--quick] [--sets SET...] [--reuse]

The seven regression sets of the C-BLS paper, 90 splits of 70 % to learn from and 30 % to test; 0 and 20 % of the
training targets spoilt (a value uniform in [0, range of the training targets] is added), test rows clean. The
target is the last column, of cleveland the column chol.

broadlearn: `fit --target`, then `predict --interval 0.9`, nothing else said but `--threads 1`. Where it takes the
target for classes, the fit is repeated with `--task regression`.

MAPIE: CrossConformalRegressor, method plus, 5 shuffled folds, around LGBMRegressor and around HuberRegressor with
standardised inputs; missing numbers become the median of the training rows.

Means over the splits of
- coverage: the share of the test rows within their interval, in %,
- width: the mean width, in units of the target,
- score: the mean of width + (2 / 0.1) * the distance by which the interval misses (Winkler; less is better):
  it rewards narrow intervals and punishes misses, so that neither can be had for nothing.
"""

import harness  # first: it sets the number of threads

import csv
import json

import numpy as np
from lightgbm import LGBMRegressor
from mapie.regression import CrossConformalRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import HuberRegressor
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sets
from harness import LIGHTGBM, SEED

LEVEL = 0.9
# Thirty splits tell the coverage of a set to within 0.3 (weather_izmir) to 1 point (cleveland) only.
SPLITS = tuple(range(2000, 2090))
PERCENTS = (0, 20)
FOLDS = 5
# Set -> target; the last column unless named.
SETS = {
    "airfoil": None,
    "bodyfat": None,
    "cleveland": "chol",
    "forestfires": None,
    "mortgage": None,
    "quake": None,
    "weather_izmir": None,
}
QUICK = ("airfoil", "bodyfat", "cleveland")
# A coverage this near to the level counts as right: splits have 76 to 653 test rows.
NEAR = 0.025

MINE = "broadlearn"
MAPIE = {
    "MAPIE LightGBM": lambda: make_pipeline(SimpleImputer(strategy="median"), LGBMRegressor(**LIGHTGBM)),
    "MAPIE Huber": lambda: make_pipeline(
        SimpleImputer(strategy="median"), StandardScaler(), HuberRegressor()
    ),
}
METHODS = (MINE, *MAPIE)


def figures(low, high, right, cpu):
    """Coverage, width and score; None where an end is not finite."""
    width, missed = high - low, np.maximum(low - right, 0.0) + np.maximum(right - high, 0.0)
    values = {
        "coverage": float(np.mean((low <= right) & (right <= high))),
        "width": float(np.mean(width)),
        "score": float(np.mean(width + 2.0 / (1.0 - LEVEL) * missed)),
    }
    return {**{name: value if np.isfinite(value) else None for name, value in values.items()}, "cpu": cpu}


def ends(text):
    """Of what `predict --interval` printed: columns 2 and 3, `<target> low` and `<target> high`."""
    rows = list(csv.reader(text.splitlines()))[1:]
    return np.array([row[1:3] for row in rows], dtype=float).T


def run_broadlearn(binary, folder, target, train, test, targets, right):
    train_file, test_file, model = folder / "train.csv", folder / "test.csv", folder / "model.broad"
    train.assign(**{target: sets.texts(targets)}).to_csv(train_file, index=False)
    test.drop(columns=target).to_csv(test_file, index=False)
    fit = ["fit", train_file, "--target", target, "--model", model, "--json"]
    said, cpu = harness.broadlearn(binary, *fit)
    told = json.loads(said)["task"] != "regression"
    if told:
        _, cpu = harness.broadlearn(binary, *fit, "--task", "regression")
    said, more = harness.broadlearn(binary, "predict", model, test_file, "--interval", LEVEL)
    low, high = ends(said)
    return {**figures(low, high, right, cpu + more), "told": told}


def run_mapie(make, x, targets, test_x, right):
    def work():
        folds = KFold(FOLDS, shuffle=True, random_state=SEED)
        machine = CrossConformalRegressor(make(), confidence_level=LEVEL, method="plus", cv=folds, n_jobs=1)
        return machine.fit_conformalize(x, targets).predict_interval(test_x)[1][:, :, 0]

    intervals, cpu = harness.processor_seconds(work)
    return figures(intervals[:, 0], intervals[:, 1], right, cpu)


def run_set(options, records, folder, name, table, splits):
    target = SETS[name] or table.columns[-1]
    for seed in splits:
        learnt, tested = sets.split(len(table), seed)
        train, test = table.iloc[learnt], table.iloc[tested]
        inputs = sets.Inputs(train.drop(columns=target))
        x, test_x = inputs.matrix(train), inputs.matrix(test)
        right = test[target].to_numpy(float)
        for percent in PERCENTS:
            targets, _ = sets.spoilt_numbers(train[target].to_numpy(float), percent, seed)
            records.get(
                (name, percent, seed, MINE),
                lambda: run_broadlearn(options.binary, folder, target, train, test, targets, right),
            )
            for method, make in MAPIE.items():
                records.get((name, percent, seed, method), lambda: run_mapie(make, x, targets, test_x, right))


def mean(runs, key):
    """Not a number if one of them is none."""
    return float(np.mean([np.nan if run[key] is None else run[key] for run in runs]))


def report(records, names, splits):
    rows, cells = [], {method: {percent: [] for percent in PERCENTS} for method in METHODS}
    cpu = dict.fromkeys(METHODS, 0.0)
    for name in names:
        for percent in PERCENTS:
            here = {}
            for method in METHODS:
                runs = [records.held[name, percent, seed, method] for seed in splits]
                here[method] = {key: mean(runs, key) for key in ("coverage", "width", "score")}
                cells[method][percent].append(here[method])
                cpu[method] += sum(run["cpu"] for run in runs)
            best = min(figures["score"] for figures in here.values())
            row = [name, f"{percent} %"]
            for figures in here.values():
                score = f"{figures['score']:.4g}"
                row += [
                    f"{100 * figures['coverage']:.1f}",
                    f"{figures['width']:.4g}",
                    f"**{score}**" if figures["score"] == best else score,
                ]
            rows.append(row)
    header = ["set", "spoilt"]
    header += [f"{method}: {key}" for method in METHODS for key in ("coverage", "width", "score")]
    text = (
        f"# Prediction intervals of {100 * LEVEL:.0f} %, {harness.count(len(splits), 'split')}, one core\n\n"
    )
    text += harness.markdown(header, rows)

    summary, lines = {}, []
    for method in METHODS:
        summary[method] = {"cpu_seconds": cpu[method]}
        line = [method]
        for percent in PERCENTS:
            mine = cells[method][percent]
            coverages = np.array([figures["coverage"] for figures in mine])
            best = [
                min(cells[other][percent][place]["score"] for other in METHODS) for place in range(len(mine))
            ]
            # Narrower or wider than broadlearn's, as a factor.
            ratio = [a["width"] / b["width"] for a, b in zip(mine, cells[MINE][percent], strict=True)]
            numbers = {
                "mean_coverage": float(coverages.mean()),
                "near": int(np.sum(np.abs(coverages - LEVEL) <= NEAR)),
                "best_score": sum(a["score"] == b for a, b in zip(mine, best, strict=True)),
                "width_against_broadlearn": float(np.exp(np.mean(np.log(ratio)))),
            }
            summary[method][f"{percent} %"] = numbers
            line += [
                f"{100 * numbers['mean_coverage']:.1f}",
                f"{numbers['near']} of {len(names)}",
                f"{numbers['best_score']} of {len(names)}",
                f"{numbers['width_against_broadlearn']:.2f}",
            ]
        lines.append(line + [f"{cpu[method]:.1f}"])
    header = ["method"]
    for percent in PERCENTS:
        header += [
            f"{percent} % spoilt: mean coverage",
            f"within {100 * NEAR:.1f} points",
            "best score",
            "width, broadlearn 1",
        ]
    text += "\n## Summary\n\n" + harness.markdown(header + ["processor seconds"], lines)
    text += (
        "\nWithin: sets whose coverage is this near to the level. Widths: geometric means over the sets.\n"
    )
    return text, summary


def main():
    options = harness.arguments(__doc__, "intervals", list(SETS), QUICK)
    splits = SPLITS[:1] if options.quick else SPLITS
    tables = sets.tables(options.sets, options.data)
    records = harness.Records(options, ("mapie", "lightgbm", "scikit-learn", "numpy"))
    with harness.workplace() as folder:
        for name, table in tables.items():
            harness.tell(f"{name}: {len(table)} x {len(table.columns)}")
            run_set(options, records, folder, name, table, splits)
            records.save()
    harness.finish(options, records, *report(records, list(tables), splits))


if __name__ == "__main__":
    main()
