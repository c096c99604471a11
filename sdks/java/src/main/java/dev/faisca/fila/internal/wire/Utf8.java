package dev.faisca.fila.internal.wire;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** Text as it travels: UTF-8 without surrogates and overlong forms, at most 65,535 bytes. */
public final class Utf8 {
    public static final int BYTES_MAX = 65_535;

    private Utf8() {}

    /** Checks that a text can be sent. */
    public static void check(String field, String text) {
        if (text == null) {
            throw new IllegalArgumentException(field + " is null");
        }
        length(field, text);
    }

    /** How many bytes a text has; IllegalArgumentException if it cannot be sent. */
    static int length(String field, String text) {
        int chars = text.length();
        int bytes = chars;
        for (int i = 0; i < chars; i++) {
            char c = text.charAt(i);
            if (c < 0x80) {
                continue;
            }
            if (c < 0x800) {
                bytes += 1;
            } else if (!Character.isSurrogate(c)) {
                bytes += 2;
            } else if (Character.isHighSurrogate(c) && i + 1 < chars && Character.isLowSurrogate(text.charAt(i + 1))) {
                bytes += 2; // four bytes for two chars
                i++;
            } else {
                throw new IllegalArgumentException(field + " has half a surrogate pair at index " + i);
            }
        }
        if (bytes > BYTES_MAX) {
            throw new IllegalArgumentException(field + " has " + bytes + " bytes; at most " + BYTES_MAX + " can be sent");
        }
        return bytes;
    }

    /** Bytes as text; bytes that are not UTF-8 are a fault of the field. */
    static String decode(String field, byte[] from, int at, int length) {
        for (int i = at; i < at + length; i++) {
            if (from[i] < 0) {
                return strict(field, from, at, length);
            }
        }
        return new String(from, at, length, StandardCharsets.ISO_8859_1);
    }

    /** Checks that bytes are text, without making it. */
    static void checkBytes(String field, byte[] from, int at, int length) {
        for (int i = at; i < at + length; i++) {
            if (from[i] < 0) {
                strict(field, from, at, length);
                return;
            }
        }
    }

    private static String strict(String field, byte[] from, int at, int length) {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(from, at, length)).toString();
        } catch (CharacterCodingException e) {
            throw new InvalidBodyException(field, "is not UTF-8");
        }
    }
}
