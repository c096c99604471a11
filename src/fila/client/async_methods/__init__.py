"""The methods of the asynchronous client, and what they hand out.

The synchronous client's, in `fila.client.sync_methods`, are generated from these by
`tools/generate_sync.py` (`make sdk`): `await` and `async` go, names change. A definition below a
comment `# async only` is left out there.

    shell            the link, waiting for answers, flushing and closing
    producing        enqueues
    settling         acks, nacks, releases
    lease_methods    lease batches
    browse_methods   browsing
    administration   queues, config, keys
    consumer         consumers and their messages
    receipt          what became of a call nobody waited for
"""
