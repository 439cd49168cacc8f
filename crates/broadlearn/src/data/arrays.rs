//! The arrays of a NumPy archive as they are, of any number of dimensions: for what is no table.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::builder::Value;
use super::input::Input;
use super::npy::{Header, Part, Scalar, decode, shape};
use super::npz::{array_name, place, zip};
use super::reader::list;
use crate::error::{Error, Result};

/// How much is read at once, so that memory grows with what is there, not with what is said.
const CHUNK: usize = 1 << 20;

/// An archive of arrays as `numpy.savez` writes it.
///
/// ```no_run
/// use broadlearn::data::Arrays;
/// let archive = Arrays::open("trials.npz".as_ref())?;
/// for array in archive.list() {
///     println!("{} {:?}", array.name, array.shape);
/// }
/// let (shape, values) = archive.numbers("X")?;
/// # Ok::<(), broadlearn::Error>(())
/// ```
#[derive(Debug)]
pub struct Arrays {
    name: String,
    file: Arc<Mutex<File>>,
    members: Vec<zip::Member>,
    arrays: Vec<ArrayInfo>,
}

/// What an array is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayInfo {
    /// Its name.
    pub name: String,
    /// The sizes of its dimensions; none for a single value.
    pub shape: Vec<u64>,
}

impl Arrays {
    /// Reads the directory and the headers of all arrays.
    pub fn open(path: &Path) -> Result<Self> {
        let input = Input::open(path, false)?;
        let name = input.name.clone();
        let (mut file, length) = input.file()?;
        let members = zip::members(&name, &mut file, length)?;
        let members: Vec<_> =
            members.into_iter().filter(|member| array_name(member).is_some()).collect();
        let mut archive =
            Self { name, file: Arc::new(Mutex::new(file)), members, arrays: Vec::new() };
        for member in &archive.members {
            let array = array_name(member).unwrap_or_default();
            let Part::Stream { mut stream, .. } = member.part(&archive.file) else { continue };
            let header = Header::read(&place(&archive.name, array), &mut stream)?;
            archive.arrays.push(ArrayInfo { name: array.to_owned(), shape: header.shape });
        }
        Ok(archive)
    }

    /// The name of the archive, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All arrays, in the order of the archive.
    pub fn list(&self) -> &[ArrayInfo] {
        &self.arrays
    }

    /// The shape and the numbers of an array, the last dimension fastest.
    ///
    /// # Errors
    /// If there is no such array, or it holds no numbers.
    pub fn numbers(&self, name: &str) -> Result<(Vec<u64>, Vec<f64>)> {
        let mut numbers = Vec::new();
        let (header, place) = self.read(name, |value| {
            numbers.push(match value {
                Value::Single(value) => f64::from(value),
                Value::Float(value) => value,
                Value::Signed(value) => value as f64,
                Value::Unsigned(value) => value as f64,
                Value::Boolean(value) => f64::from(u8::from(value)),
                Value::Cell(_) | Value::Missing => return None,
            });
            Some(())
        })?;
        match header {
            Some(header) => Ok(last_fastest(header, numbers)),
            None => Err(Error::data("texts").at(place).expected("numbers")),
        }
    }

    /// The shape of an array and its values as texts: whole numbers without a point.
    ///
    /// # Errors
    /// If there is no such array, or a text is none.
    pub fn texts(&self, name: &str) -> Result<(Vec<u64>, Vec<String>)> {
        let mut texts = Vec::new();
        let (header, place) = self.read(name, |value| {
            texts.push(match value {
                Value::Single(value) => value.to_string(),
                Value::Float(value) => value.to_string(),
                Value::Signed(value) => value.to_string(),
                Value::Unsigned(value) => value.to_string(),
                Value::Boolean(value) => value.to_string(),
                Value::Cell(bytes) => std::str::from_utf8(bytes).ok()?.to_owned(),
                Value::Missing => return None,
            });
            Some(())
        })?;
        match header {
            Some(header) => Ok(last_fastest(header, texts)),
            None => Err(Error::data("bytes that are no text").at(place).expected("UTF-8")),
        }
    }

    /// Hands over value after value; without a header if one was refused.
    fn read(
        &self,
        name: &str,
        mut take: impl FnMut(Value<'_>) -> Option<()>,
    ) -> Result<(Option<Header>, String)> {
        let place = place(&self.name, name);
        let Some(at) = self.arrays.iter().position(|array| array.name == name) else {
            let names: Vec<&str> = self.arrays.iter().map(|array| array.name.as_str()).collect();
            return Err(Error::data(format!("no array `{name}`"))
                .at(&self.name)
                .expected(format!("one of {}", list(&names))));
        };
        let Part::Stream { mut stream, .. } = self.members[at].part(&self.file) else {
            return Ok((None, place));
        };
        let header = Header::read(&place, &mut stream)?;
        let scalar = header.scalar(&place)?;
        let sizes = header.shape.iter();
        let count = sizes.copied().try_fold(1_u64, u64::checked_mul);
        let Some(mut left) = count.and_then(|count| count.checked_mul(scalar.size as u64)) else {
            return Err(Error::data(format!("the shape {}", shape(&header.shape)))
                .at(place)
                .expected("a smaller one"));
        };
        let mut buffer = Vec::new();
        while left > 0 {
            let piece = (CHUNK - CHUNK % scalar.size).max(scalar.size);
            let piece = usize::try_from(left).unwrap_or(usize::MAX).min(piece);
            buffer.resize(piece, 0);
            stream.read_exact(&mut buffer).map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => Error::data("the end of the array within its values")
                    .at(&place)
                    .expected("as many as its header says")
                    .advice("the file was cut short: copy or save it again"),
                _ => Error::io(&place, "read", error),
            })?;
            left -= piece as u64;
            if !hand_over(&buffer, scalar, &mut take) {
                return Ok((None, place));
            }
        }
        Ok((Some(header), place))
    }
}

fn hand_over(
    buffer: &[u8],
    scalar: Scalar,
    take: &mut impl FnMut(Value<'_>) -> Option<()>,
) -> bool {
    let mut text = String::new();
    buffer
        .chunks_exact(scalar.size)
        .all(|cell| decode(cell, scalar, &mut text).and_then(&mut *take).is_some())
}

/// The shape, and the values in the order in which the last dimension is fastest.
fn last_fastest<T: Clone>(header: Header, values: Vec<T>) -> (Vec<u64>, Vec<T>) {
    if !header.fortran || header.shape.len() < 2 {
        return (header.shape, values);
    }
    let mut strides = Vec::new();
    let mut stride = 1;
    for size in &header.shape {
        strides.push(stride);
        stride *= *size as usize;
    }
    let mut at = vec![0; strides.len()];
    let mut ordered = Vec::with_capacity(values.len());
    for _ in 0..values.len() {
        let from: usize = at.iter().zip(&strides).map(|(index, stride)| index * stride).sum();
        ordered.push(values[from].clone());
        for (index, size) in at.iter_mut().zip(&header.shape).rev() {
            *index += 1;
            if *index < *size as usize {
                break;
            }
            *index = 0;
        }
    }
    (header.shape, ordered)
}
