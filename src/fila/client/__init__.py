"""The Python SDK: one sans-IO exchange, two thin shells.

    sync, aio                  the public clients: opening one, subscribing
    async_methods              their other methods, and the consumers, messages and receipts
    sync_methods               the same for the synchronous client: generated, never edited
    link                       handing work to the exchange, the same for both
    sync_link, aio_link        their connections: a thread and a socket, or an asyncio transport
    exchange, request          everything a client does except moving bytes
    conversation, keepalive    what is unanswered; whether the broker is still there
    course, event              which broker to connect to; what is told of the connection
    trace                      the trace context that goes out with messages
    sender, batching           enqueues and acks under way, and how they share frames
    stream, ticket             what a consumer has not read yet; what a call waits for
    calls                      the administrative calls
    new_message, columns       enqueues with options, by message or by column
    leases, browsing           lease batches and releases; reading without taking
    message, errors            what users see
    options, address           what users set

Public names are those of the package `fila`.
"""
