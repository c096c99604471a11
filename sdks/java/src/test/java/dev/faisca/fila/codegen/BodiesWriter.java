package dev.faisca.fila.codegen;

import dev.faisca.fila.codegen.Spec.Field;
import dev.faisca.fila.codegen.Spec.Operation;
import java.util.ArrayList;
import java.util.List;
import java.util.StringJoiner;

/** Writes the records of every body, with their codecs. */
final class BodiesWriter {
    private final Spec spec;
    private final StringBuilder out = new StringBuilder();

    BodiesWriter(Spec spec) {
        this.spec = spec;
    }

    String write() {
        line(0, Generator.HEADER);
        line(0, "package dev.faisca.fila.internal.wire;");
        line(0, "");
        line(0, "import java.util.List;");
        line(0, "import java.util.Map;");
        line(0, "");
        line(0, "/** Every body of FIBP as a record, in wire order. A trailing field that is absent is null. */");
        line(0, "public final class Bodies {");
        line(1, "private Bodies() {}");
        line(0, "");
        line(1, "/** Decodes the body of a known operation; null if the opcode is not known. */");
        line(1, "public static Body decode(int opcode, byte[] body) {");
        line(2, "Decoder from = new Decoder(body);");
        line(2, "return switch (opcode) {");
        for (Operation operation : spec.operations()) {
            line(3, "case Opcodes." + Spec.constant(operation.name()) + " -> " + operation.name() + ".decode(from);");
        }
        line(3, "default -> null;");
        line(2, "};");
        line(1, "}");
        spec.operations().forEach(this::body);
        spec.records().values().forEach(this::body);
        line(0, "}");
        return out.toString();
    }

    private void body(Operation operation) {
        boolean whole = operation.opcode() >= 0;
        StringJoiner components = new StringJoiner(", ");
        operation.fields().forEach(field -> components.add(javaType(field) + " " + field.camel()));
        line(0, "");
        line(1, "public record " + operation.name() + "(" + components + ") implements "
                + (result(operation) ? "Result" : whole ? "Body" : "Part") + " {");
        if (whole) {
            line(2, "@Override");
            line(2, "public int opcode() {");
            line(3, "return Opcodes." + Spec.constant(operation.name()) + ";");
            line(2, "}");
            line(0, "");
        }
        line(2, "@Override");
        line(2, "public void encode(Encoder to) {");
        operation.fields().forEach(this::encode);
        line(2, "}");
        line(0, "");
        line(2, "public static " + operation.name() + " decode(Decoder from) {");
        List<String> names = new ArrayList<>();
        for (Field field : operation.fields()) {
            line(3, javaType(field) + " " + field.camel() + " = " + decode(field) + ";");
            names.add(field.camel());
        }
        line(3, "return new " + operation.name() + "(" + String.join(", ", names) + ");");
        line(2, "}");
        line(1, "}");
    }

    /** Whether an answer says by a code of its own how it went. */
    private static boolean result(Operation operation) {
        return "server".equals(operation.sender())
                && !operation.fields().isEmpty()
                && operation.fields().get(0).equals(new Field("code", "u8"));
    }

    private void encode(Field field) {
        String name = field.camel();
        if (field.optional()) {
            line(3, "if (" + name + " != null) {");
            line(4, "to." + method(field) + "(\"" + field.name() + "\", " + name + ");");
            line(3, "}");
        } else {
            line(3, "to." + method(field) + "(\"" + field.name() + "\", " + name + ");");
        }
    }

    private String decode(Field field) {
        String read;
        if (field.element() != null) {
            read = "from." + method(field) + "(\"" + field.name() + "\", " + smallest(field.element()) + ", "
                    + field.element() + "::decode)";
        } else {
            read = "from." + method(field) + "(\"" + field.name() + "\")";
        }
        return field.optional() ? "from.atEnd() ? null : " + read : read;
    }

    private static String method(Field field) {
        if (field.element() != null) {
            return "list" + field.countType().substring(1);
        }
        return switch (field.plainType()) {
            case "string?" -> "optionalString";
            case "string[]" -> "strings";
            default -> field.plainType();
        };
    }

    private static String javaType(Field field) {
        if (field.element() != null) {
            return "List<" + field.element() + ">";
        }
        String type = switch (field.plainType()) {
            case "u8", "u16" -> "int";
            case "u32", "u64", "i64" -> "long";
            case "f64" -> "double";
            case "bool" -> "boolean";
            case "string", "string?" -> "String";
            case "bytes" -> "byte[]";
            case "map" -> "Map<String, String>";
            case "string[]" -> "List<String>";
            default -> throw new IllegalArgumentException("unknown type " + field.type());
        };
        return field.optional() && type.equals("long") ? "Long" : type;
    }

    /** The fewest bytes a record takes: a count is checked against it before memory is reserved. */
    private int smallest(String record) {
        int bytes = 0;
        for (Field field : spec.records().get(record).fields()) {
            bytes += switch (field.type()) {
                case "u8", "bool", "string?" -> 1;
                case "u16", "string", "map", "string[]" -> 2;
                case "u32", "bytes" -> 4;
                case "u64", "i64", "f64" -> 8;
                default -> throw new IllegalArgumentException("unknown type " + field.type());
            };
        }
        return bytes;
    }

    private void line(int depth, String text) {
        out.append(text.isEmpty() ? "" : "    ".repeat(depth)).append(text).append('\n');
    }
}
