"""Values as nobody should write them, and somebody does, by the role of their column and the way it is stored."""


def words(text: str) -> list[str]:
    return text.split()


NUMBERS = [
    *words("1_000 0x10 -0.4 1.6 1e3 +5 NaN nan inf -Infinity ５ ٣ 007 -0 1. .5 1e400 1e-400 5d 1f 0b1 1,5 1,000 --1"),
    *words(
        "0x1p3 1E+2 -3 - . e5 1.0000000000000000000001 9007199254740993 9007199254740992 0.30000000000000004 2.5 1e"
    ),
    *words("1e+ 4503599627370497.5 1__0 ½ ² −5 3% $4 1_000 1_0 ５ ٣ ７ -0.4 1.6 1.6 92233720368547758070 1e22 1/2"),
    *words("9223372036854775807 9223372036854775808 -9223372036854775808 4.9999999999999999999 TRUE"),
    *(" 7 ", "7\t", "\t7", "7\u00a0", "7\n", "1 000", "\ufeff5", " ", "7\0"),
    *("9" * 40, "0" * 60 + "5", "1" + "0" * 400),
]
TRUTHS = words("T F yes Y no N 1 0 2 tRuE on off wahr 10 ｔ 1.0 -1 nil")
DATES = [
    *words("2024-02-30 2024-1-1 0000-01-01 2024-01-31T23:59 2024-01-31T23:59Z 2024-01-31+02:00 20240131 12024-01-31"),
    *words(
        "infinity epoch now 2024-12-31T24:00:00 -2024-01-31 2024/01/31 31.01.2024 2024-01 ２０２４-01-31 0001-01-01"
    ),
    *("9999-12-31", "2024-01-31 23:59:59.999999999", " 2024-01-31", "2024-01-31 ", "2024-01-31 BC", "2024-03-31 23"),
]
TEXTS = [
    *words('NULL null NA \\N ULM é e\u0301 " "" # \' \u200b a\\b \\ \\" İ ı ß NaN true 😀 - =1+1 1.0'),
    *(
        " Ulm",
        "Ulm ",
        " Ulm",
        "Ulm ",
        "x,y ",
        "\ufeffUlm",
        "a\nb",
        "a\r\nb",
        "a\rb",
        "a\u2028b",
        "\x85",
        "\t",
        "x\0y",
        "",
    ),
]
NAN, INFINITE = float("nan"), float("inf")
ODD: dict[str, list[object]] = {
    "measure text": [*NUMBERS],
    "integer text": [*NUMBERS, *words("1_000 1_0 ５ ٣ ７ 1_2 ２ ٢") * 4, "7\n", "\t7"],
    "id text": [*NUMBERS, "1.0", "01", "1", "1 ", " 1", "é", "e\u0301", "Zq-id", "ZQ-ID"],
    "boolean text": [*TRUTHS, " true", "true ", "TRUE\t"],
    "date text": [*DATES],
    "text text": [*TEXTS],
    "measure float": [
        1.6,
        -0.4,
        NAN,
        INFINITE,
        -0.0,
        2.0**53 + 2,
        0.1 + 0.2,
        1e300,
        2.0**24 + 1,
        -3.0,
        2.5,
        5e-324,
        1e17,
    ],
    "integer float": [
        1.6,
        2.5,
        1.5,
        0.4,
        1.6,
        -0.4,
        NAN,
        -INFINITE,
        -0.0,
        2.0**63,
        -(2.0**63),
        1e300,
        2.0**24 + 1,
        0.5,
    ],
    "id float": [1.5, NAN, -0.0, 2.0**53, INFINITE, 1.0, 2.0**24 + 1, 0.1],
    "measure whole": [-3, 2**53 + 1, 2**62, 127, 255, 2**63 - 1, 2**64 - 1, -(2**63), 1001],
    "integer whole": [-(2**63), 2**63 - 1, 2**64 - 1, 255, -128, 2**53 + 1],
    "id whole": [2**53 + 1, 2**53, -1, 2**63 - 1, 2**64 - 1, 1],
    "measure decimal": words("1.6 -0.4 0.01 -3 2.5 9007199254740993"),
    "integer decimal": words("1.6 -0.4 2.5 3.00"),
    "id decimal": words("1.6 1.00 2.5 9007199254740993"),
    "date day": words("0001-01-01 9999-12-31 1582-10-10 1969-12-31"),
}
