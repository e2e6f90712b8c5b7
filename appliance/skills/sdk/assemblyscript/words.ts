// Words for the ear.

const SMALL: string[] = [
  "no",
  "one",
  "two",
  "three",
  "four",
  "five",
  "six",
  "seven",
  "eight",
  "nine",
  "ten",
  "eleven",
  "twelve",
];

/** A count: "two", "15". */
export function count(number: i32): string {
  return number >= 0 && number < SMALL.length ? SMALL[number] : number.toString();
}

/** "milk, eggs and bread". */
export function join(words: string[], last: string = "and"): string {
  if (words.length < 2) return words.length == 0 ? "" : words[0];
  return words.slice(0, -1).join(", ") + " " + last + " " + words[words.length - 1];
}

/** The first letter large: the start of a sentence. */
export function capital(text: string): string {
  return text.length == 0 ? "" : text.charAt(0).toUpperCase() + text.substring(1);
}
