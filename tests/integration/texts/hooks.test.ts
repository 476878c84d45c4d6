import { createHmac } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { text } from 'node:stream/consumers'
import type { TextId } from '../../../src/texts/table'
import { hooks as table } from '../../../src/texts/table/hooks'
import { useRelay } from '../../support/relay'
import { Texts } from './support'

/** A payload for a source, and what its answer says of it. The headers are those beside its type. */
type Row = readonly [ids: readonly TextId[], source: string, payload: unknown, headers?: Record<string, string>, query?: string]

const zero = '0'.repeat(40)
const github = (event: string): Record<string, string> => ({ 'x-github-event': event })
const gitea = (event: string): Record<string, string> => ({ 'x-gitea-event': event })
const push = { ref: 'refs/heads/main', commits: [{ id: '1', message: 'Fix it' }] }
const run = { id: 1, head_branch: 'main', conclusion: 'success' }

const payloads: readonly Row[] = [
  [['payload-no-object'], 'github', [7], github('push')],
  [['no-event-header'], 'github', {}],
  [['no-event-of'], 'github', { action: 'opened' }, github('issues')],
  [['no-event-field'], 'gitlab', {}],
  [['no-alerts'], 'alertmanager', {}],
  [['no-heartbeat'], 'uptime-kuma', {}],
  [['kind-with-content'], 'dingtalk', {}],
  [['no-text'], 'slack', {}],
  [['no-text-field'], 'message', {}],
  [['no-content'], 'discord', {}],

  [['skip-kind'], 'github', {}, github('ping')],
  [['skip-action'], 'github', { action: 'labeled' }, github('issues')],
  [['skip-without-action'], 'github', {}, github('issues')],
  [['skip-state'], 'github', { state: 'pending' }, github('status')],
  [['skip-without-state'], 'github', {}, github('status')],
  [['skip-started'], 'github', { action: 'requested', workflow_run: run }, github('workflow_run')],
  [['skip-other-event'], 'github', push, github('push'), 'events=issues'],
  [['skip-other-branch'], 'github', push, github('push'), 'branch=release'],
  [['skip-other-status'], 'github', { action: 'completed', workflow_run: run }, github('workflow_run'), 'status=failure'],
  [['template-gives-no-text'], 'silent', { text: 'x' }],
  [['skip-no-commits'], 'github', { ref: 'refs/heads/main', commits: [] }, github('push')],
  [['skip-no-page'], 'github', { pages: [] }, github('gollum')],
  [['skip-for-comments'], 'github', { action: 'submitted', review: { state: 'commented' } }, github('pull_request_review')],
  [['skip-for-run'], 'github', { action: 'completed', check_run: { app: { slug: 'github-actions' } } }, github('check_run')],
  [['skip-codeup-test'], 'gitlab', { before: zero }],
  [['skip-own-note'], 'gitlab', { object_kind: 'note', object_attributes: { system: true } }],
  [['skip-job'], 'gitlab', { object_kind: 'build', build_status: 'success' }],
  [['skip-branch-created'], 'gitea', { ref: 'new', ref_type: 'branch' }, gitea('create')],
  [['skip-tag-push'], 'gitea', { ref: 'refs/tags/v1' }, gitea('push')],
]

describe('a text about the sources of /hooks', () => {
  const texts = new Texts(table, {
    // Their `msg` is a longer one.
    log: ['no-such-source', 'no-payload-kept', 'skipped', 'template-failed', 'digest-template-failed', 'waits-log'],
    start: ['templates-unreadable', 'template-unusable'],
    plugins: ['source-exists'],
  })
  const relay = useRelay()
  const json = { 'content-type': 'application/json' }
  const posting = (payload: unknown, headers = {}): RequestInit => ({ method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(payload) })

  describe('is in the answer to a payload', () => {
    before(async () => {
      await relay.request('/templates/silent', { method: 'PUT', body: '{"template":"{% assign none = 1 %}"}' })
    })
    for (const [ids, source, payload, headers, query = ''] of payloads) {
      test(ids.join(', '), () => texts.ask(relay, ids, `/hooks/${source}/group:1?${query}`, posting(payload, headers)))
    }
  })

  describe('is in the answer to an address', () => {
    for (const [ids, path, init = posting({ text: 'x' })] of [
      [['path-not-utf8'], '/hooks/push/group:1/%ff/x'],
      [['address-goes-on'], '/hooks/github/group:1/more'],
      [['address-without-target'], '/hooks/github'],
      [['use-methods'], '/hooks/mine/group:1', {}],
      [['no-such-source-but', 'source-name-rule'], '/hooks/-/group:1'],
      [['no-such-source-near'], '/hooks/githbu/group:1'],
      [['no-payload'], '/payloads/feishu', {}],
      [['no-template'], '/templates/-', {}],
      [['no-own-template'], '/templates/github', { method: 'DELETE' }],
      [['template-text'], '/templates/github', { method: 'PUT', body: '{}' }],
      [['template-flaw'], '/templates/github', { method: 'PUT', body: '{"template":"{% if %}"}' }],
      [['give-payload'], '/templates/feishu/preview', posting({})],
      [['payload-object'], '/templates/feishu/preview', posting({ payload: 7 })],
      [['event-text'], '/templates/feishu/preview', posting({ event: 7 })],
    ] satisfies [TextId[], string, RequestInit?][]) test(ids.join(', '), () => texts.ask(relay, ids, path, init))

    test('template-unwritten', async () => {
      const folder = join(relay.dataDir, 'templates')
      await rm(folder, { recursive: true })
      await writeFile(folder, '')
      await texts.ask(relay, ['template-unwritten'], '/templates/github', { method: 'PUT', body: '{"template":"x"}' })
    })
  })

  describe('is in the answer to a wrong key', () => {
    const signature = { 'x-hub-signature-256': `sha256=${createHmac('sha256', 'another').update('{}').digest('hex')}` }
    for (const [ids, source, headers] of [
      [['no-such-key-hooks'], 'message', {}],
      [['no-such-key-signed'], 'github', {}],
      [['no-such-token'], 'gitlab', { 'x-gitlab-token': 'another' }],
      [['no-such-key-or-secret'], 'github', { 'x-api-key': 'another', ...signature }],
    ] satisfies [TextId[], string, Record<string, string>][]) {
      test(ids.join(', '), () => texts.meet(ids, async lang => (await fetch(`${relay.url}/hooks/${source}/group:1?lang=${lang}`, posting({}, headers))).text()))
    }

    test('too-many-unproven', () => texts.meet(['too-many-unproven'], async lang => {
      const piece = Buffer.alloc(9 * 1024 * 1024)
      const bodies = Array.from({ length: 4 }, () => {
        const body = request(`${relay.url}/hooks/github/group:1?lang=${lang}`, { method: 'POST', headers: { ...signature, 'content-length': piece.length + 1 } })
        body.write(piece)
        return body
      })
      for (const body of bodies) body.on('error', () => undefined)
      const answer = await Promise.race(bodies.map(body => new Promise<IncomingMessage>(resolve => body.on('response', resolve))))
      const said = await text(answer)
      for (const body of bodies) body.destroy()
      return said
    }))
  })

  texts.complete()
})
