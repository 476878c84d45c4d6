/** A word that nobody has used before. `crypto.randomUUID` is missing where the page came by plain HTTP. */
export function freshWord(): string {
  return [...crypto.getRandomValues(new Uint32Array(4))].map(number => number.toString(36)).join('')
}
