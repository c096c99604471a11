package dev.faisca.fila.support;

import dev.faisca.fila.internal.wire.Bodies;
import dev.faisca.fila.internal.wire.Part;
import java.io.ByteArrayOutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The golden vectors' values as records, and back. */
public final class Vectors {
    private Vectors() {}

    /** Bytes: hex, or a list of pieces with repetitions. */
    public static byte[] bytes(Object value) {
        if (value instanceof String hex) {
            return HexFormat.of().parseHex(hex);
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        if (value instanceof Map<?, ?> repeated) {
            byte[] piece = bytes(repeated.get("repeat"));
            for (long i = 0; i < (Long) repeated.get("count"); i++) {
                out.writeBytes(piece);
            }
        } else {
            ((List<?>) value).forEach(piece -> out.writeBytes(bytes(piece)));
        }
        return out.toByteArray();
    }

    /** A body by its operation's name. */
    public static Part body(String operation, Map<?, ?> fields) {
        try {
            return (Part) record(Class.forName(Bodies.class.getName() + "$" + operation), fields);
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException("cannot make a body of " + operation, e);
        }
    }

    /** A record as the vectors write it; absent fields are null. */
    public static Map<String, Object> dump(Object record) {
        Map<String, Object> fields = new LinkedHashMap<>();
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            try {
                Object value = component.getAccessor().invoke(record);
                fields.put(
                        snake(component.getName()),
                        value == null ? null : dumpValue(value, component.getName(), record));
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        }
        return fields;
    }

    private static Object record(Class<?> type, Map<?, ?> fields) throws ReflectiveOperationException {
        RecordComponent[] components = type.getRecordComponents();
        Class<?>[] types = new Class<?>[components.length];
        Object[] values = new Object[components.length];
        for (int i = 0; i < components.length; i++) {
            types[i] = components[i].getType();
            values[i] = value(components[i].getGenericType(), types[i], fields.get(snake(components[i].getName())));
        }
        Constructor<?> constructor = type.getDeclaredConstructor(types);
        return constructor.newInstance(values);
    }

    private static Object value(Type generic, Class<?> type, Object given) throws ReflectiveOperationException {
        if (type == byte[].class) {
            return bytes(given);
        }
        if (type == boolean.class) {
            return given;
        }
        if (type == int.class) {
            return ((Long) given).intValue();
        }
        if (type == long.class || type == Long.class) {
            if (given instanceof String text) {
                return text.startsWith("-") ? Long.parseLong(text) : Long.parseUnsignedLong(text);
            }
            return given;
        }
        if (type == double.class) {
            return ((Number) given).doubleValue();
        }
        if (type == String.class) {
            if (given instanceof Map<?, ?> repeated) {
                return ((String) repeated.get("repeat")).repeat(((Long) repeated.get("count")).intValue());
            }
            return given;
        }
        if (type == Map.class) {
            Map<String, String> map = new LinkedHashMap<>();
            for (Object pair : (List<?>) given) {
                Object key = ((List<?>) pair).get(0);
                Object text = ((List<?>) pair).get(1);
                map.put((String) value(String.class, String.class, key), (String) value(String.class, String.class, text));
            }
            return map;
        }
        Type element = ((ParameterizedType) generic).getActualTypeArguments()[0];
        List<Object> list = new ArrayList<>();
        for (Object one : (List<?>) given) {
            Class<?> elementType = (Class<?>) element;
            list.add(elementType.isRecord() ? record(elementType, (Map<?, ?>) one) : value(element, elementType, one));
        }
        return list;
    }

    private static Object dumpValue(Object value, String name, Object record) {
        if (value instanceof byte[] bytes) {
            return HexFormat.of().formatHex(bytes);
        }
        if (value instanceof Long number) {
            return WIDE.contains(record.getClass().getSimpleName() + "." + name)
                    ? name.equals("deficit") ? Long.toString(number) : Long.toUnsignedString(number)
                    : number;
        }
        if (value instanceof Integer number) {
            return (long) number;
        }
        if (value instanceof Map<?, ?> map) {
            List<Object> pairs = new ArrayList<>();
            map.forEach((key, text) -> pairs.add(List.of(key, text)));
            return pairs;
        }
        if (value instanceof List<?> list) {
            List<Object> dumped = new ArrayList<>();
            list.forEach(one -> dumped.add(one instanceof Record inner ? dump(inner) : one));
            return dumped;
        }
        return value;
    }

    private static String snake(String camel) {
        return camel.replaceAll("([A-Z])", "_$1").toLowerCase(java.util.Locale.ROOT);
    }

    /** Fields of 64 bits, which the vectors write as decimal strings: Record.component. */
    private static final java.util.Set<String> WIDE = wide();

    private static java.util.Set<String> wide() {
        java.util.Set<String> wide = new java.util.HashSet<>();
        for (Map<?, ?> operation : Spec.operations()) {
            for (Object field : (List<?>) operation.get("fields")) {
                String type = (String) ((List<?>) field).get(1);
                if (type.endsWith("64") && !type.equals("f64")) {
                    String snake = (String) ((List<?>) field).get(0);
                    StringBuilder camel = new StringBuilder();
                    for (String part : snake.split("_")) {
                        camel.append(camel.length() == 0 ? part : part.substring(0, 1).toUpperCase() + part.substring(1));
                    }
                    wide.add(operation.get("name") + "." + camel);
                }
            }
        }
        return wide;
    }
}
