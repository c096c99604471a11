"""The tables of the made-up record, for products to be made of."""

from tests.spark.tables.conftest import record, scenario, whole

__all__ = ["record", "scenario", "whole"]
