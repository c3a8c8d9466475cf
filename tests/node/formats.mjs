// Reads files of dotprompt with its own library.
// Takes a list of [format, text, input] as JSON, and gives a list of what came of each.
import { Dotprompt } from "dotprompt";
import { readFileSync } from "node:fs";

const found = [];
for (const [, text, input] of JSON.parse(readFileSync(0, "utf8"))) {
  const dotprompt = new Dotprompt();
  const { messages } = await dotprompt.render(text, { input });
  found.push({
    about: dotprompt.parse(text).raw,
    messages: messages.map((one) => [one.role, one.content.map((part) => part.text).join("")]),
  });
}
console.log(JSON.stringify(found));
