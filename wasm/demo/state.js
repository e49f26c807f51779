// What the visitor chose, and the address that holds it. Seeds and steps are whole numbers
// up to 2^64 and stay texts or BigInts throughout: a double would round them.

export const LARGEST = (1n << 64n) - 1n;
export const LARGEST_BATCH = 128;

export const DATASETS = ["digits", "picture"];
export const SAMPLERS = ["sequential", "shuffled", "mixing", "bucketed"];
// The order in which a Compose runs them: what happens to ink, then to light, then in a sensor.
export const AUGMENTATIONS = ["gain", "blur", "noise"];

export const INITIAL = {
  data: "digits",
  sampler: "shuffled",
  batch: 12,
  seed: "42",
  step: "0",
  augment: [],
};

// Read a whole number in [0, 2^64) as people write one: 1000000, 1,000,000, 1_000_000, 1e6, 10^6
// or 0xf4240. Throws a RangeError that can be shown as it is.
export function parseUint64(name, text) {
  const written = text.trim().replace(/(?<=\d)[\s_]+(?=\d)/g, "");
  if (written === "") throw new RangeError(`${name} is empty: type a whole number.`);
  const value = wholeNumber(/^\d{1,3}(,\d{3})+$/.test(written) ? written.replaceAll(",", "") : written);
  if (value === null) {
    throw new RangeError(`${name} must be a whole number from 0 on, not “${shorten(text)}”.`);
  }
  if (value > LARGEST) {
    throw new RangeError(`${name} must be at most 2⁶⁴ − 1 = ${LARGEST}.`);
  }
  return String(value);
}

function wholeNumber(written) {
  if (/^(\d+|0x[0-9a-f][0-9a-f_]*)$/i.test(written)) return BigInt(written.replaceAll("_", ""));
  const [, first, operator, last] = written.match(/^(\d+)(e\+?|\s*(?:\^|\*\*)\s*)(\d+)$/i) ?? [];
  if (last === undefined) return null;
  if (last.length > 2) return LARGEST + 1n; // far too large, and slow to work out
  return /e/i.test(operator) ? BigInt(first) * 10n ** BigInt(last) : BigInt(first) ** BigInt(last);
}

export function parseBatchSize(text) {
  const value = Number(text);
  if (!/^\s*\d+\s*$/.test(text) || value < 1 || value > LARGEST_BATCH) {
    throw new RangeError(
      `Batch size must be a whole number from 1 to ${LARGEST_BATCH}, not “${shorten(text)}”.`,
    );
  }
  return value;
}

// The step that is `change` away, kept within [0, 2^64).
export function moved(step, change) {
  const target = BigInt(step) + BigInt(change);
  return String(target < 0n ? 0n : target > LARGEST ? LARGEST : target);
}

export function randomUint64() {
  return String(crypto.getRandomValues(new BigUint64Array(1))[0]);
}

// The address of a state. A picture cannot travel in it; its fingerprint can, so that the page
// at the other end can tell whether it was given the same one.
export function toHash(state, picture) {
  const parts = [`data=${state.data}`];
  if (state.data === "picture" && picture) parts.push(`picture=${picture}`);
  parts.push(`sampler=${state.sampler}`, `batch=${state.batch}`, `seed=${state.seed}`);
  if (state.augment.length > 0) parts.push(`augment=${state.augment.join(",")}`);
  return `#${parts.join("&")}&g=${state.step}`;
}

// A link to a batch also holds the beginning of its digest, so that whoever opens it can compare.
export const toLink = (hash, digest) => `${hash}&digest=${digest.slice(0, 16)}`;

// Return { state, picture, digest, problems }: what an address says, with the initial state in
// the place of what it lacks or gets wrong. Problems are texts for the visitor.
export function fromHash(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...INITIAL };
  const problems = [];
  const take = (key, parse) => {
    const text = given.get(key);
    if (text === null) return;
    try {
      parse(text);
    } catch (error) {
      problems.push(`In this link: ${error.message}`);
    }
  };
  const oneOf = (name, known) => (text) => {
    if (!known.includes(text)) {
      throw new RangeError(`${name} must be ${known.join(" or ")}, not “${shorten(text)}”.`);
    }
    return text;
  };
  take("data", (text) => (state.data = oneOf("data", DATASETS)(text)));
  take("sampler", (text) => (state.sampler = oneOf("sampler", SAMPLERS)(text)));
  take("batch", (text) => (state.batch = parseBatchSize(text)));
  take("seed", (text) => (state.seed = parseUint64("Seed", text)));
  take("g", (text) => (state.step = parseUint64("Global step", text)));
  take("augment", (text) => {
    const names = text.split(",").filter(Boolean).map(oneOf("augment", AUGMENTATIONS));
    state.augment = AUGMENTATIONS.filter((name) => names.includes(name));
  });
  const digits = (key) => (/^[0-9a-f]{16}$/.test(given.get(key) ?? "") ? given.get(key) : "");
  return { state, picture: digits("picture"), digest: digits("digest"), problems };
}

function shorten(text) {
  return text.length > 30 ? `${text.slice(0, 30)}…` : text;
}
