//! Base64, standard alphabet with padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut block = [0; 3];
        block[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, block[0], block[1], block[2]]);
        for place in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63];
            out.push(if place <= group.len() { digit as char } else { '=' });
        }
    }
    out
}

pub fn from_base64(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for c in text.bytes().filter(|c| *c != b'=') {
        let digit = ALPHABET.iter().position(|known| *known == c);
        bits = bits << 6 | digit.ok_or_else(|| format!("{:?} is no base64", c as char))? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Ok(out)
}
