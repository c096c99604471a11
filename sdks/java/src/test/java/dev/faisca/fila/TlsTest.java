package dev.faisca.fila;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.faisca.fila.internal.Tls;
import dev.faisca.fila.support.Broker;
import dev.faisca.fila.support.Certificates;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class TlsTest {
    private static Certificates certificates;
    private static Path ca;
    private static Path client;
    private static Broker broker;

    @BeforeAll
    static void start() throws Exception {
        certificates = new Certificates();
        ca = certificates.authority("ca");
        certificates.authority("other");
        Path server = certificates.issue("server", "ca");
        client = certificates.issue("client", "ca");
        broker = Broker.start(Map.of(
                "FILA_TLS__CERT_FILE", server.toString(),
                "FILA_TLS__KEY_FILE", certificates.keyOf("server").toString(),
                "FILA_TLS__CA_FILE", ca.toString()));
    }

    @AfterAll
    static void stop() {
        broker.close();
    }

    @Test
    void aClientWithACertificateIsServed() throws Exception {
        try (FilaClient connected = FilaClient.builder(broker.address())
                .withTlsCaCert(ca).withTlsClientCert(client, certificates.keyOf("client")).build()) {
            connected.createQueue("secret");
            assertEquals(36, connected.enqueue("secret", Map.of(), new byte[100_000]).length());
        }
        try (FilaClient older = FilaClient.builder("https://" + broker.address().replace("127.0.0.1", "localhost"))
                .withTlsCaCert(ca).withTlsClientCert(client, certificates.olderKeyOf("client")).build()) {
            assertTrue(older.listQueues().size() > 0);
        }
        try (FilaClient own = FilaClient.builder(broker.address())
                .withSslContext(Tls.context(ca, client, certificates.keyOf("client"))).build()) {
            assertTrue(own.listQueues().size() > 0);
        }
    }

    @Test
    void aWrongAuthorityIsToldAtOnce() throws Exception {
        Path other = certificates.authority("another");
        ConnectFailedException wrong = assertThrows(ConnectFailedException.class, () -> FilaClient.builder(broker.address())
                .withTlsCaCert(other).withTlsClientCert(client, certificates.keyOf("client")).build());
        assertTrue(wrong.getMessage().contains("certificate cannot be verified"), wrong.getMessage());
    }

    @Test
    void plaintextToATlsPortAndTheReverseAreToldAtOnce() throws Exception {
        ConnectFailedException plain =
                assertThrows(ConnectFailedException.class, () -> FilaClient.connect(broker.address()));
        assertTrue(plain.getMessage().contains("TLS"), plain.getMessage());
        String plaintext = Broker.shared().address();
        ConnectFailedException encrypted =
                assertThrows(ConnectFailedException.class, () -> FilaClient.builder(plaintext).withTls().build());
        assertTrue(encrypted.getMessage().contains("TLS") || encrypted.getMessage().contains("closed"), encrypted.getMessage());
    }
}
