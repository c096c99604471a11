package dev.faisca.fila.codegen;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.faisca.fila.support.Spec;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

class GeneratorTest {
    @Test
    void whatFollowsFromTheSpecificationIsCurrent() throws Exception {
        Path sources = Spec.root().resolve("sdks/java/src/main/java");
        for (Map.Entry<String, String> file : Generator.files(Spec.root().resolve("spec")).entrySet()) {
            assertEquals(
                    file.getValue(),
                    Files.readString(sources.resolve(file.getKey())),
                    file.getKey() + " is not current: run sdks/java/generate");
        }
    }
}
