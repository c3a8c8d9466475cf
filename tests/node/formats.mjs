// Reads files of other formats: dotprompt's with its own library, and others as YAML.
// Takes a list of [format, text, input] as JSON, and gives a list of what came of each.
import { Dotprompt } from "dotprompt";
import { readFileSync } from "node:fs";
import { parse } from "yaml";

const found = [];
for (const [format, text, input] of JSON.parse(readFileSync(0, "utf8"))) {
  if (format === "dotprompt") {
    const dotprompt = new Dotprompt();
    const { messages } = await dotprompt.render(text, { input });
    found.push({
      about: dotprompt.parse(text).raw,
      messages: messages.map((one) => [one.role, one.content.map((part) => part.text).join("")]),
    });
  } else {
    found.push({ about: parse(text) });
  }
}
console.log(JSON.stringify(found));
