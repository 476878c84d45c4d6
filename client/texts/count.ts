/** A number of messages, in English. */
export function messages(count: number): string {
  return count === 1 ? '1 message' : `${count} messages`
}
