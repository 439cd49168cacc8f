//! The folder of the data sets: where a file is, and what to say where it is not.

use broadlearn::data::{Kind, ReadOptions, Roles, SchemaReader, TableReader, TrainingData};
use broadlearn::data::{Schema, TargetSchema, Targets};
use broadlearn::faer::Mat;
use broadlearn::{Error, Result, unobserved};
use flate2::read::GzDecoder;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A folder as `cargo xtask data` writes it (`DIR/set.csv`), or one with a folder for each set
/// (`DIR/set/set.csv`).
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

/// Sets that no package registry holds, and where they are published.
const ELSEWHERE: [(&str, &str); 5] = [
    ("cleveland", "UCI Heart Disease, processed.cleveland.data with a header, '?' as empty cells"),
    (
        "horse_colic",
        "UCI Horse Colic, .data and .test with a header, '?' as empty cells, surgical_lesion moved last",
    ),
    ("wireless", "UCI Wireless Indoor Localization with a header"),
    (
        "sunspot_monthly",
        "SILSO monthly mean total sunspot number V2.0, 1749-01 to 2017-12, value last",
    ),
    (
        "bci_iv_2b",
        "the GDF recordings of BCI Competition IV, data set 2b, with the published labels of sessions 4 and 5, and write \
         their trials to an archive of NumPy: X_B0101T .. X_B0905E (trials x C3, Cz, C4 x samples from the cue on), \
         y_B0101T .. (1 left, 2 right), scale_uV (microvolt of a unit), fs (samples a second)",
    ),
];

/// The two halves of MNIST as `cargo xtask data` writes them, and as they were published.
const MNIST: [(&str, [&str; 2]); 2] = [
    ("mnist_train.npz", ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"]),
    ("mnist_test.npz", ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]),
];

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The file of a set, or an error that says how to get it.
    pub(crate) fn find(&self, set: &str, file: &str) -> Result<PathBuf> {
        let places = [self.0.join(file), self.0.join(set).join(file)];
        places.into_iter().find(|path| path.is_file()).ok_or_else(|| self.missing(set, file))
    }

    fn missing(&self, set: &str, file: &str) -> Error {
        let error = Error::no_input(&self.0.join(file), std::io::ErrorKind::NotFound.into())
            .expected(format!("{file} or {set}/{file} in this folder"));
        error.advice(match ELSEWHERE.iter().find(|(name, _)| *name == set) {
            Some((_, source)) => {
                format!("no registry holds {set}: get {source}; name its folder by --data DIR")
            }
            None => {
                format!("`cargo xtask data {set}` fetches it, or name its folder by --data DIR")
            }
        })
    }

    /// The files of MNIST: one of `.npz`, or the two published ones, for either half.
    pub(crate) fn find_mnist(&self) -> Result<[Half; 2]> {
        let half = |(npz, parts): (&str, [&str; 2])| {
            if let Ok(path) = self.find("mnist", npz) {
                return Ok(Half::Npz(path));
            }
            let part = |name: &str| {
                self.find("mnist", &format!("{name}.gz")).or_else(|_| self.find("mnist", name))
            };
            match (part(parts[0]), part(parts[1])) {
                (Ok(images), Ok(labels)) => Ok(Half::Idx(images, labels)),
                _ => Err(self.missing("mnist", npz).expected(format!(
                    "{npz}, or {}.gz and {}.gz, in this folder or in mnist/",
                    parts[0], parts[1]
                ))),
            }
        };
        Ok([half(MNIST[0])?, half(MNIST[1])?])
    }
}

/// The files of the training or the test rows.
pub(crate) enum Half {
    Npz(PathBuf),
    /// Images and labels.
    Idx(PathBuf, PathBuf),
}

/// Pixels and digits.
pub(crate) struct Digits {
    pub(crate) x: Mat<f64>,
    pub(crate) classes: Vec<u32>,
}

/// MNIST in memory.
pub(crate) struct Mnist {
    pub(crate) schema: Schema,
    pub(crate) train: Digits,
    pub(crate) test: Digits,
}

impl Mnist {
    pub(crate) fn read([train, test]: &[Half; 2]) -> Result<Self> {
        let (train, test) = (read_half(train)?, read_half(test)?);
        let classes = (0..10).map(|digit: u32| digit.to_string()).collect();
        let target = TargetSchema::Classification { name: "y".into(), kind: Kind::Number, classes };
        Ok(Self { schema: Schema::numeric(train.x.ncols(), target), train, test })
    }
}

fn read_half(half: &Half) -> Result<Digits> {
    let digits = match half {
        Half::Npz(path) => {
            let open = || TableReader::open(path, &ReadOptions::default());
            let data = TrainingData::read(&mut open()?, &Roles::target("y"), &mut unobserved)?;
            let schema = data.schema(&(0..data.len()).collect::<Vec<_>>())?;
            drop(data);
            let mut rows = SchemaReader::new(open()?, &schema, true, false)?;
            let samples = rows.read_to_end(&mut unobserved)?;
            let Targets::Classes(classes) = samples.targets else {
                return Err(not_digits(path));
            };
            Digits { x: samples.x, classes }
        }
        Half::Idx(images, labels) => {
            let (sizes, pixels) = read_idx(images)?;
            let (_, labels_found) = read_idx(labels)?;
            let rows = sizes[0];
            let width = sizes[1..].iter().product::<usize>();
            if labels_found.len() != rows || width != 784 {
                return Err(not_digits(labels));
            }
            let x = Mat::from_fn(rows, width, |i, j| f64::from(pixels[i * width + j]));
            Digits { x, classes: labels_found.into_iter().map(u32::from).collect() }
        }
    };
    if digits.x.ncols() != 784 || digits.classes.iter().any(|class| *class > 9) {
        let (Half::Npz(path) | Half::Idx(path, _)) = half;
        return Err(not_digits(path));
    }
    Ok(digits)
}

fn not_digits(path: &Path) -> Error {
    Error::data("something else than MNIST")
        .at(path.display().to_string())
        .expected("images of 784 pixels, and as many digits from 0 to 9")
        .advice("`cargo xtask data mnist` fetches it")
}

/// A file of bytes in the format of the published MNIST, packed or not: sizes, and the bytes.
fn read_idx(path: &Path) -> Result<(Vec<usize>, Vec<u8>)> {
    let place = || path.display().to_string();
    let packed = std::fs::read(path).map_err(|error| Error::no_input(path, error))?;
    let mut bytes = Vec::new();
    if packed.starts_with(&[0x1f, 0x8b]) {
        let read = GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes);
        read.map_err(|error| Error::io(place(), "read", error))?;
    } else {
        bytes = packed;
    }
    let wrong = || {
        Error::data("no array of bytes")
            .at(place())
            .expected("an IDX file, as MNIST is published in")
    };
    let dimensions = match bytes.as_slice() {
        [0, 0, 8, dimensions @ 1..=3, ..] => usize::from(*dimensions),
        _ => return Err(wrong()),
    };
    let start = 4 + 4 * dimensions;
    let head = bytes.get(4..start).ok_or_else(wrong)?;
    let size = |part: &[u8]| part.iter().fold(0_usize, |size, byte| size << 8 | usize::from(*byte));
    let sizes: Vec<usize> = head.chunks(4).map(size).collect();
    let count = sizes.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
    let content = &bytes[start..];
    if count != Some(content.len()) {
        return Err(wrong());
    }
    Ok((sizes, content.to_vec()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    #[test]
    fn both_layouts_are_found_and_what_is_missing_is_named() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::new(temporary.path());
        std::fs::create_dir(temporary.path().join("quake")).unwrap();
        std::fs::write(temporary.path().join("quake/quake.csv"), "a\n").unwrap();
        std::fs::write(temporary.path().join("chess.csv"), "a\n").unwrap();
        assert!(folder.find("quake", "quake.csv").unwrap().ends_with("quake/quake.csv"));
        assert!(folder.find("chess", "chess.csv").unwrap().ends_with("chess.csv"));
        let error = folder.find("bodyfat", "bodyfat.csv").unwrap_err();
        assert!(error.help().unwrap().contains("cargo xtask data bodyfat"), "{error}");
        let error = folder.find("wireless", "wireless.csv").unwrap_err();
        assert!(error.help().unwrap().contains("UCI Wireless"), "{error}");
        assert!(folder.find_mnist().is_err());
    }

    #[test]
    fn the_published_files_of_mnist_are_read_and_checked() {
        let temporary = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(bytes).unwrap();
            std::fs::write(temporary.path().join(name), packed.finish().unwrap()).unwrap();
        };
        for (_, [images, labels]) in MNIST {
            let mut bytes = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28];
            bytes.extend((0..2 * 784).map(|i| (i % 251) as u8));
            write(&format!("{images}.gz"), &bytes);
            write(&format!("{labels}.gz"), &[0, 0, 8, 1, 0, 0, 0, 2, 7, 3]);
        }
        let folder = Folder::new(temporary.path());
        let mnist = Mnist::read(&folder.find_mnist().unwrap()).unwrap();
        assert_eq!(mnist.train.classes, [7, 3]);
        assert_eq!(mnist.test.x[(1, 0)], f64::from(784 % 251));
        for cut in [0, 3, 9, 100] {
            let mut bytes = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28];
            bytes.extend([0; 2 * 784]);
            bytes.truncate(cut);
            write(&format!("{}.gz", MNIST[0].1[0]), &bytes);
            assert!(Mnist::read(&folder.find_mnist().unwrap()).is_err(), "{cut} bytes");
        }
    }
}
