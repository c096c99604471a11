package dev.faisca.fila.support;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON for the specification's files and the conformance protocol: objects as maps, arrays as lists,
 * integers as {@link Long}, other numbers as {@link Double}.
 */
public final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Reads one document. */
    public static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.space();
        if (json.at != text.length()) {
            throw json.wrong("nothing more");
        }
        return value;
    }

    /** Reads one object. */
    @SuppressWarnings("unchecked")
    public static Map<String, Object> object(String text) {
        return (Map<String, Object>) parse(text);
    }

    /** Writes one document on one line. */
    public static String write(Object value) {
        StringBuilder to = new StringBuilder();
        write(value, to);
        return to.toString();
    }

    private Object value() {
        space();
        if (at == text.length()) {
            throw wrong("a value");
        }
        switch (text.charAt(at)) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            case 't':
                return literal("true", true);
            case 'f':
                return literal("false", false);
            case 'n':
                return literal("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> object = new LinkedHashMap<>();
        at++;
        space();
        if (take('}')) {
            return object;
        }
        do {
            space();
            String key = string();
            space();
            expect(':');
            object.put(key, value());
            space();
        } while (take(','));
        expect('}');
        return object;
    }

    private List<Object> array() {
        List<Object> array = new ArrayList<>();
        at++;
        space();
        if (take(']')) {
            return array;
        }
        do {
            array.add(value());
            space();
        } while (take(','));
        expect(']');
        return array;
    }

    private String string() {
        expect('"');
        StringBuilder string = new StringBuilder();
        while (at < text.length()) {
            char c = text.charAt(at++);
            if (c == '"') {
                return string.toString();
            }
            if (c != '\\') {
                string.append(c);
                continue;
            }
            char escape = text.charAt(at++);
            switch (escape) {
                case 'b' -> string.append('\b');
                case 'f' -> string.append('\f');
                case 'n' -> string.append('\n');
                case 'r' -> string.append('\r');
                case 't' -> string.append('\t');
                case 'u' -> {
                    string.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                    at += 4;
                }
                default -> string.append(escape);
            }
        }
        throw wrong("the end of a string");
    }

    private Object number() {
        int start = at;
        while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String number = text.substring(start, at);
        if (number.isEmpty()) {
            throw wrong("a value");
        }
        if (number.chars().allMatch(c -> c == '-' || (c >= '0' && c <= '9'))) {
            return Long.parseLong(number);
        }
        return Double.parseDouble(number);
    }

    private Object literal(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong(word);
        }
        at += word.length();
        return value;
    }

    private void space() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
    }

    private boolean take(char wanted) {
        if (at < text.length() && text.charAt(at) == wanted) {
            at++;
            return true;
        }
        return false;
    }

    private void expect(char wanted) {
        if (!take(wanted)) {
            throw wrong("'" + wanted + "'");
        }
    }

    private IllegalArgumentException wrong(String wanted) {
        return new IllegalArgumentException("JSON: expected " + wanted + " at character " + at);
    }

    private static void write(Object value, StringBuilder to) {
        if (value instanceof String string) {
            quote(string, to);
        } else if (value instanceof Map<?, ?> map) {
            char before = '{';
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                to.append(before);
                quote((String) entry.getKey(), to);
                to.append(':');
                write(entry.getValue(), to);
                before = ',';
            }
            to.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable<?> items) {
            to.append('[');
            String between = "";
            for (Object item : items) {
                to.append(between);
                write(item, to);
                between = ",";
            }
            to.append(']');
        } else {
            to.append(value);
        }
    }

    private static void quote(String string, StringBuilder to) {
        to.append('"');
        for (int i = 0; i < string.length(); i++) {
            char c = string.charAt(i);
            if (c == '"' || c == '\\') {
                to.append('\\').append(c);
            } else if (c < ' ' || Character.isSurrogate(c)) {
                to.append(String.format("\\u%04x", (int) c));
            } else {
                to.append(c);
            }
        }
        to.append('"');
    }
}
