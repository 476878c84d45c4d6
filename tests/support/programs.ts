import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const folders = (process.env.PATH ?? '').split(':').concat('/usr/sbin', '/usr/local/sbin')

/** The path of a program on this machine, even if only root has it in the PATH; `undefined` if there is none. */
export function findProgram(name: string): string | undefined {
  return folders.map(folder => join(folder, name)).find(path => existsSync(path))
}

/** Programs that tests need, from a Debian package. */
export class DebianPrograms<Name extends string> {
  readonly #paths = new Map<Name, string | undefined>()

  /**
   * @param what the programs, in words
   * @param debianPackage the package that contains them
   */
  constructor(private readonly what: string, private readonly debianPackage: string, names: readonly Name[]) {
    for (const name of names) this.#paths.set(name, findProgram(name))
  }

  /**
   * Why tests that need the programs are skipped.
   *
   * @returns `false` if the programs exist, and in CI, where a missing program has to be a failure
   */
  get missing(): string | false {
    return [...this.#paths.values()].every(Boolean) || process.env.CI ? false : `no ${this.what} on this machine (${this.#advice})`
  }

  /** @throws when the program is missing */
  path(name: Name): string {
    const path = this.#paths.get(name)
    assert(path, `no ${this.what} on this machine: ${this.#advice}`)
    return path
  }

  get #advice(): string {
    return `apt-get install ${this.debianPackage}`
  }
}
