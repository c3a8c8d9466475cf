// The page of a version: shows the latest version and those around it, which a file that is written
// once does not know.

import { byId, element } from "./site.js";

// At most so many versions before and after this one are listed.
const STEPS = 3;
const standing = byId("standing");
const home = standing.firstChild.href;
const version = document.querySelector("h1 small").textContent;

function link(to, text = to) {
  return element("a", { href: `${home}/${to}` }, text);
}

async function show() {
  const answer = await fetch(standing.dataset.list).catch(() => null);
  if (!answer?.ok) return; // the page keeps the link that it has
  const { data } = await answer.json();
  const readable = data.filter((entry) => !entry.withdrawn || entry.version === version).map((entry) => entry.version);
  const at = readable.indexOf(version);
  if (at < 0) return;
  document.querySelector(".steps").replaceChildren(
    ...readable.slice(Math.max(0, at - STEPS), at + STEPS + 1).map((one) => {
      const code = element("code", {}, one);
      return one === version ? element("li", { className: "now" }, code) : element("li", {}, link(one, code));
    }),
  );
  standing.replaceChildren(...(at ? [
    element("span", {}, `You are looking at ${version}; the latest is `, link(readable[0]), "."),
    link(`compare?from=${version}&to=latest`, "Compare with the latest"),
  ] : ["This is the latest version."]));
}

show();
