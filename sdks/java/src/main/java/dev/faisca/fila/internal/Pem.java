package dev.faisca.fila.internal;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Private keys as people have them in files: PKCS#8, and the older forms for RSA and EC wrapped as it. */
final class Pem {
    private static final Pattern BLOCK =
            Pattern.compile("-----BEGIN ((?:RSA |EC |ENCRYPTED )?PRIVATE KEY)-----([^-]+)-----END");
    private static final byte[] RSA = {0x30, 13, 6, 9, 0x2A, (byte) 0x86, 0x48, (byte) 0x86, (byte) 0xF7, 13, 1, 1, 1, 5, 0};
    private static final byte[] EC_KEY = {6, 7, 0x2A, (byte) 0x86, 0x48, (byte) 0xCE, 0x3D, 2, 1};

    private Pem() {}

    static PrivateKey privateKey(Path file) throws IOException, GeneralSecurityException {
        Matcher block = BLOCK.matcher(Files.readString(file));
        if (!block.find()) {
            throw new IllegalArgumentException(file + " holds no private key in PEM form");
        }
        byte[] der = Base64.getMimeDecoder().decode(block.group(2));
        switch (block.group(1)) {
            case "RSA PRIVATE KEY":
                return key("RSA", wrapped(RSA, der));
            case "EC PRIVATE KEY":
                return key("EC", wrapped(tagged(0x30, EC_KEY, curveOf(der, file)), der));
            case "ENCRYPTED PRIVATE KEY":
                throw new IllegalArgumentException(file + " is encrypted; give the key without a pass phrase");
            default:
                return anyKey(der, file);
        }
    }

    private static PrivateKey anyKey(byte[] der, Path file) throws GeneralSecurityException {
        for (String algorithm : new String[] {"EC", "RSA", "EdDSA"}) {
            try {
                return key(algorithm, der);
            } catch (InvalidKeySpecException e) {
                // It is of another algorithm.
            }
        }
        throw new IllegalArgumentException(file + " holds a private key of an unknown algorithm");
    }

    private static PrivateKey key(String algorithm, byte[] pkcs8) throws GeneralSecurityException {
        return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(pkcs8));
    }

    /** PKCS#8: version 0, the algorithm, the key as an octet string. */
    private static byte[] wrapped(byte[] algorithm, byte[] der) {
        return tagged(0x30, new byte[] {2, 1, 0}, algorithm, tagged(4, der));
    }

    /** The curve of an EC key, which it names in a field with the tag [0]. */
    private static byte[] curveOf(byte[] der, Path file) {
        for (int at = 0; at + 4 < der.length; at++) {
            if ((der[at] & 0xFF) == 0xA0 && der[at + 2] == 6 && der[at + 1] == der[at + 3] + 2) {
                return java.util.Arrays.copyOfRange(der, at + 2, at + 2 + der[at + 1]);
            }
        }
        throw new IllegalArgumentException(file + " does not name its curve; convert the key to PKCS#8");
    }

    private static byte[] tagged(int tag, byte[]... parts) {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            content.writeBytes(part);
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(tag);
        int length = content.size();
        if (length < 128) {
            out.write(length);
        } else {
            int bytes = length < 256 ? 1 : length < 65_536 ? 2 : 3;
            out.write(0x80 | bytes);
            for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
                out.write(length >> shift);
            }
        }
        out.writeBytes(content.toByteArray());
        return out.toByteArray();
    }
}
