// The page of a version: shows the latest version and the next one. A page that is a file does
// not know them, because it is not rewritten for each later version.

const standing = document.getElementById("standing");
const { version, list, page, compare } = standing.dataset;

function link(href, text, rel = "") {
  const made = document.createElement("a");
  Object.assign(made, { href, textContent: text });
  if (rel) made.rel = rel;
  return made;
}

function pageOf(entry) {
  return page.replace("{version}", entry.version);
}

async function show() {
  const answer = await fetch(list).catch(() => null);
  if (!answer?.ok) return; // the page keeps the link that it has
  const entries = (await answer.json()).data;
  const readable = entries.filter((entry) => !entry.withdrawn || entry.version === version);
  const at = readable.findIndex((entry) => entry.version === version);
  if (at < 0) return;
  if (at === 0) {
    standing.replaceChildren("This is the latest version.");
    return;
  }
  const told = document.createElement("span");
  told.append(`You are looking at ${version}; the latest is `, link(pageOf(readable[0]), readable[0].version), ".");
  const parts = [told, link(`${compare}?from=${version}&to=latest`, "Compare with the latest")];
  if (at > 1) parts.push(link(pageOf(readable[at - 1]), `Next: ${readable[at - 1].version}`, "next"));
  standing.replaceChildren(...parts);
}

show();
