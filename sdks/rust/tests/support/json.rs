//! Bodies as JSON, in the form `spec/vectors/README.md` describes. Used by the tests over the golden
//! vectors and by the conformance adapter.

use bytes::Bytes;
use fila_client::wire::{self, *};
use serde_json::{json, Map, Value};

/// A value's form in the vectors.
pub trait Json: Sized {
    fn fill(value: &Value) -> Result<Self, String>;
    fn dump(&self) -> Value;
}

/// How one operation's body is written and read.
#[derive(Clone, Copy)]
pub struct Form {
    /// The body's bytes for a JSON body.
    pub encode: fn(&Value) -> Result<Vec<u8>, String>,
    /// The JSON body for bytes.
    pub decode: fn(Bytes) -> Result<Value, BodyError>,
}

fn form<B: Body + Json>() -> Form {
    Form {
        encode: |value| wire::encode(&B::fill(value)?),
        decode: |body| wire::decode::<B>(body).map(|body| body.dump()),
    }
}

macro_rules! record {
    ($name:ident { $($field:ident),* }) => {
        impl Json for $name {
            #[allow(unused_variables)]
            fn fill(value: &Value) -> Result<Self, String> {
                Ok($name { $($field: Json::fill(value.get(stringify!($field)).unwrap_or(&Value::Null))?),* })
            }

            #[allow(unused_mut)]
            fn dump(&self) -> Value {
                let mut fields = Map::new();
                $(
                    let value = self.$field.dump();
                    let known = value != Value::Null || OPTIONAL_NULLS.contains(&stringify!($field));
                    if known {
                        fields.insert(stringify!($field).to_owned(), value);
                    }
                )*
                Value::Object(fields)
            }
        }
    };
}

/// Fields whose absence is written as null; absent trailing fields are left out.
const OPTIONAL_NULLS: [&str; 4] = ["api_key", "fairness_key", "on_enqueue", "on_failure"];

include!("forms.rs");

macro_rules! small {
    ($($name:ident)*) => {$(
        impl Json for $name {
            fn fill(value: &Value) -> Result<Self, String> {
                let number = value.as_u64().and_then(|n| $name::try_from(n).ok());
                number.ok_or_else(|| format!("{value} is no {}", stringify!($name)))
            }

            fn dump(&self) -> Value {
                json!(self)
            }
        }
    )*};
}

macro_rules! large {
    ($($name:ident)*) => {$(
        impl Json for $name {
            fn fill(value: &Value) -> Result<Self, String> {
                let number = value.as_str().and_then(|text| text.parse().ok());
                number.ok_or_else(|| format!("{value} is no {}", stringify!($name)))
            }

            fn dump(&self) -> Value {
                Value::String(self.to_string())
            }
        }
    )*};
}

small!(u8 u16 u32);
large!(u64 i64);

impl Json for f64 {
    fn fill(value: &Value) -> Result<Self, String> {
        value.as_f64().ok_or_else(|| format!("{value} is no f64"))
    }

    fn dump(&self) -> Value {
        json!(self)
    }
}

impl Json for bool {
    fn fill(value: &Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| format!("{value} is no bool"))
    }

    fn dump(&self) -> Value {
        Value::Bool(*self)
    }
}

impl Json for String {
    fn fill(value: &Value) -> Result<Self, String> {
        if let Some((unit, count)) = repeated(value) {
            return Ok(unit.repeat(count));
        }
        value.as_str().map(str::to_owned).ok_or_else(|| format!("{value} is no string"))
    }

    fn dump(&self) -> Value {
        Value::String(self.clone())
    }
}

impl Json for Bytes {
    fn fill(value: &Value) -> Result<Self, String> {
        bytes_of(value).map(Bytes::from)
    }

    fn dump(&self) -> Value {
        Value::String(to_hex(self))
    }
}

impl Json for (String, String) {
    fn fill(value: &Value) -> Result<Self, String> {
        Ok((String::fill(&value[0])?, String::fill(&value[1])?))
    }

    fn dump(&self) -> Value {
        json!([self.0, self.1])
    }
}

impl<T: Json> Json for Vec<T> {
    fn fill(value: &Value) -> Result<Self, String> {
        value.as_array().ok_or_else(|| format!("{value} is no list"))?.iter().map(T::fill).collect()
    }

    fn dump(&self) -> Value {
        self.iter().map(T::dump).collect()
    }
}

impl<T: Json> Json for Option<T> {
    fn fill(value: &Value) -> Result<Self, String> {
        if value.is_null() {
            Ok(None)
        } else {
            T::fill(value).map(Some)
        }
    }

    fn dump(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::dump)
    }
}

fn repeated(value: &Value) -> Option<(&str, usize)> {
    Some((value.get("repeat")?.as_str()?, value.get("count")?.as_u64()? as usize))
}

/// Bytes: hex, a repeated piece, or a list of pieces.
pub fn bytes_of(value: &Value) -> Result<Vec<u8>, String> {
    match value {
        Value::String(hex) => from_hex(hex),
        Value::Array(pieces) => Ok(pieces.iter().map(bytes_of).collect::<Result<Vec<_>, _>>()?.concat()),
        _ => match repeated(value) {
            Some((unit, count)) => Ok(from_hex(unit)?.repeat(count)),
            None => Err(format!("{value} are no bytes")),
        },
    }
}

pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|b| [DIGITS[usize::from(b >> 4)] as char, DIGITS[usize::from(b & 15)] as char])
        .collect()
}

pub fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |c: u8| (c as char).to_digit(16).ok_or_else(|| format!("{:?} is no hex digit", c as char));
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Ok((digit(*high)? * 16 + digit(*low)?) as u8),
            _ => Err("half a byte at the end".to_owned()),
        })
        .collect()
}
