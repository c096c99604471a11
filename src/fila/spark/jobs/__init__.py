"""Jobs that move messages between queues and a lake: each a few lines over `format("fila")`.

    archive    a queue to Parquet, once or continuously
    replay     archived or dead-lettered messages, chosen by SQL, back into a queue
    importing  rows of files into a queue
    submit     the same jobs by spark-submit, with the package shipped right
    project    a small project to start from
    asked      what a command asked for, and the report it gets

Importing this package imports no PySpark.
"""
