// Rules for the JavaScript of the pages and of the tests that drive them. ESLint's recommended rules find mistakes;
// our additional rules keep the style uniform. No rule is about formatting.
import js from "@eslint/js";
import globals from "globals";

const rules = {
  eqeqeq: ["error", "always", { null: "ignore" }],
  "no-var": "error",
  "prefer-const": "error",
  // A destructured member that is only there to be left out of the rest is named "_" or has a name that begins with
  // "_".
  "no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_$", ignoreRestSiblings: true }],
  // Control characters in patterns are allowed: the code searches for escape sequences, because terminals show names
  // and responses that come from others.
  "no-control-regex": "off",
};

// On each API page, all scripts share one global scope. The name "frames" is also a global of browsers, which these
// pages do not use.
const page = { ...globals.browser, frames: "off" };
const docs = {
  api: "writable", base: "writable", credentialOf: "readonly", exampleOf: "readonly", follow: "readonly", languages: "readonly", make: "readonly", prose: "readonly",
  protocol: "readonly", received: "readonly", requestOf: "readonly", samples: "readonly", sent: "readonly", serverOf: "readonly", suggested: "readonly",
};
const realtime = {
  call: "readonly", drawPattern: "readonly", hasRoom: "readonly", mint: "readonly", Room: "readonly", Session: "readonly", Stopwatch: "readonly",
};

export default [
  { ignores: ["shared/service/console/static/marked.js", "shared/service/console/static/mediabunny.js"] }, // libraries
  js.configs.recommended,
  { rules },
  {
    files: ["shared/service/console/static/*.js"],
    ignores: ["shared/service/console/static/boot.js"],
    languageOptions: { sourceType: "module", globals: globals.browser },
  },
  {
    files: ["shared/service/console/static/boot.js", "shared/service/api/docs/*.js", "shared/service/api/realtime/*.js"],
    languageOptions: { sourceType: "script", globals: page },
    rules: { "no-unused-vars": ["error", { ...rules["no-unused-vars"][1], vars: "local" }], "no-redeclare": ["error", { builtinGlobals: false }] },
  },
  { files: ["shared/service/api/docs/*.js"], languageOptions: { globals: docs } },
  { files: ["shared/service/api/realtime/*.js"], languageOptions: { globals: realtime } },
  {
    files: ["bench/video/*.js"],
    languageOptions: { sourceType: "script", globals: { ...page, ...realtime, maxBitrate: "readonly", markers: "readonly", readMarker: "readonly" } },
  },
  // Scripts that drive a browser run in Node, but some of their functions run in the page.
  { files: ["**/*.mjs"], languageOptions: { globals: { ...globals.node, ...globals.browser } } },
];
