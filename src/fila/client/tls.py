"""TLS for a client connection.

Owns the SSL context; `ssl` is imported only when TLS is asked for, because it costs more to import
than the rest of the SDK. Never opens connections.
"""

from typing import TYPE_CHECKING, Final

from fila.client.options import Options

if TYPE_CHECKING:
    import ssl

ALPN: Final = "fila/1"


def client_context(options: Options) -> "ssl.SSLContext":
    """Verifies the broker against `tls_ca` or the system's store; shows `tls_cert` if given."""
    import ssl

    try:
        context = ssl.create_default_context(cafile=options.tls_ca)
        if options.tls_cert is not None:
            context.load_cert_chain(options.tls_cert, options.tls_key)
    except OSError as error:
        files = ", ".join(
            path for path in (options.tls_ca, options.tls_cert, options.tls_key) if path
        )
        raise ValueError(f"cannot use the TLS files {files}: {error}") from error
    context.set_alpn_protocols([ALPN])
    return context
