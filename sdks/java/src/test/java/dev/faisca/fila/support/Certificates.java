package dev.faisca.fila.support;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** An authority and certificates for localhost, made by the openssl program. */
public final class Certificates {
    private final Path place;

    public Certificates() throws Exception {
        place = Files.createTempDirectory("fila-java-tls");
        Files.writeString(place.resolve("leaf.cnf"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
    }

    public Path authority(String name) throws Exception {
        key(name);
        openssl("req", "-x509", "-new", "-key", name + ".key", "-out", name + ".pem", "-days", "2", "-subj", "/CN=" + name);
        return place.resolve(name + ".pem");
    }

    /** A certificate; its key is beside it as {@code name.key}. */
    public Path issue(String name, String authority) throws Exception {
        key(name);
        openssl("req", "-new", "-key", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name);
        openssl("x509", "-req", "-in", name + ".csr", "-CA", authority + ".pem", "-CAkey", authority + ".key",
                "-CAcreateserial", "-out", name + ".pem", "-days", "2", "-extfile", "leaf.cnf");
        return place.resolve(name + ".pem");
    }

    public Path keyOf(String name) {
        return place.resolve(name + ".key");
    }

    /** The same key in the older form that names its algorithm. */
    public Path olderKeyOf(String name) throws Exception {
        openssl("ec", "-in", name + ".key", "-out", name + ".sec1");
        return place.resolve(name + ".sec1");
    }

    private void key(String name) throws Exception {
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", name + ".key");
    }

    private void openssl(String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of("openssl"));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).directory(place.toFile()).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        if (process.waitFor() != 0) {
            throw new IllegalStateException(String.join(" ", command) + ": " + said);
        }
    }
}
