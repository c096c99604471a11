"""What libraries in the JVM print does not get among the results."""

from __future__ import annotations

import subprocess
import sys

SAYING = """
from fila.spark.session import get_spark
spark = get_spark(conf={"spark.driver.memory": "512m"})
spark._jvm.java.lang.System.out.println("said by the JVM")
spark._jvm.java.lang.System.out.flush()
spark.stop()
print("a result")
"""


def test_what_the_jvm_prints_is_not_among_the_results() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SAYING], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout == "a result\n"
