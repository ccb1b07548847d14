"""Tests of the page, in a real browser."""

import re
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
    """The page, freshly loaded, with its first example answered."""
    browser.set_window_size(1280, 900)
    browser.get(address)
    wait_for_reasons(browser)
    return browser


def wait(page, condition):
    return WebDriverWait(page, 60, poll_frequency=0.02).until(lambda page: condition())


def by_id(page, name):
    return page.find_element(By.ID, name)


def wait_for_answers(page):
    wait(page, by_id(page, "ask").is_enabled)


def wait_for_reasons(page):
    wait(page, lambda: by_id(page, "bars").is_displayed())


def fill_in(page, passage, question):
    fields = {"passage": passage, "question": question}
    for name, text in fields.items():
        page.execute_script(
            "arguments[0].value = arguments[1]", by_id(page, name), text
        )


def ask(page, passage, question):
    """Fills the form in by keyboard alone."""
    fill_in(page, passage, "")
    by_id(page, "passage").send_keys(Keys.TAB)
    page.switch_to.active_element.send_keys(question, Keys.ENTER)
    wait_for_answers(page)


def answers(page):
    return page.find_elements(By.CSS_SELECTOR, "#answers button")


def marked(page):
    """In one go, for the passage is drawn again once the reasons are there."""
    script = "return [...words.querySelectorAll('mark')].map((m) => m.textContent)"
    return page.execute_script(script)


# Answers some addresses in the place of the server. Without a status there is no
# network; what waits is answered once it is let go.
STAND_IN = """
const fetched = window.fetch, replies = arguments[0];
window.letGo = {};
window.fetch = async (path, options) => {
  if (!(path in replies)) return fetched(path, options);
  const { status, body, waits } = replies[path];
  if (waits) await new Promise((go) => { window.letGo[path] = go; });
  if (!status) throw new TypeError("no network");
  return new Response(JSON.stringify(body), { status });
};
"""


def stand_in(page, **replies):
    """`answer` or `explain`: what to reply there."""
    replies = {f"v1/{name}": reply for name, reply in replies.items()}
    page.execute_script(STAND_IN, replies)


def let_go(page, name):
    page.execute_script("window.letGo[arguments[0]]()", f"v1/{name}")


def found(*answers):
    """The reply with answers of (text, start, score)."""
    fields = [
        {"text": text, "passage": 0, "start": start, "end": start + len(text)}
        | {"score": score}
        for text, start, score in answers
    ]
    return {"status": 200, "body": {"answers": [fields]}}


def refused(status, message="questions.0: API talk"):
    return {"status": status, "body": {"error": {"code": "x", "message": message}}}


def test_a_question_is_answered_by_keyboard_alone(page, trained_reader):
    question = "Where does Zoë live?"
    expected = trained_reader.answer(question, PASSAGE, top_k=3)

    ask(page, PASSAGE, question)
    wait_for_reasons(page)

    assert len(answers(page)) == 3
    for button, answer in zip(answers(page), expected, strict=True):
        assert answer.text in button.text
        assert f"{100 * answer.score:.1f} %" in button.text
    # Each answer that is chosen is marked in the passage, which is shown as it is.
    for button, answer in zip(answers(page), expected, strict=True):
        button.send_keys(Keys.SPACE)
        assert marked(page) == [answer.text]
        assert button.get_attribute("aria-pressed") == "true"
    assert by_id(page, "words").text == PASSAGE


def test_the_reader_is_named(page):
    wait(page, lambda: by_id(page, "model").text)
    said = r"Reader: qanet, [\d,]+ parameters, a vocabulary of [\d,]+"
    assert re.fullmatch(said, by_id(page, "model").text)


def test_probabilities_and_attention_are_shown(page):
    ask(page, PASSAGE, "Where is Bo?")
    wait_for_reasons(page)

    words = page.find_elements(By.CSS_SELECTOR, "#words span")
    assert [word.text for word in words][:3] == ["Zoë", "𝒳", "lives"]
    for word in words:
        assert "start" in word.get_attribute("title")
    table = by_id(page, "heat")
    heads = [cell.text for cell in table.find_elements(By.CSS_SELECTOR, "tbody th")]
    assert heads == ["Where", "is", "Bo", "?"]
    cells = table.find_elements(By.CSS_SELECTOR, "tbody td")
    assert len(cells) == 4 * len(words)
    # What a screen reader says of a cell is what its title shows.
    for cell in cells[:5]:
        spoken = cell.get_attribute("textContent")
        assert spoken
        assert cell.get_attribute("title").endswith(f": {spoken}")
    chosen = table.find_elements(By.CSS_SELECTOR, "thead .chosen")
    assert "".join(cell.text for cell in chosen) == marked(page)[0].replace(" ", "")


def test_first_sight_is_an_example_with_its_answer(page):
    assert "question about a text" in page.find_element(By.TAG_NAME, "header").text
    assert by_id(page, "passage").get_attribute("placeholder")
    assert by_id(page, "question").get_attribute("placeholder")
    assert marked(page)[0] in by_id(page, "passage").get_attribute("value")
    assert len(answers(page)) == 3
    # Whoever begins with the keyboard begins at the top.
    assert page.switch_to.active_element.tag_name == "body"


# Before the page's own script runs, as where the browser restores a form.
KEPT = """
document.addEventListener("readystatechange", () => {
  if (document.readyState === "interactive") passage.value = "kept";
});
"""


def test_what_the_browser_has_kept_is_not_overwritten(browser, address):
    script = browser.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": KEPT}
    )
    browser.get(address)
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    assert by_id(browser, "passage").get_attribute("value") == "kept"
    assert by_id(browser, "status").text == ""
    assert not by_id(browser, "result").is_displayed()


def test_an_example_is_one_key_away(page):
    buttons = page.find_elements(By.CSS_SELECTOR, ".example")
    asked = set()
    for button in buttons:
        button.send_keys(Keys.ENTER)
        wait_for_answers(page)
        assert marked(page)[0] in button.get_attribute("data-passage")
        asked.add(by_id(page, "question").get_attribute("value"))
    assert len(asked) == len(buttons) == 3


def test_nothing_is_called_by_two_names_nor_two_things_by_one(page):
    names = [name.text for name in page.find_elements(By.CSS_SELECTOR, "label, h1, h2")]
    assert len(set(names)) == len(names) == 7


def test_no_answer_is_said_in_words_and_marks_none(page):
    stand_in(page, answer=found(("", 0, 0.75), ("Zoë", 0, 0.25)))
    ask(page, PASSAGE, "Who was born in 1984?")
    assert "does not answer" in answers(page)[0].text
    assert "75.0 %" in answers(page)[0].text
    assert by_id(page, "status").text == "No answer"
    assert marked(page) == []
    answers(page)[1].send_keys(Keys.SPACE)
    assert marked(page) == ["Zoë"]


def test_a_doubtful_answer_is_called_so(page):
    for score, unsure in ((0.49, True), (0.5, False)):
        stand_in(page, answer=found(("Zoë", 0, score), ("Bo", 28, 0.1)))
        ask(page, PASSAGE, "Who?")
        assert ("not sure" in by_id(page, "result").text) == unsure
    # By a threshold of the reader's own.
    stand_in(page, answer=found(("", 0, 0.3), ("Zoë", 0, 0.65)))
    ask(page, PASSAGE, "Who?")
    assert "not sure" not in by_id(page, "result").text


def test_answers_do_not_wait_for_reasons(page):
    reasons = {
        "passage_tokens": [[0, 1], [2, 3], [4, 5]],
        "question_tokens": [[0, 3], [3, 4]],
        "start": [0.1, 0.2, 0.7],
        "end": [0.3, 0.3, 0.4],
        "attention": [[0.5, 0.5]] * 3,
    }
    stand_in(
        page,
        answer=found(("a b", 0, 0.9), ("c", 4, 0.1)),
        explain={"status": 200, "body": reasons, "waits": True},
    )
    ask(page, "a b c", "Who?")
    assert marked(page) == ["a b"]
    assert not by_id(page, "bars").is_displayed()
    assert not by_id(page, "attention").is_displayed()
    answers(page)[1].send_keys(Keys.SPACE)
    let_go(page, "explain")
    wait_for_reasons(page)
    # What was chosen meanwhile stays so.
    assert marked(page) == ["c"]
    word = page.find_element(By.CSS_SELECTOR, "#words mark span")
    assert "70.0 %" in word.get_attribute("title")
    assert by_id(page, "chosen").text == "The marked answer: start 70.0 %, end 40.0 %."
    assert by_id(page, "attention").is_displayed()


@pytest.mark.parametrize(
    ("reply", "word"),
    [(refused(422), "too long"), (refused(500), "cannot"), ({}, "now")],
)
def test_without_reasons_no_bars_are_spoken_of(page, reply, word):
    stand_in(page, answer=found(("Zoë", 0, 0.9)), explain=reply)
    ask(page, PASSAGE, "Who?")
    note = by_id(page, "note")
    wait(page, lambda: word in note.text)
    assert "API" not in note.text
    assert not by_id(page, "bars").is_displayed()
    assert not by_id(page, "attention").is_displayed()
    assert marked(page) == ["Zoë"]


@pytest.mark.parametrize("words", [200, 5000])
def test_a_long_passage_is_shown_in_a_box_where_the_answer_is(page, words):
    passage = " ".join(f"w{i}" for i in range(words))
    places = [passage.index(f"w{i}") for i in (words - 20, 2, words // 2)]
    given = [(passage[place:][:9], place, 0.3) for place in places]
    stand_in(page, answer=found(*given))
    ask(page, passage, "Who?")
    page.execute_script("scrollTo(0, 0)")

    for button in answers(page):
        button.click()
        above, below, height, scrolled = page.execute_script(
            """
            const [box, mark] = [words, words.querySelector("mark")].map(
              (element) => element.getBoundingClientRect());
            return [mark.top - box.top, box.bottom - mark.bottom,
              document.documentElement.scrollHeight, scrollY];
            """
        )
        assert above >= 0
        assert below >= 0
        assert height < 1500
        assert scrolled == 0


REFUSALS = [
    (refused(422, "questions.0: is blank; give some text"), "question"),
    (refused(422, "questions.0: more than 1000 words and signs"), "question"),
    (
        refused(422, "questions times passages: more than 8 words and signs"),
        "passage is too long",
    ),
    (refused(422, "passages.0: is blank; give some text"), "passage has no words"),
    (
        refused(
            422,
            "questions times top_k times characters of the longest passage: 8 is more "
            "than 1",
        ),
        "ask for fewer",
    ),
    (refused(413), "passage is too long"),
    (refused(408), "passage is too long"),
    (refused(429), "busy"),
    (refused(503), "too long for it"),
    (refused(500), "failed"),
    (refused(502), "does not answer"),
    ({}, "does not answer"),
]


@pytest.mark.parametrize(("reply", "words"), REFUSALS)
def test_a_refusal_is_told_in_words_of_the_page(page, reply, words):
    stand_in(page, answer=reply)
    ask(page, PASSAGE, "Who?")
    status = by_id(page, "status")
    assert words in status.text
    assert "error" in status.get_attribute("class")
    for talk in ("API", "questions", "passages", "blank", "1000", "8"):
        assert talk not in status.text
    # No older answers stand beside it.
    assert not by_id(page, "result").is_displayed()


@pytest.mark.parametrize(
    ("passage", "question", "words"),
    [(" \u200b", "Who?", "The passage has no words"), ("a", "\u200b", "The question")],
)
def test_what_the_server_itself_refuses_is_told(page, passage, question, words):
    ask(page, passage, question)
    assert words in by_id(page, "status").text


@pytest.mark.parametrize(
    ("name", "value"),
    [("passage", ""), ("question", ""), ("count", ""), ("count", "0"), ("count", "21")],
)
def test_what_cannot_be_asked_is_not_sent(page, name, value):
    stand_in(page, answer={"waits": True})
    field = by_id(page, name)
    page.execute_script("arguments[0].value = arguments[1]", field, value)
    by_id(page, "passage").send_keys(Keys.CONTROL, Keys.ENTER)
    # The browser says so, in its words, at the field.
    assert page.switch_to.active_element == field
    assert page.execute_script("return Object.keys(window.letGo)") == []
    assert by_id(page, "ask").is_enabled()
    assert not by_id(page, "result").is_displayed()
    # Nor that there were answers.
    assert by_id(page, "status").text == ""


def test_nothing_more_is_asked_while_the_reader_reads(page):
    stand_in(page, answer=found(("Zoë", 0, 0.9)) | {"waits": True})
    fill_in(page, PASSAGE, "Who?")
    button = by_id(page, "ask")
    button.send_keys(Keys.SPACE)
    assert not button.is_enabled()
    assert "Reading" in by_id(page, "status").text
    # Neither by key from the passage.
    page.execute_script("window.first = window.letGo['v1/answer']")
    by_id(page, "passage").send_keys(Keys.CONTROL, Keys.ENTER)
    assert page.execute_script("return first === window.letGo['v1/answer']")
    let_go(page, "answer")
    wait_for_answers(page)
    assert marked(page) == ["Zoë"]


def test_the_keyboard_stays_where_it_was(page):
    fill_in(page, PASSAGE, "Who?")
    button = by_id(page, "ask")
    button.send_keys(Keys.SPACE)
    wait_for_answers(page)
    assert page.switch_to.active_element == button


def test_text_is_never_taken_for_markup(page):
    ask(page, "<b id=evil>Rome</b> <script>evil = 1</script>", "<i id=evil>?</i>")
    wait_for_reasons(page)
    assert not page.find_elements(By.CSS_SELECTOR, "b#evil, i#evil")
    assert page.execute_script("return typeof evil") == "undefined"


@pytest.fixture
def screen(page):
    """Gives the page a screen of another width."""

    def set_width(width):
        # A window of the browser cannot be as narrow as a telephone.
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": True}
        page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    yield set_width
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("width", [360, 1400])
def test_nothing_is_wider_than_the_screen(page, screen, width):
    screen(width)
    ask(page, "word" * 99 + " Zoë lives in Rome. " * 30, "Where" * 99 + "?")
    wait_for_reasons(page)
    seen, wide, tall = page.execute_script(
        "const { scrollWidth, scrollHeight } = document.documentElement;"
        "return [innerWidth, scrollWidth, scrollHeight]"
    )
    assert seen == width
    assert wide <= seen
    assert tall < 3000


@pytest.mark.parametrize("width", [360, 1400])
def test_attention_begins_where_the_answer_is(page, screen, width):
    screen(width)
    passage = " ".join(f"word{i}" for i in range(200))
    stand_in(page, answer=found(("word100 word101", passage.index("word100"), 0.9)))
    ask(page, passage, "Who?")
    wait_for_reasons(page)
    # Right of the question's words, which stay where they are.
    edge, left, right = page.execute_script(
        """
        const [corner, chosen] = [...heat.querySelectorAll("thead td, .chosen")].map(
          (cell) => cell.getBoundingClientRect());
        return [corner.right, chosen.left, chosen.right];
        """
    )
    assert edge <= left
    assert right <= width


def test_the_console_stays_empty(page):
    page.get_log("browser")  # takes away what other tests left
    ask(page, PASSAGE, "Who?")
    wait_for_reasons(page)
    assert page.get_log("browser") == []
