// The page of a version: shows the latest version and the ones around it. A page that is a file does
// not know later ones, because it is not rewritten for each later version.

import { byId, element } from "./site.js";

// At most so many versions before and after this one are listed.
const STEPS = 3;
const standing = byId("standing");
const home = standing.firstChild.href;
const version = document.querySelector("h1 small").textContent;

function link({ version }, text = version, rel = "") {
  return element("a", { href: `${home}/${version}`, rel }, text);
}

async function show() {
  const answer = await fetch(standing.dataset.list).catch(() => null);
  if (!answer?.ok) return; // the page keeps the link that it has
  const { data } = await answer.json();
  const readable = data.filter((entry) => !entry.withdrawn || entry.version === version);
  const at = readable.findIndex((entry) => entry.version === version);
  if (at < 0) return;
  document.querySelector(".steps").replaceChildren(
    ...readable.slice(Math.max(0, at - STEPS), at + STEPS + 1).map((entry) => {
      const isThis = entry.version === version, code = element("code", {}, entry.version);
      return element("li", { className: isThis ? "now" : "" }, isThis ? code : link(entry, code));
    }),
  );
  if (at === 0) {
    standing.replaceChildren("This is the latest version.");
    return;
  }
  standing.replaceChildren(
    element("span", {}, `You are looking at ${version}; the latest is `, link(readable[0]), "."),
    element("a", { href: `${home}/compare?from=${version}&to=latest` }, "Compare with the latest"),
    at > 1 ? link(readable[at - 1], `Next: ${readable[at - 1].version}`, "next") : "",
  );
}

show();
