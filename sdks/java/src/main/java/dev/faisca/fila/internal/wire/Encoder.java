package dev.faisca.fila.internal.wire;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Fields to bytes, into one growing array. */
public final class Encoder {
    private byte[] bytes;
    private int size;

    public Encoder(int capacity) {
        bytes = new byte[capacity];
    }

    public int size() {
        return size;
    }

    public byte[] toBytes() {
        return Arrays.copyOf(bytes, size);
    }

    /** The array itself when it is used well, else a copy: for bytes that are kept. */
    public byte[] compact() {
        return size < bytes.length - bytes.length / 4 ? toBytes() : bytes;
    }

    public void u8(String field, int value) {
        range(field, value, 0xFF);
        room(1);
        bytes[size++] = (byte) value;
    }

    public void u16(String field, int value) {
        range(field, value, 0xFFFF);
        room(2);
        bytes[size++] = (byte) (value >> 8);
        bytes[size++] = (byte) value;
    }

    public void u32(String field, long value) {
        range(field, value, 0xFFFF_FFFFL);
        int32((int) value);
    }

    /** All 64 bits, also those of a negative long. */
    public void u64(String field, long value) {
        int32((int) (value >>> 32));
        int32((int) value);
    }

    public void i64(String field, long value) {
        u64(field, value);
    }

    public void f64(String field, double value) {
        u64(field, Double.doubleToRawLongBits(value));
    }

    public void bool(String field, boolean value) {
        u8(field, value ? 1 : 0);
    }

    public void string(String field, String value) {
        if (value == null) {
            throw new IllegalArgumentException(field + " is null");
        }
        int length = Utf8.length(field, value);
        u16(field, length);
        room(length);
        if (length == value.length()) {
            for (int i = 0; i < length; i++) {
                bytes[size + i] = (byte) value.charAt(i);
            }
        } else {
            System.arraycopy(value.getBytes(StandardCharsets.UTF_8), 0, bytes, size, length);
        }
        size += length;
    }

    public void optionalString(String field, String value) {
        bool(field, value != null);
        if (value != null) {
            string(field, value);
        }
    }

    public void bytes(String field, byte[] value) {
        bytes(value, 0, value.length);
    }

    public void bytes(byte[] value, int at, int length) {
        int32(length);
        raw(value, at, length);
    }

    public void raw(byte[] value, int at, int length) {
        room(length);
        System.arraycopy(value, at, bytes, size, length);
        size += length;
    }

    public void map(String field, Map<String, String> value) {
        u16(field, value.size());
        for (Map.Entry<String, String> pair : value.entrySet()) {
            string(field, pair.getKey());
            string(field, pair.getValue());
        }
    }

    public void strings(String field, List<String> value) {
        u16(field, value.size());
        for (String one : value) {
            string(field, one);
        }
    }

    public void list16(String field, List<? extends Part> value) {
        u16(field, value.size());
        for (Part one : value) {
            one.encode(this);
        }
    }

    public void list32(String field, List<? extends Part> value) {
        int32(value.size());
        for (Part one : value) {
            one.encode(this);
        }
    }

    private void int32(int value) {
        room(4);
        bytes[size++] = (byte) (value >> 24);
        bytes[size++] = (byte) (value >> 16);
        bytes[size++] = (byte) (value >> 8);
        bytes[size++] = (byte) value;
    }

    private void room(int wanted) {
        int needed = size + wanted;
        if (needed < 0) {
            throw new IllegalArgumentException("a body of more than 2 GiB cannot be sent");
        }
        if (needed > bytes.length) {
            bytes = Arrays.copyOf(bytes, (int) Math.max(needed, Math.min(Integer.MAX_VALUE - 8, bytes.length * 2L)));
        }
    }

    private static void range(String field, long value, long most) {
        if (value < 0 || value > most) {
            throw new IllegalArgumentException(field + " must be from 0 to " + most + ", not " + value);
        }
    }
}
