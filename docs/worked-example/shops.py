"""The records of the README's "Your own table": 399 made-up shops in two counties.

    python shops.py

Written into the current folder as shops.csv, the same in every run.
"""

from pathlib import Path

SHOPS = "shop_id,county,sales\n" + "".join(
    f"{number},{'001' if number % 3 else '003'},{number * number}\n" for number in range(1, 400)
)

if __name__ == "__main__":
    Path("shops.csv").write_text(SHOPS, encoding="utf-8")
