"""Tests of the page, in a real browser."""

import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

PROGRAMS = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
pytestmark = pytest.mark.skipif(
    not all(PROGRAMS.values()), reason="needs chromium and chromium-driver"
)
PASSAGE = "Zoë 𝒳 lives in São Paulo, Bo in Rome."


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = PROGRAMS["chromium"]
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(PROGRAMS["chromedriver"])
    driver = webdriver.Chrome(options, service)
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, address):
    """The page, freshly loaded."""
    browser.get(address)
    return browser


def wait(page, condition):
    return WebDriverWait(page, 60).until(lambda page: condition())


def ask(page, passage, question):
    """Fills the form in by keyboard alone."""
    page.find_element(By.ID, "passage").send_keys("x", Keys.TAB)
    page.execute_script("passage.value = arguments[0]", passage)
    page.switch_to.active_element.send_keys(question, Keys.ENTER)


def answers(page):
    return page.find_elements(By.CSS_SELECTOR, "#answers button")


def chosen(page):
    words = page.find_elements(By.CSS_SELECTOR, "#words .chosen")
    return [word.text for word in words]


def test_a_question_is_answered_by_keyboard_alone(page, trained_reader):
    question = "Where does Zoë live?"
    expected = trained_reader.answer(question, PASSAGE, top_k=3)

    ask(page, PASSAGE, question)

    wait(page, lambda: len(answers(page)) == 3)
    for button, answer in zip(answers(page), expected, strict=True):
        assert answer.text in button.text
        assert f"{100 * answer.score:.1f} %" in button.text
    # Each answer that is chosen is marked in the passage, which is shown as it is.
    for button, answer in zip(answers(page), expected, strict=True):
        button.send_keys(Keys.SPACE)
        assert "".join(chosen(page)) == answer.text.replace(" ", "")
        assert button.get_attribute("aria-pressed") == "true"
    assert page.find_element(By.ID, "words").text == PASSAGE


def test_probabilities_and_attention_are_shown(page):
    ask(page, PASSAGE, "Where is Bo?")
    wait(page, lambda: answers(page))

    words = page.find_elements(By.CSS_SELECTOR, "#words span")
    assert [word.text for word in words][:3] == ["Zoë", "𝒳", "lives"]
    for word in words:
        assert "start" in word.get_attribute("title")
    table = page.find_element(By.ID, "heat")
    heads = [cell.text for cell in table.find_elements(By.CSS_SELECTOR, "tbody th")]
    assert heads == ["Where", "is", "Bo", "?"]
    assert len(table.find_elements(By.CSS_SELECTOR, "tbody td")) == 4 * len(words)


# In the place of a reader that knows it: no answer first, then the first word.
SAYS_NO_ANSWER = """
const fetched = window.fetch;
window.fetch = (path, options) => path != "v1/answer" ? fetched(path, options) :
  Promise.resolve(new Response(JSON.stringify({answers: [[
    {text: "", passage: 0, start: 0, end: 0, score: 0.75},
    {text: "Zoë", passage: 0, start: 0, end: 3, score: 0.25},
  ]]})));
"""


def test_no_answer_is_said_in_words_and_marks_none(page):
    page.execute_script(SAYS_NO_ANSWER)
    ask(page, PASSAGE, "Who was born in 1984?")
    wait(page, lambda: len(answers(page)) == 2)
    assert "does not answer" in answers(page)[0].text
    assert "75.0 %" in answers(page)[0].text
    assert chosen(page) == []
    answers(page)[1].send_keys(Keys.SPACE)
    assert chosen(page) == ["Zoë"]


def test_what_the_server_refuses_is_told(page):
    ask(page, " ", "Who?")
    status = page.find_element(By.ID, "status")
    wait(page, lambda: "blank" in status.text)
    assert "error" in status.get_attribute("class")


def test_text_is_never_taken_for_markup(page):
    ask(page, "<b id=evil>Rome</b> <script>evil = 1</script>", "<i id=evil>?</i>")
    wait(page, lambda: answers(page))
    assert not page.find_elements(By.CSS_SELECTOR, "b#evil, i#evil")
    assert page.execute_script("return typeof evil") == "undefined"


def test_an_example_is_one_key_away(page):
    page.find_element(By.CSS_SELECTOR, "#examples button").send_keys(Keys.ENTER)
    wait(page, lambda: answers(page))
    assert page.find_element(By.ID, "question").get_attribute("value")


@pytest.mark.parametrize("width", [360, 1400])
def test_nothing_is_wider_than_the_screen(page, width):
    page.set_window_size(width, 900)
    page.find_element(By.CSS_SELECTOR, "#examples button").send_keys(Keys.ENTER)
    wait(page, lambda: answers(page))
    wide, seen = page.execute_script(
        "return [document.documentElement.scrollWidth, innerWidth]"
    )
    assert wide <= seen


def test_the_console_stays_empty(page):
    page.get_log("browser")  # takes away what other tests left
    ask(page, PASSAGE, "Who?")
    wait(page, lambda: answers(page))
    assert page.get_log("browser") == []
