"""`format("fila")`: queues as DataFrames, in batch and as streams.

    data_source     what Spark asks first: which schema, which reader, which writer
    options         every option, with its type, default and meaning
    schema          the columns, read and written
    offsets         where a stream stands, and the names of its lease batches
    reader          a snapshot of a queue, in partitions
    stream_reader   named lease batches, acknowledged when Spark has committed
    heartbeat       keeps a stream's batches from running out
    writer          rows to messages, for batches and streams
    connection      a client for these options; secrets come from the environment

Uses the SDK alone; nothing here knows the broker. Importing this package imports neither PySpark
nor pyarrow.
"""
