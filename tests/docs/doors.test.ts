import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { marked, repository, versions } from './support/pages'

/** What a message looks like on each page, and where the texts of its source are tested. */
const examples = [
  ['github', 'said-github', 'github-more'], ['gitlab', 'said-gitlab', 'gitlab'], ['gitea', 'said-gitea', 'gitea'], ['gitee', 'said-gitee', 'gitee'],
  ['alerts', 'said-alerts', 'grafana'],
] as const

describe('the message that a page shows', () => {
  for (const [name, mark, snapshot] of examples) {
    for (const page of versions(`doors/${name}`)) {
      test(`is one that a real payload brings: ${page.path}`, () => {
        const said = readFileSync(join(repository, `tests/unit/hooks/snapshots/${snapshot}.txt`), 'utf8')
        assert(said.includes(`\n${marked(page, mark)}\n`), `${marked(page, mark)}is not in the texts of ${snapshot}`)
      })
    }
  }
})
