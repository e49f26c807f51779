// An error thrown inside Pyodide carries the line of its source where it was thrown, and
// that line is a megabyte of minified JavaScript. Only its message is for people.
// Importing this module also catches what nobody else caught.

export function exitOnError(error) {
  const message = error instanceof Error ? error.message : String(error);
  console.error(message.slice(0, 20_000));
  process.exit(1);
}

process.on("uncaughtException", exitOnError);
process.on("unhandledRejection", exitOnError);
