"use strict";

// Columns of the attention table at most, the words around the answer, and characters of
// a word at its edge.
const COLUMNS = 60;
const CHARACTERS = 20;
// Below this probability the best answer is more likely wrong than right.
const SURE = 0.5;
const NO_ANSWER = "the passage does not answer this";

const find = (id) => document.getElementById(id);
// Counts what was asked: what is no longer the latest is not shown any more.
let latest = 0;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

async function request(path, body) {
  const response = await fetch(path, {
    method: body ? "POST" : "GET",
    headers: body ? { "Content-Type": "application/json" } : {},
    body: body && JSON.stringify(body),
  });
  // A proxy's own errors are no JSON.
  const result = await response.json().catch(() => null);
  if (!response.ok || !result) {
    const message = result?.error?.message ?? "";
    throw Object.assign(new Error(message), { status: response.status });
  }
  return result;
}

// What the API says to programs, in words of this page.
function inWords({ status, message }) {
  // Bad gateway and timeout: what a proxy says of a server that does not answer it.
  if (!status || status === 502 || status === 504) {
    return "The server does not answer; is it still running?";
  }
  if (status === 429) return "The server is busy; ask again in a moment.";
  if (status === 503) return "No answer in time: the server is busy, or the passage is too long for it.";
  const field = status === 422 ? message.split(":")[0] : "";
  if (field === "questions.0") return "The question has no words, or too many.";
  if (field === "passages.0") return "The passage has no words.";
  if (field.startsWith("questions times top_k")) {
    return "The passage is too long for so many answers; ask for fewer.";
  }
  if (field === "questions times passages" || status === 408 || status === 413) {
    return "The passage is too long; ask about a part of it.";
  }
  return "The server failed; its log says why.";
}

function say(text, isError = false) {
  find("status").textContent = text;
  find("status").classList.toggle("error", isError);
}

function clear() {
  find("result").hidden = true;
}

// Offsets count code points, which JavaScript's own indices do not.
function pieces(text) {
  const points = Array.from(text);
  return { size: points.length, at: ([start, end]) => points.slice(start, end).join("") };
}

function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

function showAnswers(answers, choose) {
  const buttons = answers.map((answer, number) => {
    const button = element("button", undefined, { type: "button", "aria-pressed": "false" });
    button.style.setProperty("--share", `${100 * answer.score}%`);
    button.append(element("span", percent(answer.score)), element("span", answer.text || NO_ANSWER, { dir: "auto" }));
    button.addEventListener("click", () => pick(number));
    return button;
  });
  function pick(number) {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === number)));
    choose(answers[number]);
  }
  find("answers").replaceChildren(
    ...buttons.map((button) => {
      const item = element("li");
      item.append(button);
      return item;
    }),
  );
  // "No answer" may come first with less: its threshold is the reader's.
  const isSure = ({ score }) => score >= SURE;
  find("unsure").hidden = answers[0].text ? isSure(answers[0]) : answers.some(isSure);
  pick(0);
}

const isIn = ([start, end], { start: first, end: last }) => start >= first && end <= last;

// The passage, in one mark the answer, and bars at each word once they are known.
function showWords(passage, answer, why) {
  function part(start, end) {
    const nodes = [];
    let last = start;
    (why ? why.passage_tokens : []).forEach((span, i) => {
      // Word pieces may share a character, which is shown once.
      if (!isIn(span, { start, end }) || span[0] < last) return;
      const word = element("span", passage.at(span));
      // A square root, so that small probabilities can be told from none.
      word.style.setProperty("--start", Math.sqrt(why.start[i]));
      word.style.setProperty("--end", Math.sqrt(why.end[i]));
      word.title = `start ${percent(why.start[i])}, end ${percent(why.end[i])}`;
      nodes.push(passage.at([last, span[0]]), word);
      last = span[1];
    });
    return [...nodes, passage.at([last, end])];
  }
  const mark = element("mark");
  mark.append(...part(answer.start, answer.end));
  find("words").replaceChildren(
    ...part(0, answer.start),
    ...(answer.text ? [mark] : []),
    ...part(answer.end, passage.size),
  );
}

// What the bars say of the chosen answer, for whoever cannot see them or point at a word.
function showProbabilities(answer, why) {
  const first = why.passage_tokens.findIndex(([start]) => start === answer.start);
  const last = why.passage_tokens.findLastIndex(([, end]) => end === answer.end);
  const found = answer.text && first >= 0 && last >= 0;
  find("chosen").textContent = found
    ? `The marked answer: start ${percent(why.start[first])}, end ${percent(why.end[last])}.`
    : "";
}

// Within its box: the page stays where it is.
function scrollToAnswer() {
  const box = find("words");
  const mark = box.querySelector("mark");
  const above = mark ? mark.getBoundingClientRect().top - box.getBoundingClientRect().top : -Infinity;
  box.scrollTop += above - box.clientHeight / 3;
}

function showAttention(passage, question, answer, why) {
  const middle = why.passage_tokens.findIndex((span) => isIn(span, answer));
  const first = Math.max(0, Math.min(middle - COLUMNS / 2, why.passage_tokens.length - COLUMNS));
  const shown = why.passage_tokens.slice(first, first + COLUMNS);
  const short = (text, [start, end]) =>
    end - start > CHARACTERS ? `${text.at([start, start + CHARACTERS])}…` : text.at([start, end]);
  const head = element("tr");
  head.append(element("td"));
  for (const span of shown) {
    const cell = element("th", short(passage, span), { scope: "col", dir: "auto" });
    cell.classList.toggle("chosen", isIn(span, answer));
    head.append(cell);
  }
  const rows = why.question_tokens.map((span, row) => {
    const line = element("tr");
    line.append(element("th", short(question, span), { scope: "row", dir: "auto" }));
    shown.forEach((other, column) => {
      const weight = why.attention[first + column][row];
      const title = `${passage.at(other)} → ${question.at(span)}: ${percent(weight)}`;
      const cell = element("td", undefined, { title });
      cell.append(element("span", percent(weight), { class: "spoken" }));
      cell.style.setProperty("--weight", weight);
      line.append(cell);
    });
    return line;
  });
  const top = element("thead");
  top.append(head);
  const body = element("tbody");
  body.append(...rows);
  find("heat").replaceChildren(top, body);
  // To the middle of what the question's words, which stay at the left, leave free.
  const chosen = head.querySelector(".chosen");
  const middleOfFree = (find("scroll").clientWidth + head.firstChild.offsetWidth) / 2;
  find("scroll").scrollLeft = chosen ? chosen.offsetLeft - middleOfFree : 0;
}

// Shows the answers, and gives a function that adds why, or why not.
function show(asked, answers) {
  const passage = pieces(asked.passage);
  const question = pieces(asked.question);
  let chosen;
  let why = null;
  function draw() {
    showWords(passage, chosen, why);
    if (!why) return;
    showProbabilities(chosen, why);
    showAttention(passage, question, chosen, why);
  }
  function explain(note, explanation = null) {
    why = explanation;
    find("note").textContent = note;
    find("note").hidden = !note;
    find("bars").hidden = find("attention").hidden = !why;
    draw();
  }
  find("result").hidden = false;
  showAnswers(answers, (answer) => {
    chosen = answer;
    draw();
    scrollToAnswer();
  });
  return explain;
}

async function ask() {
  const mine = ++latest;
  const focused = document.activeElement;
  const asked = { question: find("question").value, passage: find("passage").value };
  let explain;
  find("ask").disabled = true;
  say("Reading …");
  try {
    const { answers } = await request("v1/answer", {
      questions: [asked.question],
      passages: [asked.passage],
      top_k: Number(find("count").value),
    });
    if (mine !== latest) return;
    explain = show(asked, answers[0]);
    explain("Why the reader answers so is being looked up …");
    // For those who hear the page: nothing else says that answers are there.
    const count = answers[0].filter(({ text }) => text).length;
    const told = count === 1 ? "1 answer" : `${count} answers`;
    say(answers[0][0].text ? told : "No answer");
  } catch (error) {
    if (mine !== latest) return;
    clear();
    say(inWords(error), true);
    return;
  } finally {
    if (mine === latest) {
      find("ask").disabled = false;
      // A button that is disabled loses the focus.
      if (document.activeElement === document.body) focused.focus();
    }
  }
  try {
    const why = await request("v1/explain", asked);
    if (mine === latest) explain("", why);
  } catch ({ status }) {
    const notes = {
      404: "",
      422: "The passage is too long to show why the reader answers so.",
    };
    const note = notes[status] ?? "Why the reader answers so cannot be shown now.";
    if (mine === latest) explain(note);
  }
}

for (const button of document.querySelectorAll(".example")) {
  button.addEventListener("click", () => {
    find("passage").value = button.dataset.passage;
    find("question").value = button.dataset.question;
    find("form").requestSubmit();
  });
}
find("form").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
find("form").addEventListener(
  "invalid",
  () => {
    clear();
    say("");
  },
  true,
);
find("passage").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("ask").click();
});
request("v1/model")
  .then(({ name, parameters, words }) => {
    const counted = (number) => number.toLocaleString("en");
    const trained = parameters === null ? "" : `, ${counted(parameters)} parameters`;
    find("model").textContent =
      `Reader: ${name}${trained}, a vocabulary of ${counted(words)}`;
  })
  .catch(() => {}); // Whoever asks is told.
// An example to begin with, but for what the browser has kept from before.
if (!find("passage").value) document.querySelector(".example").click();
