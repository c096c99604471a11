package dev.faisca.fila;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.faisca.fila.support.Broker;
import dev.faisca.fila.support.Spec;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The examples run as their users run them: from their source files. */
class ExamplesTest {
    @Test
    void produceConsume() throws Exception {
        String said = run("ProduceConsume");
        assertTrue(said.endsWith("received hello from Java\nreceived one\nreceived two\nreceived three\n"), said);
    }

    @Test
    void fairness() throws Exception {
        assertEquals("big: 10\npaying: 30\nsmall: 10\n", run("Fairness"));
    }

    @Test
    void throttling() throws Exception {
        String said = run("Throttling");
        assertTrue(said.endsWith("the last is slow\nsix slow ones took about a second\n"), said);
    }

    @Test
    void retryDeadLetters() throws Exception {
        assertEquals(
                "attempt 1 failed\nattempt 2 failed\nattempt 3 failed\n"
                        + "dead letter: order 7\nprinted order 7\nredriven 1\n",
                run("RetryDeadLetters"));
    }

    private static String run(String example) throws Exception {
        Path sdk = Spec.root().resolve("sdks/java");
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx256m", "-XX:TieredStopAtLevel=1",
                        "-cp", sdk.resolve("target/classes").toString(),
                        sdk.resolve("examples/" + example + ".java").toString(),
                        Broker.shared().address())
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        String said = new String(process.getInputStream().readAllBytes());
        assertTrue(process.waitFor(60, TimeUnit.SECONDS));
        assertEquals(0, process.exitValue(), said);
        return said;
    }
}
