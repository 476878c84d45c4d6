import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { startRelay, type App } from '../lib/apps'
import { atLeast, atMost } from '../lib/goals'
import { runLoad, type LoadResult } from '../lib/load'
import { alternate, pick } from '../lib/rounds'
import type { Scenario } from '../lib/scenario'
import { field, textOf } from '../lib/values'

const secret = 'a-secret-for-the-benchmark'

const groups = Array.from({ length: 50 }, (_, index) => String(200_001 + index))
const pathTo = (group: string): string => `/hooks/github/group:${group}`

/** A push event of GitHub against the text that it renders to. Both are accepted to be sent later, as all that comes through a hook. */
export const hooks: Scenario = {
  name: 'hooks',
  async run({ stage, extent }) {
    const push = readPush()
    // Without X-GitHub-Delivery, which identifies a repeated push, and without a key, so that the signature counts.
    const headers = {
      'x-api-key': '', 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(push).digest('hex')}`,
    }
    const hooked = await startRelay(stage, { config: { keys: [{ name: 'github', secret }] } })
    const plain = await startRelay(stage)
    const generator = await stage.start('load')
    try {
      const text = await render(hooked, push, headers)
      const texts = groups.map(group => JSON.stringify({ group_id: group, msg: text }))
      const measure = (connections: number): Promise<{ relay: LoadResult, rival: LoadResult }[]> => alternate(
        extent.rounds,
        () => runLoad(generator, { url: hooked.url, paths: groups.map(pathTo), bodies: [push], headers, connections }, extent),
        () => runLoad(generator, { url: `${plain.url}/webhook`, bodies: texts, connections, status: 202, headers: { prefer: 'respond-async' } }, extent),
      )
      const many = await measure(50)
      const one = await measure(1)
      const rival = 'the same text through `/webhook`'
      return [{
        what: 'signed pushes of GitHub through a hook, 50 groups, 50 connections', unit: 'requests/s', rival,
        goal: atLeast(0.5), pairs: pick(many, ({ rate }) => rate),
      }, {
        what: 'the same, 1 connection, median latency', unit: 'ms', digits: 2, rival, goal: atMost(2), pairs: pick(one, ({ median }) => median),
      }]
    } finally {
      await Promise.all([hooked.end(), plain.end(), generator.end()])
    }
  },
}

/** The first push to a branch among GitHub's examples. */
function readPush(): string {
  const examples: unknown = JSON.parse(readFileSync(require.resolve('@octokit/webhooks-examples/api.github.com/index.json'), 'utf8'))
  const pushes: unknown = Array.isArray(examples) ? field(examples.find(each => field(each, 'name') === 'push'), 'examples') : undefined
  const push: unknown = Array.isArray(pushes) ? pushes.find(each => textOf(each, 'ref').startsWith('refs/heads/')) : undefined
  if (push === undefined) throw new Error('there is no push among the examples of GitHub')
  return JSON.stringify(push)
}

/** The text that a push renders to. */
async function render({ url }: App, push: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(`${url}${pathTo('200001')}?dry_run=1`, { method: 'POST', body: push, headers })
  const answer: unknown = await response.json()
  return textOf(field(field(field(field(answer, 'data'), 'messages'), '0'), '0'), 'msg')
}
