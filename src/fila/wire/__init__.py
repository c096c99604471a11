"""FIBP, the Fila Binary Protocol, without sockets. Used by both ends of a connection.

    frames    bytes to whole messages and back, continuations included
    opcodes   the number of every operation
    errors    the error catalogue, and what the codecs raise
    bodies    one record per operation
    layouts   how every record travels; the reference codec
    message_codec, enqueue_with_codec, browse_codec
              the same for the bodies that carry messages, fast
    message   the bytes of one message: headers and payload
    ids       message ids as text
    states    which operation may arrive when

Standard library only. The contract is written out in `spec/fibp.md`.
"""
