"""The Python SDK: one sans-IO exchange, two thin shells.

    sync, aio          the public clients, blocking and awaited
    consumer, aio_…    what they hand out: consumers, messages, receipts
    link, aio_link     their connections: a thread and a socket, or an asyncio transport
    exchange           everything a client does except moving bytes
    outbox, batch      enqueues and acks on their way, and how they share frames
    stream, ticket     what a consumer has not read yet; what a call waits for
    calls              the administrative calls
    message, errors    what users see
    options, address   what users set

Public names are those of the package `fila`.
"""
