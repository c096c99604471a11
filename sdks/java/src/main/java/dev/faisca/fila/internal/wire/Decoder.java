package dev.faisca.fila.internal.wire;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Bytes to fields. Every length and count is checked against the bytes that are there before memory is
 * reserved for it; what does not fit is an {@link InvalidBodyException} that names the field.
 */
public final class Decoder {
    private final byte[] body;
    private int at;

    public Decoder(byte[] body) {
        this(body, 0);
    }

    public Decoder(byte[] body, int from) {
        this.body = body;
        this.at = from;
    }

    public boolean atEnd() {
        return at == body.length;
    }

    public int position() {
        return at;
    }

    public int u8(String field) {
        need(field, 1);
        return body[at++] & 0xFF;
    }

    public int u16(String field) {
        need(field, 2);
        return (body[at++] & 0xFF) << 8 | body[at++] & 0xFF;
    }

    public long u32(String field) {
        need(field, 4);
        return int32() & 0xFFFF_FFFFL;
    }

    public long u64(String field) {
        need(field, 8);
        long high = int32();
        return high << 32 | int32() & 0xFFFF_FFFFL;
    }

    public long i64(String field) {
        return u64(field);
    }

    public double f64(String field) {
        return Double.longBitsToDouble(u64(field));
    }

    public boolean bool(String field) {
        int value = u8(field);
        if (value > 1) {
            throw new InvalidBodyException(field, value + " is neither 0 nor 1");
        }
        return value == 1;
    }

    public String string(String field) {
        int length = u16(field);
        need(field, length);
        String text = Utf8.decode(field, body, at, length);
        at += length;
        return text;
    }

    public String optionalString(String field) {
        return bool(field) ? string(field) : null;
    }

    public byte[] bytes(String field) {
        int length = bytesLength(field);
        at += length;
        return Arrays.copyOfRange(body, at - length, at);
    }

    /** The length of a bytes field whose content is taken from the body, see {@link #skip}. */
    public int bytesLength(String field) {
        long length = u32(field);
        if (length > body.length - at) {
            throw new InvalidBodyException(field, length + " bytes are claimed and " + (body.length - at) + " are there");
        }
        return (int) length;
    }

    public void skip(String field, int length) {
        need(field, length);
        at += length;
    }

    /** Passes over a string and returns where its bytes begin; they end at {@link #position}. */
    public int skipString(String field) {
        int length = u16(field);
        need(field, length);
        Utf8.checkBytes(field, body, at, length); // read later, when nobody can refuse it any more
        at += length;
        return at - length;
    }

    public Map<String, String> map(String field) {
        int count = count(field, u16(field), 4);
        if (count == 0) {
            return Map.of();
        }
        Map<String, String> map = new LinkedHashMap<>(count * 2);
        for (int i = 0; i < count; i++) {
            String key = string(field + "[" + i + "] key");
            map.put(key, string(field + "[" + i + "] value"));
        }
        return map;
    }

    public List<String> strings(String field) {
        int count = count(field, u16(field), 2);
        List<String> strings = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            strings.add(string(field));
        }
        return strings;
    }

    public <T> List<T> list16(String field, int smallest, Function<Decoder, T> decode) {
        return list(field, u16(field), smallest, decode);
    }

    public <T> List<T> list32(String field, int smallest, Function<Decoder, T> decode) {
        return list(field, u32(field), smallest, decode);
    }

    /** A count of records, each of which takes at least so many bytes. */
    public int count(String field, long count, int smallest) {
        if (count * smallest > body.length - at) {
            throw new InvalidBodyException(
                    field, count + " entries are claimed and " + (body.length - at) + " bytes are there");
        }
        return (int) count;
    }

    private <T> List<T> list(String field, long claimed, int smallest, Function<Decoder, T> decode) {
        int count = count(field, claimed, smallest);
        List<T> list = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            try {
                list.add(decode.apply(this));
            } catch (InvalidBodyException e) {
                throw e.inside(field + "[" + i + "]");
            }
        }
        return list;
    }

    private int int32() {
        return body[at++] << 24 | (body[at++] & 0xFF) << 16 | (body[at++] & 0xFF) << 8 | body[at++] & 0xFF;
    }

    private void need(String field, int bytes) {
        if (bytes > body.length - at) {
            throw new InvalidBodyException(field, "the body ends before it");
        }
    }
}
