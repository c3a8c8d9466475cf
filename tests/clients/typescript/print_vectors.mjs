// Prints the outcomes of the shared cases: node print_vectors.mjs HUB.JS VECTORS.JSON

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

import { outcomesOf } from "./vectors.mjs";

const [module, vectors] = process.argv.slice(2);
const client = await import(pathToFileURL(module).href);
console.log(JSON.stringify(outcomesOf(JSON.parse(readFileSync(vectors, "utf8")), client)));
