"""`format("fila-journal")`: the lifecycle journal as a stream of events, each exactly once.

    options      every option, checked                    offsets    where a stream stands
    inventory    which files hold which events            frontier   how far it may read, in slices
    rows         a slice as Arrow batches                 reader     a batch read
    stream_reader, data_source                            what Spark calls

An event is named by (broker, epoch, seq), not by the file it lies in: a part that is sealed,
compacted, moved to another day or uploaded late changes nothing for a stream that stands in it.
Importing this package imports neither PySpark nor pyarrow: its modules do.
"""
