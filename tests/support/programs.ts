import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const folders = (process.env.PATH ?? '').split(':').concat('/usr/sbin', '/usr/local/sbin')

/** Where a program is on this machine, also one that only root has in its path; `undefined` where there is none. */
export function findProgram(name: string): string | undefined {
  return folders.map(folder => join(folder, name)).find(path => existsSync(path))
}

/** Programs that tests need, as a package of Debian has them. */
export class DebianPrograms<Name extends string> {
  readonly #paths = new Map<Name, string | undefined>()

  /**
   * @param what they are, in words
   * @param debianPackage that they come with
   */
  constructor(private readonly what: string, private readonly debianPackage: string, names: readonly Name[]) {
    for (const name of names) this.#paths.set(name, findProgram(name))
  }

  /**
   * Why the tests that need them cannot run, to be told as the reason for leaving them out.
   *
   * @returns `false` when they can, and in CI, where a missing program has to be a failure
   */
  get missing(): string | false {
    return [...this.#paths.values()].every(Boolean) || process.env.CI ? false : `no ${this.what} on this machine (${this.#advice})`
  }

  /** @throws when it is not on this machine */
  path(name: Name): string {
    const path = this.#paths.get(name)
    assert(path, `no ${this.what} on this machine: ${this.#advice}`)
    return path
  }

  get #advice(): string {
    return `apt-get install ${this.debianPackage}`
  }
}
