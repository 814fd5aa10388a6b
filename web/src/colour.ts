// Colours that people with any common colour blindness tell apart: those of Okabe and Ito, two shades of each.

const LIGHT = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800"];
const DARK = ["#3f9bd6", "#f0b429", "#2bbf95", "#d99abf", "#8accf2", "#ee7b30", "#e5d84a"];
const SHADE = ["#004d78", "#9c6b00", "#006b4e", "#8f4a72", "#2b86b8", "#8f3f00", "#7a7000"];

// To ask the browser costs microseconds, and a picture has thousands of cells.
const asked = matchMedia("(prefers-color-scheme: dark)");
let dark = asked.matches;
asked.addEventListener("change", () => (dark = asked.matches));

/** The colour of a job: the same for as long as it lives. */
export function colourOf(id: number): string {
  const base = dark ? DARK : LIGHT;
  const place = (Math.imul(id, 2654435761) >>> 0) % (base.length * 2);
  return place < base.length ? base[place]! : SHADE[place - base.length]!;
}

export interface Theme {
  ink: string;
  soft: string;
  line: string;
  paper: string;
  idle: string;
  accent: string;
  /** Links that two jobs may use. */
  shared: string;
}

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: read("ink"),
    soft: read("soft"),
    line: read("line"),
    paper: read("paper"),
    idle: read("idle"),
    accent: read("accent"),
    shared: read("shared"),
  };
}
