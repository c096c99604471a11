//! Appends fields to a body.

use bytes::Bytes;

use super::Record;

/// Appends fields and remembers the first value that cannot be sent.
#[derive(Debug, Default)]
pub struct Encoder {
    buf: Vec<u8>,
    failure: Option<String>,
}

macro_rules! number {
    ($($name:ident)*) => {$(
        /// Appends a number.
        pub fn $name(&mut self, value: $name) {
            self.buf.extend_from_slice(&value.to_be_bytes());
        }
    )*};
}

impl Encoder {
    number!(u8 u16 u32 u64 i64 f64);

    /// The bytes, or why they cannot be sent.
    pub fn finish(self) -> Result<Vec<u8>, String> {
        match self.failure {
            None => Ok(self.buf),
            Some(failure) => Err(failure),
        }
    }

    /// Appends one byte, 0 or 1.
    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Appends a length of two bytes and the text.
    pub fn string(&mut self, field: &str, value: &str) {
        match check_string(field, value) {
            Ok(()) => put_string(&mut self.buf, value),
            Err(failure) => self.fail(failure),
        }
    }

    /// Appends a length of four bytes and the content.
    pub fn bytes(&mut self, field: &str, value: &Bytes) {
        if self.count_u32(field, value.len()) {
            self.buf.extend_from_slice(value);
        }
    }

    /// Appends the pairs in their order.
    pub fn map(&mut self, field: &str, pairs: &[(String, String)]) {
        if self.count_u16(field, pairs.len()) {
            for (key, value) in pairs {
                self.string(field, key);
                self.string(field, value);
            }
        }
    }

    /// Appends a list of texts.
    pub fn strings(&mut self, field: &str, list: &[String]) {
        if self.count_u16(field, list.len()) {
            for text in list {
                self.string(field, text);
            }
        }
    }

    /// Appends a presence byte, and the text if there is one.
    pub fn nullable(&mut self, field: &str, value: &Option<String>) {
        self.bool(value.is_some());
        if let Some(text) = value {
            self.string(field, text);
        }
    }

    /// Appends records with a count of two bytes.
    pub fn list_u16<R: Record>(&mut self, field: &str, list: &[R]) {
        if self.count_u16(field, list.len()) {
            self.records(list);
        }
    }

    /// Appends records with a count of four bytes.
    pub fn list_u32<R: Record>(&mut self, field: &str, list: &[R]) {
        if self.count_u32(field, list.len()) {
            self.records(list);
        }
    }

    fn records<R: Record>(&mut self, list: &[R]) {
        for record in list {
            record.encode(self);
        }
    }

    fn count_u16(&mut self, field: &str, count: usize) -> bool {
        match u16::try_from(count) {
            Ok(count) => self.u16(count),
            Err(_) => self.fail(format!("{field} has {count} entries; at most {} can be sent", u16::MAX)),
        }
        self.failure.is_none()
    }

    fn count_u32(&mut self, field: &str, count: usize) -> bool {
        match u32::try_from(count) {
            Ok(count) => self.u32(count),
            Err(_) => {
                self.fail(format!("{field} has {count} bytes or entries; at most {} can be sent", u32::MAX))
            }
        }
        self.failure.is_none()
    }

    fn fail(&mut self, failure: String) {
        self.failure.get_or_insert(failure);
    }
}

/// Says why a text cannot be sent.
pub fn check_string(field: &str, value: &str) -> Result<(), String> {
    match value.len() {
        0..=0xFFFF => Ok(()),
        long => Err(format!("{field} has {long} bytes; at most {} can be sent", u16::MAX)),
    }
}

/// Appends a text that was checked before.
pub(crate) fn put_string(buf: &mut Vec<u8>, value: &str) {
    debug_assert!(value.len() <= usize::from(u16::MAX));
    buf.extend_from_slice(&(value.len() as u16).to_be_bytes());
    buf.extend_from_slice(value.as_bytes());
}
