"""The methods of the synchronous client: generated, see `async_methods`."""
