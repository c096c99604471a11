"""Reports on the lifecycle journal, on Spark: each a pure `DataFrame -> DataFrame`.

    session   a Spark session, embedded or on a cluster      java     where its JVM comes from
    events    the journal as one DataFrame                   keys     what a key held, by window
    fairness, delays, latency, funnel, errors                the reports
    compact, whatif (trace, replay), doctor                  jobs that do more than read
    page, charts                                             reports as a page with pictures

Never imports the broker; `replay` runs the broker's own core. Importing this package imports
neither PySpark nor pyarrow: its modules do.
"""
