package dev.faisca.fila.support;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The repository's specification. */
public final class Spec {
    private Spec() {}

    /** The repository's root: the nearest directory above that has a specification. */
    public static Path root() {
        Path place = Path.of(System.getProperty("fila.root", "")).toAbsolutePath();
        while (place != null && !Files.exists(place.resolve("spec/operations.json"))) {
            place = place.getParent();
        }
        if (place == null) {
            throw new IllegalStateException("spec/operations.json is in no directory above; set -Dfila.root");
        }
        return place;
    }

    /** The operations and records of operations.json. */
    public static List<Map<?, ?>> operations() {
        return list("operations.json", "operations");
    }

    /** The entries of a file below spec/. */
    public static List<Map<?, ?>> list(String file, String name) {
        try {
            List<Map<?, ?>> entries = new ArrayList<>();
            Map<String, Object> document = Json.object(Files.readString(root().resolve("spec").resolve(file)));
            ((List<?>) document.get(name)).forEach(entry -> entries.add((Map<?, ?>) entry));
            return entries;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
