"""One release in a process of its own; prints how it ended as JSON. python releasing.py WORKING_FOLDER"""

import json
import os
import sys
from pathlib import Path

from build import generous, question, session
from recordwise.errors import RecordwiseError


def main() -> None:
    work = Path(sys.argv[1])
    try:
        with session(work / "records.parquet", work / "small.ledger", generous()) as opened:
            opened.run(question()).save(work / "out")
        told = ["saved", ""]
    except RecordwiseError as error:
        told = [type(error).__name__, str(error)]
    print(json.dumps(told), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
