"""The lifecycle journal: an open, columnar record of every scheduling decision.

    <journal>/events/date=YYYY-MM-DD/part-<broker>-<epoch>-<first seq>-<last seq>.parquet
    <journal>/messages/date=…/…  and  <journal>/config/date=…/…    the other two tables
    <journal>/_hot/<table>-<broker>-<epoch>-<number>.arrows        the tail not yet sealed

Names that begin with a dot or an underscore are invisible to Spark and friends.
"""
