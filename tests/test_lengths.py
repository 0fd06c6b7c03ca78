"""The documents stay short: at most 60,000 words in all, short paragraphs, short sentences."""

import pytest

import words

PAGES = words.pages()
MOST_WORDS = 60_000
MOST_IN_A_PARAGRAPH = 120
MOST_IN_A_SENTENCE = 40


def long_paragraphs(text: str) -> list[str]:
    return [each for each in words.paragraphs(text) if len(each.split()) > MOST_IN_A_PARAGRAPH]


def long_sentences(text: str, *, formulas: bool) -> list[str]:
    """Sentences that are too long; where there are formulas, their symbols do not count."""
    counted = words.words if formulas else lambda sentence: len(sentence.split())
    found = (part for each in words.paragraphs(text) for part in words.sentences(each))
    return [each for each in found if counted(each) > MOST_IN_A_SENTENCE]


def test_the_pages_have_at_most_sixty_thousand_words_in_all() -> None:
    assert sum(len(text.split()) for text in PAGES.values()) <= MOST_WORDS
    assert len(PAGES) > 40


@pytest.mark.parametrize("name", PAGES)
def test_no_paragraph_and_no_sentence_of_a_page_is_too_long(name: str) -> None:
    assert long_paragraphs(PAGES[name]) == []
    assert long_sentences(PAGES[name], formulas="/theory/" in name) == []


def test_what_is_too_long_is_noticed_and_code_and_tables_are_none() -> None:
    many = " ".join(["word"] * 41)
    assert long_sentences(f"Short. {many}. Short.", formulas=False) == long_sentences(f"{many}.", formulas=True) != []
    assert long_sentences(f"{many[:-5]}.", formulas=False) == []
    assert long_sentences("Let " + "x + y <= " * 20 + "z.", formulas=True) == []
    assert len(long_paragraphs(f"{many}. {many}. {many}.")) == 1
    assert long_paragraphs(f"| {many} {many} {many} |\n\n```\n{many} {many} {many}\n```\n") == []
