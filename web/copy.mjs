// Copies what needs no bundling. index.html comes last: it says that the page is whole.
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";

const target = "../python/topolane/serve/static/";
const licences = ["preact", "uplot"].map((name) => {
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  return `${name} ${version}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`;
});
writeFileSync(`${target}LICENCES.txt`, licences.join("\n"));
copyFileSync("src/icon.svg", `${target}icon.svg`);
copyFileSync("src/index.html", `${target}index.html`);
