//! The container of a model file: safetensors with a checksum over everything.
//!
//! Written here and not by the crate of that name for two reasons: its metadata come out in the
//! order of a hash table, so that the same model would not give the same bytes, and it wants the
//! whole file in memory. The format itself is a length, a JSON object and the numbers; see
//! `docs/model-format.md`.

use crate::error::{Error, Result};
use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Longer headers than this are refused, as all readers of safetensors do.
const MAX_HEADER: u64 = 100_000_000;
/// What stands before the checksum in the header, and nowhere else: inside of the values of the
/// metadata every quote is escaped.
const CHECKSUM_KEY: &[u8] = b"\"checksum\":\"";
const DIGITS: usize = 64;
/// Types of numbers, as safetensors names them.
const FLOATS: &str = "F64";
const INTEGERS: &str = "U64";

/// Numbers to be written, in row-major order: 64-bit floats, or 64-bit integers without sign.
pub(super) enum Tensor<'a> {
    Integers(&'a [u64]),
    Vector(&'a [f64]),
    Matrix(MatRef<'a, f64>),
    /// The lower triangle of a square matrix, row by row, as one vector.
    Lower(MatRef<'a, f64>),
}

impl Tensor<'_> {
    fn shape(&self) -> Vec<u64> {
        match self {
            Self::Integers(values) => vec![values.len() as u64],
            Self::Vector(values) => vec![values.len() as u64],
            Self::Matrix(matrix) => vec![matrix.nrows() as u64, matrix.ncols() as u64],
            Self::Lower(matrix) => {
                let n = matrix.nrows() as u64;
                vec![n * (n + 1) / 2]
            }
        }
    }

    fn kind(&self) -> &'static str {
        if matches!(self, Self::Integers(_)) { INTEGERS } else { FLOATS }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut row = Vec::new();
        let mut flush = |values: &mut dyn Iterator<Item = f64>| {
            row.clear();
            values.for_each(|value| row.extend(value.to_le_bytes()));
            out.write_all(&row)
        };
        match self {
            Self::Integers(values) => {
                values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))
            }
            Self::Vector(values) => flush(&mut values.iter().copied()),
            Self::Matrix(matrix) => (0..matrix.nrows())
                .try_for_each(|i| flush(&mut (0..matrix.ncols()).map(|j| matrix[(i, j)]))),
            Self::Lower(matrix) => {
                (0..matrix.nrows()).try_for_each(|i| flush(&mut (0..=i).map(|j| matrix[(i, j)])))
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TensorInfo {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(rename = "__metadata__")]
    metadata: BTreeMap<String, String>,
    #[serde(flatten)]
    tensors: BTreeMap<String, TensorInfo>,
}

/// Writes a container; the checksum goes into the metadata under `checksum`.
pub(super) fn write(
    out: &mut (impl Write + Seek),
    mut metadata: BTreeMap<String, String>,
    tensors: &[(String, Tensor<'_>)],
) -> io::Result<()> {
    metadata.insert("checksum".into(), "0".repeat(DIGITS));
    let mut infos = BTreeMap::new();
    let mut offset = 0;
    for (name, tensor) in tensors {
        let shape = tensor.shape();
        let end = offset + 8 * shape.iter().product::<u64>();
        let dtype = tensor.kind().into();
        let info = TensorInfo { dtype, shape, data_offsets: [offset, end] };
        infos.insert(name.clone(), info);
        offset = end;
    }
    let mut header = serde_json::to_vec(&Header { metadata, tensors: infos })?;
    header.resize(header.len().next_multiple_of(8), b' ');
    let place = find_checksum(&header).ok_or(io::ErrorKind::InvalidData)?;

    let mut hashing = Hashing { out: &mut *out, digest: Sha256::new() };
    hashing.write_all(&(header.len() as u64).to_le_bytes())?;
    hashing.write_all(&header)?;
    for (_, tensor) in tensors {
        tensor.write(&mut hashing)?;
    }
    let digest = hex(hashing.digest);
    let end = out.stream_position()?;
    out.seek(SeekFrom::Start(8 + place as u64))?;
    out.write_all(digest.as_bytes())?;
    out.seek(SeekFrom::Start(end))?;
    out.flush()
}

struct Hashing<W> {
    out: W,
    digest: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.digest.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn find_checksum(header: &[u8]) -> Option<usize> {
    let key = header.windows(CHECKSUM_KEY.len()).position(|window| window == CHECKSUM_KEY)?;
    let start = key + CHECKSUM_KEY.len();
    (start + DIGITS <= header.len()).then_some(start)
}

fn hex(digest: Sha256) -> String {
    use std::fmt::Write as _;
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What a container holds.
pub(super) struct Contents {
    pub(super) metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, Stored>,
}

/// A tensor as it came: its type, its shape and its 64-bit words.
struct Stored {
    kind: String,
    shape: Vec<u64>,
    words: Vec<u64>,
}

/// Reads a container of `length` bytes and checks all of it. No more memory is taken than the
/// length allows.
pub(super) fn read(input: &mut impl Read, length: u64) -> Result<Contents> {
    let truncated = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::model("the end of the file")
            .expected("more bytes")
            .advice("the file was cut off: copy it again, or fit the model anew"),
        _ => Error::io("model", "read", error),
    };
    let mut size = [0_u8; 8];
    input.read_exact(&mut size).map_err(truncated)?;
    let header_length = u64::from_le_bytes(size);
    if !(2..=MAX_HEADER).contains(&header_length) || header_length > length.saturating_sub(8) {
        return Err(Error::model("a file that does not begin as a model does")
            .expected("a broadlearn model")
            .advice("check the name, and the order of MODEL and DATA; if it was a model, it was cut off or damaged"));
    }
    let mut header_bytes = vec![0; header_length as usize];
    input.read_exact(&mut header_bytes).map_err(truncated)?;
    let header: Header = serde_json::from_slice(&header_bytes).map_err(|error| {
        Error::model(format!("a header that cannot be read ({error})"))
            .expected("a broadlearn model")
            .advice("check the file's name; if it was a model, it was damaged")
    })?;

    let data_length = length - 8 - header_length;
    let order = check_layout(&header.tensors, data_length)?;

    let expected = header.metadata.get("checksum").filter(|text| text.len() == DIGITS).cloned();
    let place = find_checksum(&header_bytes);
    let (Some(expected), Some(place)) = (expected, place) else {
        return Err(Error::model("no checksum").expected("a broadlearn model"));
    };
    header_bytes[place..place + DIGITS].fill(b'0');
    let mut digest = Sha256::new();
    digest.update(size);
    digest.update(&header_bytes);

    let mut tensors = BTreeMap::new();
    let mut chunk = vec![0_u8; 1 << 16];
    for (name, info) in order {
        let mut left = (info.data_offsets[1] - info.data_offsets[0]) as usize;
        let mut words = Vec::with_capacity(left / 8);
        while left > 0 {
            let part = &mut chunk[..left.min(1 << 16)];
            input.read_exact(part).map_err(truncated)?;
            digest.update(&*part);
            words.extend(part.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
            left -= part.len();
        }
        let (kind, shape) = (info.dtype.clone(), info.shape.clone());
        tensors.insert(name.clone(), Stored { kind, shape, words });
    }
    if input.read(&mut chunk[..1]).map_err(truncated)? != 0 {
        return Err(Error::model("further bytes behind the last number").expected("the end"));
    }
    if hex(digest) != expected {
        return Err(Error::model("a checksum that does not match the contents")
            .expected("an undamaged model")
            .advice("the file was changed or damaged: copy it again, or fit the model anew"));
    }
    Ok(Contents { metadata: header.metadata, tensors })
}

/// The tensors in the order of their data, which must fill the file without gap or overlap.
fn check_layout(
    tensors: &BTreeMap<String, TensorInfo>,
    data_length: u64,
) -> Result<Vec<(&String, &TensorInfo)>> {
    let mut order: Vec<_> = tensors.iter().collect();
    order.sort_by_key(|(_, info)| info.data_offsets);
    let mut end = 0;
    for (name, info) in &order {
        let elements = info.shape.iter().try_fold(1_u64, |product, &n| product.checked_mul(n));
        let bytes = elements.and_then(|elements| elements.checked_mul(8));
        let [from, to] = info.data_offsets;
        if ![FLOATS, INTEGERS].contains(&info.dtype.as_str())
            || from != end
            || to < from
            || bytes != Some(to - from)
        {
            return Err(Error::model(format!(
                "type {}, shape {:?}, bytes {from} to {to}",
                info.dtype, info.shape
            ))
            .at(format!("tensor `{name}`"))
            .expected(format!("64-bit numbers from byte {end} that fill their shape")));
        }
        end = to;
    }
    if end != data_length {
        return Err(Error::model(format!("{data_length} bytes of numbers"))
            .expected(format!("{end}, as the header says"))
            .advice("the file was cut off or damaged: copy it again, or fit the model anew"));
    }
    Ok(order)
}

impl Contents {
    /// A vector of this length.
    pub(super) fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f64>> {
        self.take(name, &[length as u64])
    }

    /// Integers, as many as there are.
    pub(super) fn integers(&mut self, name: &str) -> Result<Vec<u64>> {
        let length = self.tensors.get(name).map_or(0, |stored| stored.words.len());
        self.take_words(name, INTEGERS, &[length as u64])
    }

    /// A matrix of this shape.
    pub(super) fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Mat<f64>> {
        let values = self.take(name, &[rows as u64, columns as u64])?;
        Ok(MatRef::from_row_major_slice(&values, rows, columns).to_owned())
    }

    /// A square matrix of which the lower triangle was written; the rest is 0.
    pub(super) fn lower(&mut self, name: &str, n: usize) -> Result<Mat<f64>> {
        let length = n as u64 * (n as u64 + 1) / 2;
        let values = self.take(name, &[length])?;
        let mut matrix = Mat::zeros(n, n);
        let mut rest = values.as_slice();
        for i in 0..n {
            let (row, below) = rest.split_at(i + 1);
            row.iter().enumerate().for_each(|(j, &value)| matrix[(i, j)] = value);
            rest = below;
        }
        Ok(matrix)
    }

    /// The number of columns of a matrix that may have any.
    pub(super) fn columns(&self, name: &str) -> Option<usize> {
        match self.tensors.get(name)?.shape.as_slice() {
            [_, columns] => usize::try_from(*columns).ok(),
            _ => None,
        }
    }

    /// An error if anything was not taken.
    pub(super) fn finish(self) -> Result<()> {
        match self.tensors.keys().next() {
            None => Ok(()),
            Some(name) => Err(Error::model(format!("a tensor `{name}`"))
                .expected("only the tensors that the header calls for")),
        }
    }

    fn take(&mut self, name: &str, shape: &[u64]) -> Result<Vec<f64>> {
        let words = self.take_words(name, FLOATS, shape)?;
        let values: Vec<f64> = words.into_iter().map(f64::from_bits).collect();
        match values.iter().find(|value| !value.is_finite()) {
            None => Ok(values),
            Some(value) => Err(Error::model(format!("{value}"))
                .at(format!("tensor `{name}`"))
                .expected("finite numbers")),
        }
    }

    fn take_words(&mut self, name: &str, kind: &str, shape: &[u64]) -> Result<Vec<u64>> {
        let place = format!("tensor `{name}`");
        let expected = format!("type {kind}, shape {shape:?}");
        match self.tensors.remove(name) {
            None => Err(Error::model("nothing").at(place).expected(expected)),
            Some(found) if found.kind != kind || found.shape != shape => {
                Err(Error::model(format!("type {}, shape {:?}", found.kind, found.shape))
                    .at(place)
                    .expected(expected))
            }
            Some(found) => Ok(found.words),
        }
    }
}
