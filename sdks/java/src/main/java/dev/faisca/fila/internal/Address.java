package dev.faisca.fila.internal;

/**
 * Where a broker is.
 *
 * @param tls the address itself asked for it, by https://
 */
public record Address(String host, int port, boolean tls) {
    private static final int DEFAULT_PORT = 5555;

    /** {@code localhost:5555}, {@code broker}, {@code [::1]:5555}; a leading http:// or https:// is dropped. */
    public static Address parse(String text) {
        String rest = text.strip();
        boolean tls = rest.regionMatches(true, 0, "https://", 0, 8);
        if (tls) {
            rest = rest.substring(8);
        } else if (rest.regionMatches(true, 0, "http://", 0, 7)) {
            rest = rest.substring(7);
        }
        while (rest.endsWith("/")) {
            rest = rest.substring(0, rest.length() - 1);
        }
        String host;
        String port;
        if (rest.startsWith("[")) {
            int bracket = rest.indexOf(']');
            String tail = bracket < 0 ? "?" : rest.substring(bracket + 1);
            if (!tail.isEmpty() && !tail.startsWith(":")) {
                throw new IllegalArgumentException("address \"" + text + "\" is not [ipv6]:port");
            }
            host = rest.substring(1, bracket);
            port = tail.isEmpty() ? "" : tail.substring(1);
        } else {
            int colon = rest.indexOf(':');
            if (colon != rest.lastIndexOf(':')) {
                throw new IllegalArgumentException(
                        "address \"" + text + "\": write an IPv6 address as [" + rest + "]:" + DEFAULT_PORT);
            }
            host = colon < 0 ? rest : rest.substring(0, colon);
            port = colon < 0 ? "" : rest.substring(colon + 1);
        }
        if (host.isEmpty()) {
            throw new IllegalArgumentException(
                    "address \"" + text + "\" has no host; write host:port, for example localhost:5555");
        }
        return new Address(host, port.isEmpty() ? DEFAULT_PORT : portOf(port, text), tls);
    }

    private static int portOf(String port, String text) {
        if (port.length() <= 5 && port.chars().allMatch(c -> c >= '0' && c <= '9')) {
            int number = Integer.parseInt(port);
            if (number > 0 && number < 65_536) {
                return number;
            }
        }
        throw new IllegalArgumentException("address \"" + text + "\": \"" + port + "\" is not a port from 1 to 65535");
    }

    /** Whether both name the same node, whatever they say of TLS. */
    boolean sameNode(Address other) {
        return port == other.port && host.equalsIgnoreCase(other.host);
    }

    @Override
    public String toString() {
        return host.contains(":") ? "[" + host + "]:" + port : host + ":" + port;
    }
}
