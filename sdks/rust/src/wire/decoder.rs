//! Reads fields of a body. Byte fields share the body's memory.

use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::fmt;

use bytes::Bytes;

use super::Record;

/// A body that does not parse: the field at fault and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyError {
    /// Such as `messages[0].queue`.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl std::error::Error for BodyError {}

/// Reads a body from its beginning.
#[derive(Debug)]
pub struct Decoder {
    data: Bytes,
    at: usize,
}

macro_rules! number {
    ($($name:ident)*) => {$(
        /// Reads a number.
        pub fn $name(&mut self, field: &str) -> Result<$name, BodyError> {
            const SIZE: usize = std::mem::size_of::<$name>();
            let bytes = self.take(field, SIZE)?;
            let mut array = [0; SIZE];
            array.copy_from_slice(bytes);
            Ok($name::from_be_bytes(array))
        }
    )*};
}

impl Decoder {
    /// Reads from these bytes.
    pub fn new(data: Bytes) -> Decoder {
        Decoder { data, at: 0 }
    }

    number!(u8 u16 u32 u64 i64 f64);

    /// Whether everything was read.
    pub fn at_end(&self) -> bool {
        self.at == self.data.len()
    }

    /// Reads one byte, 0 or 1.
    pub fn bool(&mut self, field: &str) -> Result<bool, BodyError> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(fault(field, format!("a bool is 0 or 1, not {other}"))),
        }
    }

    /// Reads a text without copying it.
    pub fn text(&mut self, field: &str) -> Result<&str, BodyError> {
        let length = usize::from(self.u16(field)?);
        std::str::from_utf8(self.take(field, length)?).map_err(|_| fault(field, "not valid UTF-8".to_owned()))
    }

    /// Reads a text.
    pub fn string(&mut self, field: &str) -> Result<String, BodyError> {
        self.text(field).map(str::to_owned)
    }

    /// Reads content; it shares the body's memory.
    pub fn bytes(&mut self, field: &str) -> Result<Bytes, BodyError> {
        let length = self.u32(field)? as usize;
        let start = self.at;
        self.take(field, length)?;
        Ok(self.data.slice(start..start + length))
    }

    /// Reads pairs in their order. Of two with one key the last value counts.
    pub fn map(&mut self, field: &str) -> Result<Vec<(String, String)>, BodyError> {
        let count = self.count_u16(field, 4)?;
        let mut pairs: Vec<(String, String)> = Vec::with_capacity(count);
        let mut places: HashMap<String, usize> = HashMap::with_capacity(count);
        for index in 0..count {
            let key = self.pair_part(field, index, "key")?;
            let value = self.pair_part(field, index, "value")?;
            match places.entry(key) {
                Entry::Occupied(known) => pairs[*known.get()].1 = value,
                Entry::Vacant(place) => {
                    pairs.push((place.key().clone(), value));
                    place.insert(pairs.len() - 1);
                }
            }
        }
        Ok(pairs)
    }

    /// Reads a key or value; the field's name is made only when it is at fault.
    pub(crate) fn pair_part(&mut self, field: &str, index: usize, part: &str) -> Result<String, BodyError> {
        self.string("").map_err(|e| BodyError { field: format!("{field}[{index}] {part}"), reason: e.reason })
    }

    /// Reads a list of texts.
    pub fn strings(&mut self, field: &str) -> Result<Vec<String>, BodyError> {
        let count = self.count_u16(field, 2)?;
        let named =
            |index: usize, e: BodyError| BodyError { field: format!("{field}[{index}]"), reason: e.reason };
        (0..count).map(|index| self.string("").map_err(|e| named(index, e))).collect()
    }

    /// Reads a text that may be absent.
    pub fn nullable(&mut self, field: &str) -> Result<Option<String>, BodyError> {
        Ok(if self.bool(field)? { Some(self.string(field)?) } else { None })
    }

    /// Reads records with a count of two bytes.
    pub fn list_u16<R: Record>(&mut self, field: &str) -> Result<Vec<R>, BodyError> {
        let count = self.count_u16(field, R::LEAST)?;
        self.records(field, count)
    }

    /// Reads records with a count of four bytes.
    pub fn list_u32<R: Record>(&mut self, field: &str) -> Result<Vec<R>, BodyError> {
        let count = self.count_u32(field, R::LEAST)?;
        self.records(field, count)
    }

    fn records<R: Record>(&mut self, field: &str, count: usize) -> Result<Vec<R>, BodyError> {
        let mut list = Vec::with_capacity(count);
        for index in 0..count {
            list.push(R::decode(self).map_err(|e| e.within(field, index))?);
        }
        Ok(list)
    }

    /// Reads a count of two bytes and checks it against the bytes that are there.
    pub fn count_u16(&mut self, field: &str, least: usize) -> Result<usize, BodyError> {
        let count = usize::from(self.u16(field)?);
        self.plausible(field, count, least)
    }

    /// Reads a count of four bytes and checks it against the bytes that are there.
    pub fn count_u32(&mut self, field: &str, least: usize) -> Result<usize, BodyError> {
        let count = self.u32(field)? as usize;
        self.plausible(field, count, least)
    }

    fn plausible(&self, field: &str, count: usize, least: usize) -> Result<usize, BodyError> {
        let left = self.data.len() - self.at;
        if count.checked_mul(least).is_none_or(|bytes| bytes > left) {
            return Err(fault(field, format!("{count} entries cannot stand in {left} bytes")));
        }
        Ok(count)
    }

    fn take(&mut self, field: &str, length: usize) -> Result<&[u8], BodyError> {
        let left = self.data.len() - self.at;
        if length > left {
            return Err(fault(field, format!("{length} bytes are needed and {left} are left")));
        }
        let start = self.at;
        self.at += length;
        Ok(&self.data[start..self.at])
    }
}

impl BodyError {
    /// The same fault, seen from the list the record stands in.
    pub(crate) fn within(self, list: &str, index: usize) -> BodyError {
        BodyError { field: format!("{list}[{index}].{}", self.field), reason: self.reason }
    }
}

fn fault(field: &str, reason: String) -> BodyError {
    BodyError { field: field.to_owned(), reason }
}
