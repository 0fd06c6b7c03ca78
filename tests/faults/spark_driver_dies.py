"""A release on Spark whose JVM, the driver, is killed once reading has begun; prints how it ended.

python spark_driver_dies.py FOLDER
"""

import json
import os
import signal
import sys
from pathlib import Path

from build import generous, question, session
from engine_choice import local_spark
from recordwise.errors import RecordwiseError


def main() -> None:
    work, spark = Path(sys.argv[1]), local_spark()
    driver = spark.sparkContext._gateway.proc.pid

    def tell(stage: str) -> None:
        if stage == "reading records":
            os.kill(driver, signal.SIGKILL)

    opened = session(work / "records.parquet", work / "small.ledger", generous(), engine="spark", spark=spark)
    try:
        opened.run(question(), progress=tell)
        told = ["nothing", ""]
    except RecordwiseError as error:
        told = [type(error).__name__, str(error)]
    kinds = [event.kind for event in opened.history()]
    print(json.dumps({"error": told, "kinds": kinds}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
