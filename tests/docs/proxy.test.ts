import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { versions } from './support/pages'

/** What callers need, and what must stay inside. */
const open = [
  '/healthz', '/readyz', '/upload', '/webhook', '/send/group:123456', '/send/ops/report.pdf', '/hooks/github/group:123456',
  '/deliveries', '/deliveries/01a1f888-5efd-759b-8a19-306f0428960e',
]
const closed = [
  '/', '/status', '/onebot', '/onebot/send_msg', '/webhooks', '/sender', '/statusz', '/payloads/github', '/media/x', '/simulator/',
]

describe('the configuration of a proxy', () => {
  for (const { path, blocks } of versions('run')) {
    const text = (language: string): string => blocks.find(block => block.language === language)?.text ?? ''

    test(`of nginx passes on what callers need and nothing else: ${path}`, () => {
      const location = /location ~ (\S+) \{/.exec(text('nginx'))?.[1]
      assert(location !== undefined)
      for (const each of open) assert.match(each, new RegExp(location))
      for (const each of closed) assert.doesNotMatch(each, new RegExp(location))
    })

    test(`of Caddy passes on what callers need and nothing else: ${path}`, () => {
      const patterns = /^\t@relay path (.+)$/m.exec(text('caddyfile'))?.[1]?.split(' ') ?? []
      const passes = (each: string): boolean => patterns.some(pattern => pattern.endsWith('*') ? each.startsWith(pattern.slice(0, -1)) : each === pattern)
      for (const each of open) assert(passes(each), each)
      for (const each of closed) assert(!passes(each), each)
    })

    test(`closes idle connections before the bot does: ${path}`, async () => {
      const [, limit = ''] = /keepAliveTimeout = ([\d_]+)/.exec(await readFile('bot/start.ts', 'utf8')) ?? []
      assert.match(text('nginx'), /proxy_http_version 1\.1;\n *proxy_set_header Connection "";/)
      const times = [/keepalive_timeout (\d+)s;/.exec(text('nginx')), /keepalive (\d+)s/.exec(text('caddyfile'))].map(found => Number(found?.[1]))
      assert(times.every(time => time > 0 && time * 1000 < Number(limit.replaceAll('_', ''))), String(times))
    })

    test(`adds the address of the caller, which may have written others, and takes bodies as large as one file of an upload: ${path}`, () => {
      assert.match(text('nginx'), /proxy_set_header X-Forwarded-For \$proxy_add_x_forwarded_for;/)
      for (const [, size] of [text('nginx'), text('caddyfile')].flatMap(each => [...each.matchAll(/(?:client_max_body_size|max_size) (\d+)/g)])) {
        assert(Number(size) > 20)
      }
    })
  }
})
