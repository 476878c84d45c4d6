import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { record } from '../docs/support/json'
import { repository } from '../docs/support/pages'

/** What stands in `.env` for the compose files. */
export const variables = {
  WEBHOOK_API_KEY: 'the-key-of-the-image-check',
  ONEBOT_SELF_ID: '10000',
  ONEBOT_TOKEN: 'the-token-of-onebot',
}

/** A compose file of the repository, as Docker Compose reads it with these variables. */
export class ComposeFile {
  private readonly content: Record<string, unknown>

  /** @throws AssertionError for a variable that has neither a value nor a default */
  constructor(readonly name: string, values: Readonly<Record<string, string>> = variables) {
    const text = readFileSync(join(repository, name), 'utf8')
    const pattern = /\$\{(\w+)(?::([-?])([^}]*))?\}/g
    this.content = record(load(text.replace(pattern, (_, variable: string, kind?: string, rest?: string) => {
      const value = values[variable] || (kind === '-' ? rest ?? '' : undefined)
      assert(value !== undefined, `${name}: ${variable} is not set`)
      return value
    })))
  }

  get services(): Record<string, Record<string, unknown>> {
    return Object.fromEntries(Object.entries(record(this.content.services)).map(([name, service]) => [name, record(service)]))
  }

  /** The variables that a service gets. */
  environment(service: string): Record<string, string> {
    const { environment = {} } = this.services[service] ?? {}
    return Object.fromEntries(Object.entries(record(environment)).map(([name, value]) => [name, String(value)]))
  }

  /** The names of what the file defines: its `volumes`, `networks` or `configs`. */
  defined(kind: 'volumes' | 'networks' | 'configs'): string[] {
    return Object.keys(record(this.content[kind] ?? {}))
  }

  /** A file that a service gets. */
  config(name: string): string {
    return String(record(record(this.content.configs)[name]).content)
  }
}
