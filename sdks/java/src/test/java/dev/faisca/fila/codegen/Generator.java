package dev.faisca.fila.codegen;

import dev.faisca.fila.codegen.Spec.Cause;
import dev.faisca.fila.codegen.Spec.Operation;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Writes what follows from spec/operations.json and spec/errors.json: opcodes, bodies, codes and one
 * exception for each cause. Run by the script {@code sdks/java/generate}; a test checks that the files
 * are current. Uses nothing of the SDK, so that it runs when the SDK does not compile.
 */
public final class Generator {
    static final String HEADER = "// Written by sdks/java/generate from spec/. Do not edit.";

    private Generator() {}

    /** Arguments: the specification's directory and the directory of the sources. */
    public static void main(String[] args) throws IOException {
        Path sources = Path.of(args[1]);
        for (Map.Entry<String, String> file : files(Path.of(args[0])).entrySet()) {
            Path path = sources.resolve(file.getKey());
            Files.createDirectories(path.getParent());
            if (!Files.exists(path) || !Files.readString(path).equals(file.getValue())) {
                Files.writeString(path, file.getValue());
                System.out.println("wrote " + file.getKey());
            }
        }
    }

    /** Every generated file: path below the sources, and content. */
    public static Map<String, String> files(Path specDir) throws IOException {
        Spec spec = Spec.read(specDir);
        Map<String, String> files = new LinkedHashMap<>();
        String root = "dev/faisca/fila/";
        files.put(root + "internal/wire/Opcodes.java", opcodes(spec));
        files.put(root + "internal/wire/Bodies.java", new BodiesWriter(spec).write());
        files.put(root + "internal/wire/Cause.java", causes(spec));
        for (Cause cause : spec.causes()) {
            if (cause.code() != 0) {
                files.put(root + cause.exception() + ".java", exception(cause));
            }
        }
        files.put(root + "internal/Refusals.java", refusals(spec));
        return files;
    }

    private static String opcodes(Spec spec) {
        StringBuilder out = new StringBuilder(HEADER + "\n");
        out.append("package dev.faisca.fila.internal.wire;\n\n");
        out.append("/** The operations' numbers, names and directions. */\n");
        out.append("public final class Opcodes {\n");
        for (Operation operation : spec.operations()) {
            out.append("    public static final int ").append(Spec.constant(operation.name()))
                    .append(String.format(" = 0x%02X;\n", operation.opcode()));
        }
        out.append("\n    private Opcodes() {}\n\n");
        out.append("    /** The operation's name; an unknown one is told by its number. */\n");
        out.append("    public static String name(int opcode) {\n        return switch (opcode) {\n");
        for (Operation operation : spec.operations()) {
            out.append("            case ").append(Spec.constant(operation.name())).append(" -> \"")
                    .append(operation.name()).append("\";\n");
        }
        out.append("            default -> String.format(\"opcode 0x%02X\", opcode);\n        };\n    }\n\n");
        out.append("    /** What answers a request; -1 if nothing does. */\n");
        out.append("    public static int replyTo(int opcode) {\n        return switch (opcode) {\n");
        for (Operation operation : spec.operations()) {
            if (operation.reply() != null) {
                out.append("            case ").append(Spec.constant(operation.name())).append(" -> ")
                        .append(Spec.constant(operation.reply())).append(";\n");
            }
        }
        out.append("            default -> -1;\n        };\n    }\n\n");
        out.append("    /** Whether a server may send it. */\n");
        out.append("    public static boolean fromServer(int opcode) {\n        return switch (opcode) {\n");
        StringBuilder names = new StringBuilder();
        for (Operation operation : spec.operations()) {
            if (!operation.sender().equals("client")) {
                names.append(names.length() == 0 ? "" : ",\n                    ")
                        .append(Spec.constant(operation.name()));
            }
        }
        out.append("            case ").append(names).append(" -> true;\n");
        out.append("            default -> false;\n        };\n    }\n}\n");
        return out.toString();
    }

    private static String causes(Spec spec) {
        StringBuilder out = new StringBuilder(HEADER + "\n");
        out.append("package dev.faisca.fila.internal.wire;\n\n");
        out.append("/** The error catalogue. */\n");
        out.append("public enum Cause {\n");
        for (Cause cause : spec.causes()) {
            out.append("    ").append(Spec.constant(cause.name())).append('(').append(cause.code()).append(", \"")
                    .append(cause.name()).append("\", ").append(cause.retryable()).append(", \"")
                    .append(cause.meaning().replace("\"", "\\\"")).append("\"),\n");
        }
        out.append("    ;\n\n");
        out.append("    private final int code;\n    private final String spelling;\n");
        out.append("    private final boolean retryable;\n    private final String meaning;\n\n");
        out.append("    Cause(int code, String spelling, boolean retryable, String meaning) {\n");
        out.append("        this.code = code;\n        this.spelling = spelling;\n");
        out.append("        this.retryable = retryable;\n        this.meaning = meaning;\n    }\n\n");
        out.append("    public int code() {\n        return code;\n    }\n\n");
        out.append("    /** The name in the catalogue. */\n");
        out.append("    public String spelling() {\n        return spelling;\n    }\n\n");
        out.append("    public boolean retryable() {\n        return retryable;\n    }\n\n");
        out.append("    public String meaning() {\n        return meaning;\n    }\n\n");
        out.append("    /** The cause with this code; a code that is not known is like InternalError. */\n");
        out.append("    public static Cause of(int code) {\n        return switch (code) {\n");
        for (Cause cause : spec.causes()) {
            out.append("            case ").append(cause.code()).append(" -> ").append(Spec.constant(cause.name()))
                    .append(";\n");
        }
        out.append("            default -> INTERNAL_ERROR;\n        };\n    }\n}\n");
        return out.toString();
    }

    private static String exception(Cause cause) {
        boolean duration = cause.metadata().stream().anyMatch(key -> key.endsWith("_ms"));
        StringBuilder out = new StringBuilder(HEADER + "\n");
        out.append("package dev.faisca.fila;\n\n");
        if (duration) {
            out.append("import java.time.Duration;\n");
        }
        out.append("import java.util.Map;\n");
        if (!cause.metadata().isEmpty()) {
            out.append("import java.util.Optional;\n");
        }
        out.append("\n/** ").append(cause.meaning()).append(" */\n");
        out.append("public final class ").append(cause.exception()).append(" extends RefusedException {\n");
        out.append("    private static final long serialVersionUID = 1L;\n\n");
        out.append("    /**\n     * For tests of code that handles it.\n     *\n");
        out.append("     * @param message the broker's text\n");
        out.append("     * @param metadata what the broker added; may be empty\n     */\n");
        out.append("    public ").append(cause.exception())
                .append("(String message, Map<String, String> metadata) {\n");
        out.append("        super(message, ").append(cause.code()).append(", \"").append(cause.name())
                .append("\", ").append(cause.retryable()).append(", metadata);\n    }\n");
        for (String key : cause.metadata()) {
            String name = key.endsWith("_ms") ? key.substring(0, key.length() - 3) : key;
            String type = key.endsWith("_ms") ? "Duration" : "String";
            out.append("\n    /**\n     * The broker's {@code ").append(key).append("}.\n     *\n");
            out.append("     * @return empty if the broker did not say\n     */\n");
            out.append("    public Optional<").append(type).append("> ").append(Spec.camel(name)).append("() {\n");
            out.append("        return ").append(key.endsWith("_ms") ? "milliseconds" : "text").append("(\"")
                    .append(key).append("\");\n    }\n");
        }
        return out.append("}\n").toString();
    }

    private static String refusals(Spec spec) {
        StringBuilder out = new StringBuilder(HEADER + "\n");
        out.append("package dev.faisca.fila.internal;\n\n");
        for (String name : spec.causes().stream().filter(c -> c.code() != 0).map(Cause::exception).sorted().toList()) {
            out.append("import dev.faisca.fila.").append(name).append(";\n");
        }
        out.append("import dev.faisca.fila.RefusedException;\n");
        out.append("import dev.faisca.fila.internal.wire.Cause;\nimport java.util.Map;\n\n");
        out.append("/** The exception for each cause. */\n");
        out.append("final class Refusals {\n    private Refusals() {}\n\n");
        out.append("    static RefusedException of(Cause cause, String message, Map<String, String> metadata) {\n");
        out.append("        return switch (cause) {\n");
        out.append("            case OK -> throw new IllegalArgumentException(\"Ok is no refusal\");\n");
        for (Cause cause : spec.causes()) {
            if (cause.code() != 0) {
                out.append("            case ").append(Spec.constant(cause.name())).append(" -> new ")
                        .append(cause.exception()).append("(message, metadata);\n");
            }
        }
        return out.append("        };\n    }\n}\n").toString();
    }
}
