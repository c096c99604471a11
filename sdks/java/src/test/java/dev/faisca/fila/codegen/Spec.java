package dev.faisca.fila.codegen;

import dev.faisca.fila.support.Json;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What the specification says: spec/operations.json and spec/errors.json, read. */
record Spec(List<Operation> operations, Map<String, Operation> records, List<Cause> causes) {

    /** A body or, without an opcode, a record inside one. */
    record Operation(String name, int opcode, String sender, String reply, List<Field> fields) {}

    record Field(String name, String type) {
        /** The name as Java writes it. */
        String camel() {
            return Spec.camel(name);
        }

        boolean optional() {
            return type.startsWith("optional ");
        }

        String plainType() {
            return optional() ? type.substring("optional ".length()) : type;
        }

        /** The record a list consists of, null if the field is no such list. */
        String element() {
            int bracket = type.indexOf("[u");
            return bracket < 0 ? null : type.substring(0, bracket);
        }

        /** The width of a list's count: u16 or u32. */
        String countType() {
            return type.substring(type.indexOf('[') + 1, type.length() - 1);
        }
    }

    record Cause(int code, String name, String meaning, List<String> metadata, boolean retryable) {
        /** QueueNotFound is QueueNotFoundException, StorageError is StorageException. */
        String exception() {
            return (name.endsWith("Error") ? name.substring(0, name.length() - 5) : name) + "Exception";
        }
    }

    static Spec read(Path specDir) throws IOException {
        List<Operation> operations = new ArrayList<>();
        Map<String, Operation> records = new LinkedHashMap<>();
        for (Object entry : entries(specDir.resolve("operations.json"), "operations")) {
            Map<?, ?> map = (Map<?, ?>) entry;
            List<Field> fields = new ArrayList<>();
            for (Object field : (List<?>) map.get("fields")) {
                List<?> pair = (List<?>) field;
                fields.add(new Field((String) pair.get(0), (String) pair.get(1)));
            }
            Long opcode = (Long) map.get("opcode");
            Operation operation = new Operation(
                    (String) map.get("name"),
                    opcode == null ? -1 : opcode.intValue(),
                    (String) map.get("sender"),
                    (String) map.get("reply"),
                    fields);
            if (opcode == null) {
                records.put(operation.name(), operation);
            } else {
                operations.add(operation);
            }
        }
        List<Cause> causes = new ArrayList<>();
        for (Object entry : entries(specDir.resolve("errors.json"), "errors")) {
            Map<?, ?> map = (Map<?, ?>) entry;
            List<String> metadata = new ArrayList<>();
            ((List<?>) map.get("metadata")).forEach(key -> metadata.add((String) key));
            causes.add(new Cause(
                    ((Long) map.get("code")).intValue(),
                    (String) map.get("name"),
                    (String) map.get("meaning"),
                    metadata,
                    (Boolean) map.get("retryable")));
        }
        return new Spec(operations, records, causes);
    }

    static String camel(String snake) {
        StringBuilder camel = new StringBuilder();
        boolean upper = false;
        for (char c : snake.toCharArray()) {
            if (c == '_') {
                upper = true;
            } else {
                camel.append(upper ? Character.toUpperCase(c) : c);
                upper = false;
            }
        }
        return camel.toString();
    }

    /** HandshakeOk is HANDSHAKE_OK, NotADLQ is NOT_A_DLQ. */
    static String constant(String name) {
        return name.replaceAll("([a-z0-9])([A-Z])", "$1_$2")
                .replaceAll("([A-Z])([A-Z][a-z])", "$1_$2")
                .replaceAll("(_A)([A-Z])", "$1_$2")
                .toUpperCase(java.util.Locale.ROOT);
    }

    private static List<?> entries(Path file, String name) throws IOException {
        return (List<?>) Json.object(Files.readString(file)).get(name);
    }
}
