/** A unique word. `crypto.randomUUID` is missing if the page was loaded over plain HTTP. */
export function freshWord(): string {
  return [...crypto.getRandomValues(new Uint32Array(4))].map(number => number.toString(36)).join('')
}
