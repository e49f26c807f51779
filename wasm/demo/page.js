// Joins the controls, the address, and the worker that runs Python.

import { Client, latest } from "./client.js";
import { enableCopying, setCopying } from "./copying.js";
import { decode } from "./picture.js";
import {
  fromHash, LARGEST, moved, parseBatchSize, parseUint64, randomUint64, toHash,
} from "./state.js";
import { describeChoices, drawAgain, element, ProofTable, showBatch, showProgress } from "./views.js";

const controls = element("controls");
// The picture that a link was made with counts until the visitor gives one.
let { state, picture: wantedPicture, problems } = fromHash(location.hash);
let picture = null; // { file, sha256 } of the picture that Python has
let pictureFile = null; // the picture that it should have
let shown = null; // the last batch: { said, images }
let client = null;
let proof = null;
let ready = false;

// Problems

function complain(text, { again = false } = {}) {
  element("problem").hidden = !text;
  element("problem-text").textContent = text;
  element("again").hidden = !again;
}

function complainAbout(input, text) {
  const wrong = element(`${input.id}-wrong`);
  wrong.hidden = !text;
  wrong.textContent = text;
  input.setAttribute("aria-invalid", String(Boolean(text)));
}

// Controls and state

function fillControls() {
  for (const name of ["data", "sampler"]) controls.elements[name].value = state[name];
  for (const box of controls.elements.augment) box.checked = state.augment.includes(box.value);
  for (const [id, text] of [["batch", state.batch], ["seed", state.seed], ["step", state.step]]) {
    element(id).value = text;
    complainAbout(element(id), "");
  }
}

// What follows from the state: hints, and which steps there are to go to.
function describe() {
  describeChoices(state);
  element("step").classList.toggle("long", state.step.length > 14);
  element("back").disabled = state.step === "0";
  element("first").disabled = state.step === "0";
  element("next").disabled = state.step === String(LARGEST);
}

function change(changes) {
  if (Object.keys(changes).length > 0) problems = [];
  state = { ...state, ...changes };
  describe();
  history.replaceState(null, "", toHash(state, wantedPicture || picture?.sha256));
  refresh(state);
}

function goTo(step) {
  element("step").value = step;
  complainAbout(element("step"), "");
  change({ step });
}

// A typed number counts as soon as it is one; what is wrong with it is said when it is left.
function onNumber(id, parse) {
  const input = element(id);
  input.addEventListener("input", () => {
    try {
      const value = parse(input.value);
      complainAbout(input, "");
      if (value !== state[id]) change({ [id]: value });
    } catch {
      // Half of a number, perhaps.
    }
  });
  input.addEventListener("change", () => {
    try {
      input.value = parse(input.value);
      complainAbout(input, "");
    } catch (error) {
      complainAbout(input, error.message);
    }
  });
}

onNumber("batch", parseBatchSize);
onNumber("seed", (text) => parseUint64("Seed", text));
onNumber("step", (text) => parseUint64("Global step", text));

controls.addEventListener("submit", (event) => event.preventDefault());
controls.addEventListener("change", ({ target }) => {
  if (target.name === "data" || target.name === "sampler") change({ [target.name]: target.value });
  if (target.name === "augment") {
    const boxes = [...controls.elements.augment];
    change({ augment: boxes.filter((box) => box.checked).map((box) => box.value) });
  }
});

element("back").addEventListener("click", () => goTo(moved(state.step, -1)));
element("next").addEventListener("click", () => goTo(moved(state.step, 1)));
element("first").addEventListener("click", () => goTo("0"));
element("far").addEventListener("click", () => goTo(randomUint64()));
element("seed-random").addEventListener("click", () => {
  element("seed").value = randomUint64();
  complainAbout(element("seed"), "");
  change({ seed: element("seed").value });
});

// Left and right step wherever they have no other meaning; up and down in the step's field.
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const inStep = event.target.id === "step";
  const steps = inStep ? { ArrowUp: 1, ArrowDown: -1 } : { ArrowRight: 1, ArrowLeft: -1 };
  if (!(event.key in steps)) return;
  if (!inStep && event.target.closest("input, .scroll")) return;
  event.preventDefault();
  goTo(moved(state.step, steps[event.key]));
});

addEventListener("hashchange", () => {
  ({ state, picture: wantedPicture, problems } = fromHash(location.hash));
  if (wantedPicture === picture?.sha256) wantedPicture = "";
  fillControls();
  complain(problems.join(" "));
  change({});
});

// The batch

const refresh = latest(async (wanted) => {
  if (!ready) return;
  const { data, sampler, batch, seed, step, augment } = wanted;
  if (data === "picture" && (!picture || wantedPicture)) {
    hideBatch(
      wantedPicture
        ? "This link shows a batch of a picture, and a picture does not travel in a link. " +
            "Choose the same file here to see it."
        : "Choose a picture, or drop one on this page: its text lines become the data.",
    );
    return;
  }
  document.body.dataset.state = "building";
  try {
    const answer = await client.ask("show", {
      request: { data, sampler, batch: String(batch), seed, step, augment },
    });
    if (answer.said.error) {
      complain(answer.said.error);
    } else {
      shown = answer;
      complain(problems.join(" "));
      showBatch(wanted, shown);
      compareDigests();
      setCopying(true);
      document.body.dataset.shown = toHash(wanted, picture?.sha256);
    }
  } catch (error) {
    complain(error.message, { again: true });
  }
  document.body.dataset.state = "ready";
});

function hideBatch(reason) {
  shown = null;
  element("shown").hidden = true;
  element("boot").hidden = false;
  element("boot-bar").hidden = true;
  element("boot-bytes").textContent = "";
  element("boot-text").textContent = reason;
  element("where").textContent = "\u00a0";
  element("code").textContent = "…";
  setCopying(false);
  document.body.dataset.shown = "";
}

const redraw = () => shown && drawAgain(shown);
new ResizeObserver(redraw).observe(element("stage"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// The picture

async function usePicture(file) {
  pictureFile = file;
  if (!ready) {
    element("picture-said").textContent = `“${file.name}” is cut up as soon as Python runs.`;
    return;
  }
  element("picture-said").textContent = `Cutting up “${file.name}” …`;
  complain("");
  try {
    const { pixels, width, height } = await decode(file);
    const cut = await client.ask(
      "picture", { pixels, width, height, name: file.name }, [pixels.buffer],
    );
    if (cut.error) throw new Error(cut.error);
    const other = wantedPicture && wantedPicture !== cut.sha256;
    picture = { file, sha256: cut.sha256 };
    wantedPicture = "";
    element("picture-said").textContent =
      `“${file.name}”, ${width} × ${height}: cut into ${cut.pieces} ` +
      `${cut.isText ? "words" : "pieces"}.` +
      (other ? " These are not the pixels that the link was made with." : "");
    controls.elements.data.value = "picture";
    change({ data: "picture" });
  } catch (error) {
    element("picture-said").textContent = picture
      ? `Still “${picture.file.name}”.`
      : "or drop one anywhere on this page. It stays on your machine.";
    complain(error.message);
  }
}

element("file").addEventListener("change", ({ target }) => {
  if (target.files.length > 0) usePicture(target.files[0]);
  target.value = ""; // so that the same file can be chosen again
});
document.addEventListener("dragover", (event) => {
  if (![...event.dataTransfer.types].includes("Files")) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
document.addEventListener("drop", (event) => {
  document.body.classList.remove("dropping");
  if (event.dataTransfer.files.length === 0) return;
  event.preventDefault();
  usePicture(event.dataTransfer.files[0]);
});

// Copying, comparing, proving

enableCopying((text) => (element("status").textContent = text));

function compareDigests() {
  const other = element("other").value.trim().toLowerCase();
  const said = element("other-said");
  const kinds = [
    [!other || !shown, "", ""],
    [!/^[0-9a-f]{64}$/.test(other), "bad", "A digest has 64 hexadecimal digits."],
    [other === shown?.said.digest, "good", "The same: your machine made this very batch."],
    [true, "bad", "Different: not the batch shown here."],
  ];
  const [, kind, text] = kinds.find(([applies]) => applies);
  said.dataset.kind = kind;
  said.textContent = text;
}
element("other").addEventListener("input", compareDigests);

element("prove").addEventListener("click", async () => {
  element("prove").disabled = true;
  proof = new ProofTable();
  try {
    await client.ask("prove");
    proof.finish();
  } catch (error) {
    proof.fail(error.message);
  }
  element("prove").disabled = false;
  element("prove").textContent = "Prove it again";
});

// Python

async function begin() {
  ready = false;
  document.body.dataset.state = "loading";
  element("boot-text").textContent = "Loading …";
  complain(problems.join(" "));
  client?.close();
  client = new Client((news) => {
    if (news.event === "progress") showProgress(news);
    else proof?.add(news.line);
  });
  try {
    const { versions } = await client.ask("start");
    element("versions").textContent = versions;
    element("prove").disabled = false;
    ready = true;
    document.body.dataset.state = "ready";
    picture = null; // a Python that was started again has none
    if (pictureFile) await usePicture(pictureFile);
    else change({});
  } catch (error) {
    hideBatch("Python does not run here yet.");
    document.body.dataset.state = "failed";
    complain(error.message, { again: true });
  }
}

element("again").addEventListener("click", begin);
fillControls();
describe();
begin();
