package fila

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

const defaultPort = "5555"

// parseAddress reads host:port, host or [ipv6]:port. A leading http:// or https:// is dropped;
// https:// asks for TLS.
func parseAddress(text string) (addr string, tls bool, err error) {
	rest := strings.TrimSpace(text)
	for _, scheme := range []string{"http://", "https://"} {
		if len(rest) >= len(scheme) && strings.EqualFold(rest[:len(scheme)], scheme) {
			tls = scheme == "https://"
			rest = strings.TrimRight(rest[len(scheme):], "/")
			break
		}
	}
	host, port := rest, defaultPort
	switch {
	case strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]"):
		host = rest[1 : len(rest)-1]
	case strings.Contains(rest, ":"):
		if host, port, err = net.SplitHostPort(rest); err != nil {
			return "", false, fmt.Errorf("address %q: write host:port or [ipv6]:port", text)
		}
	}
	if host == "" {
		return "", false, fmt.Errorf("address %q has no host; write host:port, e.g. localhost:5555", text)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", false, fmt.Errorf("address %q: %q is not a port from 1 to 65535", text, port)
	}
	return net.JoinHostPort(host, port), tls, nil
}
