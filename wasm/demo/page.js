// Joins the controls, the address, and the worker that runs Python.

import { Address } from "./address.js";
import { addressOf, arrived, showArrival } from "./arrival.js";
import { Chooser } from "./chooser.js";
import { Client, latest } from "./client.js";
import { enableCopying, setCopying } from "./copying.js";
import { complainAbout, onNumber, setDisabled } from "./fields.js";
import { keepForLater } from "./offline.js";
import { drawPair, showPair } from "./pair.js";
import { ProofTable } from "./proof.js";
import {
  fromHash, LARGEST, moved, parseBatchSize, parseUint64, randomUint64, toHash, toLink,
} from "./state.js";
import {
  describeChoices, drawAgain, element, hideBatch, showBatch, showProgress,
} from "./views.js";

const controls = element("controls");
const address = new Address();
let state; // what the visitor asks for
let wantedPicture; // of a link; it counts until the visitor gives one
let problems; // of a link, in words
let picture = null; // the fingerprint of the picture that Python has
let shown = null; // the last batch: { said, images }
let client = null;
let proof = null;
let ready = false;

// Problems

function complain(text) {
  element("problem").hidden = !text;
  element("problem-text").textContent = text;
}

function fail(text) {
  element("boot").hidden = true;
  element("failure").hidden = !text;
  element("failure-text").textContent = text;
}

// Controls and state

function takeAddress(given) {
  let digest;
  ({ state, picture: wantedPicture, digest, problems } = fromHash(given));
  if (/[#&]g=/.test(given)) arrived(state, toHash(state, wantedPicture), digest);
  if (wantedPicture === picture) wantedPicture = "";
}

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
  setDisabled(element("back"), state.step === "0");
  setDisabled(element("first"), state.step === "0");
  setDisabled(element("next"), state.step === String(LARGEST));
}

// The batch first: the address is written late, and may be refused.
function change(changes) {
  if (Object.keys(changes).length > 0) problems = [];
  state = { ...state, ...changes };
  describe();
  refresh(state);
  address.set(addressOf(toHash(state, wantedPicture || picture)));
}

function goTo(step) {
  element("step").value = step;
  complainAbout(element("step"), "");
  change({ step });
}

for (const [id, parse] of [
  ["batch", parseBatchSize],
  ["seed", (text) => parseUint64("Seed", text)],
  ["step", (text) => parseUint64("Global step", text)],
]) {
  onNumber(id, parse, (value) => {
    if (value !== state[id]) change({ [id]: value });
  });
}

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

// From the opening to a batch of the run that it shows.
function visit(step) {
  state = fromHash("").state;
  fillControls();
  goTo(step);
  element("stage").scrollIntoView();
  element("stage").focus({ preventScroll: true });
}
element("spike").addEventListener("click", () => visit("31337"));
for (const button of document.querySelectorAll("[data-step]")) {
  button.addEventListener("click", () => visit(button.dataset.step));
}

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

// The event is late: an address that was waiting to be written may stand there again.
addEventListener("hashchange", ({ newURL }) => {
  takeAddress(new URL(newURL).hash);
  fillControls();
  complain(problems.join(" "));
  change({});
});

// The batch

const refresh = latest(async (wanted) => {
  if (!ready) return;
  if (wanted.data === "picture" && (!picture || wantedPicture)) {
    hide(
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
      request: { ...wanted, batch: String(wanted.batch) },
    });
    if (answer.said.error) {
      hide("There is no such batch.");
      complain(answer.said.error);
    } else {
      complain(problems.join(" "));
      show(answer);
    }
  } catch (error) {
    if (!ready) return; // Python is being started again
    hide("Python has stopped.");
    fail(error.message);
  }
  document.body.dataset.state = "ready";
});

// Everything that is said about a batch is made from `said.of`, what Python made it from.
function show(batch) {
  shown = batch;
  const { of, digest } = batch.said;
  const hash = toHash(of, of.picture);
  showBatch(batch);
  showArrival(hash, batch.said);
  element("link").textContent = new URL(toLink(hash, digest), location.href).href;
  element("link").hidden = true;
  compareDigests();
  setCopying(true);
  document.body.dataset.shown = hash;
}

function hide(reason) {
  shown = null;
  hideBatch(reason);
  setCopying(false);
  compareDigests();
  document.body.dataset.shown = "";
}

function redraw() {
  if (shown) drawAgain(shown);
  drawPair();
}
new ResizeObserver(redraw).observe(element("stage"));
for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
  matchMedia(query).addEventListener("change", redraw);
}

// The picture; onPicture returns whether it is another one than a link asks for.

const chooser = new Chooser((sha256) => {
  const other = Boolean(wantedPicture) && wantedPicture !== sha256;
  picture = sha256;
  wantedPicture = "";
  controls.elements.data.value = "picture";
  change({ data: "picture" });
  return other;
}, complain);

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

async function prove() {
  setDisabled(element("prove"), true);
  proof = new ProofTable();
  try {
    await client.ask("prove");
    element("status").textContent = proof.finish();
  } catch (error) {
    if (ready) element("status").textContent = proof.fail(error.message);
  }
  setDisabled(element("prove"), false);
}
element("prove").addEventListener("click", prove);

// Python

async function begin() {
  ready = false;
  document.body.dataset.state = "loading";
  complain(problems.join(" "));
  fail("");
  element("boot").hidden = false;
  chooser.restart(null);
  client?.close();
  client = new Client((news) => {
    if (news.event === "proved") proof?.add(news.line);
    // After a failure what was on its way still arrives.
    else if (document.body.dataset.state === "loading") showProgress(news);
  });
  try {
    const { versions } = await client.ask("start");
    element("versions").textContent = versions;
    element("boot").hidden = true;
    ready = true;
    document.body.dataset.state = "ready";
    picture = null; // a Python that was started again has none
    change({});
    await chooser.restart((details, transfer) => client.ask("picture", details, transfer));
    showPair((await client.ask("pair")).pair);
    await prove();
    keepForLater();
  } catch (error) {
    ready = false;
    hide("Python does not run here yet.");
    document.body.dataset.state = "failed";
    fail(error.message);
  }
}

element("again").addEventListener("click", () => {
  element("stage").focus({ preventScroll: true }); // this button is about to go
  begin();
});
takeAddress(location.hash);
fillControls();
describe();
// Some browsers run modules from files; what Python needs does not load there.
if (location.protocol !== "file:") begin();
