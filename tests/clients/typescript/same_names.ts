// Whether what hub.d.ts says is there, and nothing else: source.js is hub.js under another name.

import type * as declared from "./hub.js";
import type * as there from "./source.js";

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : ["missing", Exclude<B, A>]) : ["too much", Exclude<A, B>];

export const values: Same<keyof typeof declared, keyof typeof there> = true;
export const ofHub: Same<keyof declared.Hub, keyof there.Hub> = true;
export const ofPrompt: Same<keyof declared.Prompt, keyof there.Prompt> = true;
export const ofErrors: Same<keyof declared.Unavailable, keyof there.Unavailable> = true;
