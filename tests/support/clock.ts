// Makes the wall clock of this process one that can be set. To be imported before whatever is to see it.

const real = Date
let offset = 0

const shifted = (): number => real.now() + offset

globalThis.Date = new Proxy(real, {
  construct: (target, args, newTarget) => Reflect.construct(target, args.length > 0 ? args : [shifted()], newTarget) as object,
  get: (target, name, receiver) => name === 'now' ? shifted : Reflect.get(target, name, receiver) as unknown,
})

/** The time that it is, whatever the clock shows, in milliseconds since the epoch. */
export function trueTime(): number {
  return real.now()
}

/**
 * Sets the clock forward, or back, by so many milliseconds.
 *
 * @returns puts it right again
 */
export function shiftClock(by: number): () => void {
  offset += by
  return () => {
    offset -= by
  }
}
