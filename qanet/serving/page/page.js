"use strict";

const EXAMPLES = {
  museum: [
    "The Kolan museum stands in the old harbour of Bergen. It was opened in 1984 by Anna Kov, " +
      "a collector of sea charts, and moved to its present building, a former warehouse, nine " +
      "years later. Its 3,000 charts are the largest collection of their kind in Norway.",
    "Who opened the museum?",
  ],
  river: [
    "The river rises at 1,240 metres above the sea and runs for 310 kilometres to the north. " +
      "Its only dam, finished in 1931, supplies two towns with power. Salmon, which had " +
      "disappeared after the dam was built, returned when a ladder for fish was added in 1998.",
    "When did the salmon return?",
  ],
};
// Columns of the attention table at most; the words around the answer.
const COLUMNS = 60;
const NO_ANSWER = "the passage does not answer this";

const find = (id) => document.getElementById(id);
let asked = 0;

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
  const result = await response.json();
  if (!response.ok) throw new Error(result.error.message);
  return result;
}

function say(text, isError = false) {
  find("status").textContent = text;
  find("status").classList.toggle("error", isError);
}

// Offsets count code points, which JavaScript's own indices do not.
function pieces(text, spans) {
  const points = Array.from(text);
  return { at: ([start, end]) => points.slice(start, end).join(""), points, spans };
}

function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

function showAnswers(answers, choose) {
  const buttons = answers.map((answer, number) => {
    const button = element("button", undefined, { type: "button", "aria-pressed": "false" });
    button.style.setProperty("--share", `${100 * answer.score}%`);
    button.append(element("span", percent(answer.score)), element("span", answer.text || NO_ANSWER));
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
  pick(0);
}

const isIn = ([start, end], answer) => start >= answer.start && end <= answer.end;

function showWords(passage, answer, explained) {
  const parts = [];
  let last = 0;
  passage.spans.forEach((span, i) => {
    parts.push(passage.points.slice(last, span[0]).join(""));
    const word = element("span", passage.at(span));
    if (explained) {
      // A square root, so that small probabilities can be told from none.
      word.style.setProperty("--start", Math.sqrt(explained.start[i]));
      word.style.setProperty("--end", Math.sqrt(explained.end[i]));
      word.title = `start ${percent(explained.start[i])}, end ${percent(explained.end[i])}`;
    }
    word.classList.toggle("chosen", isIn(span, answer));
    parts.push(word);
    last = span[1];
  });
  parts.push(passage.points.slice(last).join(""));
  find("words").replaceChildren(...parts);
}

function showAttention(passage, question, answer, explained) {
  const middle = passage.spans.findIndex((span) => isIn(span, answer));
  const first = Math.max(0, Math.min(middle - COLUMNS / 2, passage.spans.length - COLUMNS));
  const shown = passage.spans.slice(first, first + COLUMNS);
  const head = element("tr");
  head.append(element("td"));
  for (const span of shown) {
    const cell = element("th", passage.at(span), { scope: "col" });
    cell.classList.toggle("chosen", isIn(span, answer));
    head.append(cell);
  }
  const rows = question.spans.map((span, row) => {
    const line = element("tr");
    line.append(element("th", question.at(span), { scope: "row" }));
    shown.forEach((other, column) => {
      const weight = explained.attention[first + column][row];
      const title = `${passage.at(other)} → ${question.at(span)}: ${percent(weight)}`;
      const cell = element("td", undefined, { title });
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
}

async function ask() {
  const number = ++asked;
  const passage = find("passage").value;
  const question = find("question").value;
  say("Reading …");
  try {
    const { answers } = await request("v1/answer", {
      questions: [question],
      passages: [passage],
      top_k: Number(find("count").value),
    });
    let explained = null;
    let note = "";
    try {
      explained = await request("v1/explain", { question, passage });
    } catch (error) {
      note = error.message;
    }
    if (number !== asked) return;
    const passageText = pieces(passage, explained ? explained.passage_tokens : []);
    const questionText = pieces(question, explained ? explained.question_tokens : []);
    find("result").hidden = false;
    find("attention").hidden = !explained;
    showAnswers(answers[0], (answer) => {
      if (explained) {
        showWords(passageText, answer, explained);
        showAttention(passageText, questionText, answer, explained);
      } else {
        showWords({ ...passageText, spans: [[answer.start, answer.end]] }, answer, null);
      }
    });
    say(note);
  } catch (error) {
    if (number === asked) say(error.message, true);
  }
}

for (const [name, [passage, question]] of Object.entries(EXAMPLES)) {
  const button = element("button", name, { type: "button" });
  button.addEventListener("click", () => {
    find("passage").value = passage;
    find("question").value = question;
    ask();
  });
  find("examples").append(button, " ");
}
find("form").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
find("passage").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask();
});
request("v1/model")
  .then((model) => {
    const words = model.words.toLocaleString("en");
    find("model").textContent =
      `${model.name}, ${model.parameters.toLocaleString("en")} parameters, ${words} words`;
  })
  .catch((error) => say(error.message, true));
