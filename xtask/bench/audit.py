"""Finding wrong targets: `broadlearn audit` against cleanlab with LightGBM.

    python audit.py [--binary FILE] [--data DIR] [--out FILE.md] [--quick] [--sets SET...] [--reuse]

Ten sets, all rows. Of classes, 10, 30 and 50 % of the labels become another class at random; to 10, 20 and
30 % of the numbers a value uniform in [0, range] is added with a random sign. Two seeds. Each method gives every
row a score, and the AUROC says how well it tells spoilt rows from the others (1: perfectly, 0.5: not at all). Half of
the labels of two classes (chess, breast_cancer at 50 %) tell nothing: 0.5 up to chance for any method.

broadlearn: `audit --target last`, defaults, one thread. It also estimates the share of wrong targets and an
interval; the table says in how many runs the interval covers the truth.

cleanlab, classes: probabilities of LGBMClassifier by 5-fold cross-validation (stratified, shuffled), then
`cleanlab.rank.get_label_quality_scores`. Numbers: `cleanlab.regression.learn.CleanLearning` around LGBMRegressor,
`find_label_issues`, `label_quality`. All with their defaults, one thread, a fixed seed.

Processor seconds: broadlearn's include the start of the process and the reading of the table, cleanlab's no
imports and no reading. broadlearn explains each row that it lists, by the columns that are the reason, and the scores
are had by listing all; so its seconds are given for all rows and, from a run of its own, for the 20 of its default.
"""

import harness  # first: it sets the number of threads

import json

import numpy as np
from cleanlab.rank import get_label_quality_scores
from cleanlab.regression.learn import CleanLearning
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import sets
from harness import LIGHTGBM, SEED

SEEDS = (1001, 1002)
FOLDS = 5
# Set -> percentages; labels are replaced, numbers added to.
CLASSES, NUMBERS = (10, 30, 50), (10, 20, 30)
SETS = {
    **dict.fromkeys(("airfoil", "weather_izmir", "mortgage", "diabetes"), NUMBERS),
    **dict.fromkeys(("chess", "wireless", "ecoli", "balance_scale", "digits", "breast_cancer"), CLASSES),
}
QUICK = ("diabetes", "ecoli", "balance_scale")
MINE, OTHER = "broadlearn", "cleanlab"


def spoil(table, name, percent, seed):
    """The table with some targets spoilt, and which they are."""
    targets, kind = table.iloc[:, -1], SETS[name]
    if kind is NUMBERS:
        values, wrong = sets.spoilt_numbers(targets.to_numpy(float), percent, seed, signs=True)
        values = sets.texts(values)
    else:
        values, wrong = sets.spoilt_labels(targets.to_numpy(object), percent, seed)
    table = table.copy()
    table[table.columns[-1]] = values
    return table, wrong


def run_broadlearn(binary, folder, table, wrong):
    file = folder / "table.csv"
    table.to_csv(file, index=False)
    audit = ["audit", file, "--target", "last", "--json"]
    said, cpu = harness.broadlearn(binary, *audit, "--top", len(table))
    _, cpu_of_20 = harness.broadlearn(binary, *audit)
    said = json.loads(said)
    scores = np.zeros(len(table))  # a row that is not listed is not suspicious at all
    for row in said["suspects"]:
        scores[row["row"] - 1] = row["score"]
    low, high = said["contamination_interval"]
    truth = float(wrong.mean())
    return {
        "auroc": float(roc_auc_score(wrong, scores)),
        "cpu": cpu,
        "cpu_of_20": cpu_of_20,
        "truth": truth,
        "estimate": said["contamination"],
        "interval": [low, high],
        "covers": bool(low <= truth <= high),
    }


def run_cleanlab(table, wrong, numbers):
    inputs = table.iloc[:, :-1]
    x = sets.Inputs(inputs).matrix(inputs)
    targets = table.iloc[:, -1].to_numpy()

    def of_numbers():
        cleaner = CleanLearning(LGBMRegressor(**LIGHTGBM), cv_n_folds=FOLDS, seed=SEED)
        return cleaner.find_label_issues(x, targets.astype(float))["label_quality"].to_numpy()

    def of_classes():
        labels = np.unique(targets.astype(str), return_inverse=True)[1]
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
        probabilities = cross_val_predict(
            LGBMClassifier(**LIGHTGBM), x, labels, cv=folds, method="predict_proba", n_jobs=1
        )
        return get_label_quality_scores(labels, probabilities)

    quality, cpu = harness.processor_seconds(of_numbers if numbers else of_classes)
    return {"auroc": float(roc_auc_score(wrong, -quality)), "cpu": cpu}


def mean(runs, key):
    return float(np.mean([run[key] for run in runs]))


def seconds(runs):
    """The three cells of processor seconds."""
    columns = ((MINE, "cpu"), (MINE, "cpu_of_20"), (OTHER, "cpu"))
    return [f"{mean(runs[method], key):.2f}" for method, key in columns]


def report(records, names, seeds):
    rows, summary = [], {"sets": {}}
    every = {MINE: [], OTHER: []}
    for name in names:
        of_set = {MINE: [], OTHER: []}
        for percent in SETS[name]:
            here = {
                method: [records.held[name, percent, seed, method] for seed in seeds] for method in of_set
            }
            for method in of_set:
                of_set[method] += here[method]
            aurocs = [mean(here[method], "auroc") for method in (MINE, OTHER)]
            mine = here[MINE]
            rows.append(
                [name, f"{percent} %"]
                + [f"**{a:.3f}**" if a == max(aurocs) else f"{a:.3f}" for a in aurocs]
                + seconds(here)
                + ["; ".join("{:.1f} ({:.1f} to {:.1f})".format(*percents(run)) for run in mine)]
                + [f"{sum(run['covers'] for run in mine)} of {len(mine)}"]
            )
        for method, runs in of_set.items():
            every[method] += runs
        aurocs = [mean(of_set[method], "auroc") for method in (MINE, OTHER)]
        summary["sets"][name] = {
            "auroc": dict(zip(of_set, aurocs, strict=True)),
            "cpu": {method: mean(runs, "cpu") for method, runs in of_set.items()},
        }
        rows.append(
            [f"*{name}*", "*mean*"]
            + [f"**{a:.3f}**" if a == max(aurocs) else f"{a:.3f}" for a in aurocs]
            + seconds(of_set)
            + ["", f"{sum(run['covers'] for run in of_set[MINE])} of {len(of_set[MINE])}"]
        )
    at_least = sum(figures["auroc"][MINE] >= figures["auroc"][OTHER] for figures in summary["sets"].values())
    cpu = {method: sum(run["cpu"] for run in runs) for method, runs in every.items()}
    cpu_of_20 = sum(run["cpu_of_20"] for run in every[MINE])
    covered, runs = sum(run["covers"] for run in every[MINE]), len(every[MINE])
    summary.update(
        sets_at_least_equal=at_least,
        cpu_seconds=cpu,
        cpu_seconds_of_20=cpu_of_20,
        cpu_ratio=cpu[OTHER] / cpu[MINE],
        covered=covered,
        runs=runs,
    )
    header = ["set", "spoilt", "AUROC broadlearn", "AUROC cleanlab", "CPU s broadlearn"]
    header += ["20 rows listed", "CPU s cleanlab"]
    header += ["broadlearn's estimate, % (interval), each seed", "interval covers"]
    text = f"# broadlearn audit and cleanlab with LightGBM, {harness.count(len(seeds), 'seed')}, one core\n\n"
    text += harness.markdown(header, rows)
    text += (
        "\nHalf of the labels of two classes (chess, breast_cancer at 50 %) tell nothing: 0.5 up to chance.\n"
    )
    text += (
        f"\n## Summary\n\nThe mean AUROC of broadlearn is at least cleanlab's on {at_least} of"
        f" {len(names)} sets.\n"
        f"Processor seconds: broadlearn {cpu[MINE]:.1f} ({cpu_of_20:.1f} with 20 rows listed), cleanlab"
        f" {cpu[OTHER]:.1f}, that is {summary['cpu_ratio']:.2f} ({cpu[OTHER] / cpu_of_20:.2f}) times as many.\n"
        f"The interval of the share of wrong targets covers the truth in {covered} of {runs} runs.\n"
    )
    return text, summary


def percents(run):
    return [100 * run["estimate"]] + [100 * end for end in run["interval"]]


def main():
    options = harness.arguments(__doc__, "audit", list(SETS), QUICK)
    seeds = SEEDS[:1] if options.quick else SEEDS
    tables = sets.tables(options.sets, options.data)
    records = harness.Records(options, ("cleanlab", "lightgbm", "scikit-learn", "numpy"))
    with harness.workplace() as folder:
        for name, table in tables.items():
            harness.tell(f"{name}: {len(table)} x {len(table.columns)}")
            for percent in SETS[name]:
                for seed in seeds:
                    spoilt, wrong = spoil(table, name, percent, seed)
                    numbers = SETS[name] is NUMBERS
                    key = (name, percent, seed)
                    records.get((*key, MINE), lambda: run_broadlearn(options.binary, folder, spoilt, wrong))
                    records.get((*key, OTHER), lambda: run_cleanlab(spoilt, wrong, numbers))
            records.save()
    harness.finish(options, records, *report(records, list(tables), seeds))


if __name__ == "__main__":
    main()
