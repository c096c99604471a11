package dev.faisca.fila;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.faisca.fila.support.Broker;
import dev.faisca.fila.support.Spec;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the README says is true. */
class ReadmeTest {
    private static final Path SDK = Spec.root().resolve("sdks/java");

    @Test
    void itNamesThePackageAsThePomDoes() throws Exception {
        String pom = Files.readString(SDK.resolve("pom.xml"));
        String readme = Files.readString(SDK.resolve("README.md"));
        for (String tag : List.of("groupId", "artifactId", "version")) {
            Matcher said = Pattern.compile("<" + tag + ">[^<]+</" + tag + ">").matcher(pom);
            assertTrue(said.find());
            assertTrue(readme.contains(said.group()), said.group());
        }
        assertTrue(Files.readString(SDK.resolve("src/main/java/module-info.java")).contains("module dev.faisca.fila {"));
        assertTrue(readme.contains("requires dev.faisca.fila;"));
    }

    @Test
    void theFiveMinuteStartRuns(@TempDir Path place) throws Exception {
        Matcher block = Pattern.compile("```java\\n(import [\\s\\S]*?)```")
                .matcher(Files.readString(SDK.resolve("README.md")));
        List<String> programs = new ArrayList<>();
        while (block.find()) {
            programs.add(block.group(1));
        }
        assertFalse(programs.isEmpty());
        for (String program : programs) {
            Matcher name = Pattern.compile("class (\\w+)").matcher(program);
            assertTrue(name.find());
            Path file = place.resolve(name.group(1) + ".java");
            Files.writeString(file, program.replace("localhost:5555", Broker.shared().address()));
            Process process = new ProcessBuilder(
                            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                            "-Xmx256m", "-XX:TieredStopAtLevel=1",
                            "-cp", SDK.resolve("target/classes").toString(), file.toString())
                    .redirectErrorStream(true)
                    .start();
            String said = new String(process.getInputStream().readAllBytes());
            assertTrue(process.waitFor(60, TimeUnit.SECONDS));
            assertEquals(0, process.exitValue(), said);
        }
    }
}
