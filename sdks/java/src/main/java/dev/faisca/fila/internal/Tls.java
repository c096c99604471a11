package dev.faisca.fila.internal;

import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.Collection;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

/** TLS from PEM files, and over a connected socket. */
public final class Tls {
    private static final String ALPN = "fila/1";
    private static final char[] NO_PASSWORD = {};

    private Tls() {}

    /** A context that trusts a CA (null: the JVM's own) and shows a certificate (null: none). */
    public static SSLContext context(Path ca, Path cert, Path key) {
        try {
            if (ca == null && cert == null) {
                return SSLContext.getDefault();
            }
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(cert == null ? null : identity(cert, key), ca == null ? null : trust(ca), null);
            return context;
        } catch (IOException | GeneralSecurityException e) {
            throw new IllegalArgumentException("cannot use the TLS files: " + e, e);
        }
    }

    /** Shakes hands over a connected socket: with our protocol's name, and with the host that was asked for. */
    static Socket wrap(SSLContext context, Socket raw, Address address) throws IOException {
        SSLSocket socket = (SSLSocket)
                context.getSocketFactory().createSocket(raw, address.host(), address.port(), true);
        SSLParameters parameters = socket.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        parameters.setApplicationProtocols(new String[] {ALPN});
        socket.setSSLParameters(parameters);
        socket.startHandshake();
        return socket;
    }

    private static TrustManager[] trust(Path ca) throws IOException, GeneralSecurityException {
        KeyStore store = emptyStore();
        int number = 0;
        for (Certificate certificate : certificates(ca)) {
            store.setCertificateEntry("ca-" + number++, certificate);
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return factory.getTrustManagers();
    }

    private static KeyManager[] identity(Path cert, Path key) throws IOException, GeneralSecurityException {
        PrivateKey secret = Pem.privateKey(key);
        KeyStore store = emptyStore();
        store.setKeyEntry("client", secret, NO_PASSWORD, certificates(cert).toArray(new Certificate[0]));
        KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(store, NO_PASSWORD);
        return factory.getKeyManagers();
    }

    private static Collection<? extends Certificate> certificates(Path file)
            throws IOException, GeneralSecurityException {
        try (InputStream in = Files.newInputStream(file)) {
            Collection<? extends Certificate> found = CertificateFactory.getInstance("X.509").generateCertificates(in);
            if (found.isEmpty()) {
                throw new IllegalArgumentException(file + " holds no certificate in PEM form");
            }
            return found;
        }
    }

    private static KeyStore emptyStore() throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, NO_PASSWORD);
        return store;
    }
}
