import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { describe, test, type TestContext } from 'node:test'
import { isObject, type JsonObject } from '../../src/message/parse'
import {
  assertConforming, document, documentedPath, documentedPaths, fieldsOf, methods, placeOf, problemsOf, schemaProblems, source,
  type Answer, type Place,
} from '../support/openapi'
import { read, startRelay, type RelayOptions, type TestRelay } from '../support/relay'

const group = '123456'

async function relayFor(t: TestContext, options?: RelayOptions): Promise<TestRelay> {
  const relay = await startRelay(options)
  t.after(() => relay.stop())
  return relay
}

/** Every object below this one, references not followed. */
function* objectsBelow(pointer: string, value: unknown): Generator<Place> {
  if (isObject(value)) yield { pointer, value }
  const fields = Array.isArray(value) ? value.entries() : isObject(value) ? Object.entries(value) : []
  for (const [key, field] of fields) yield* objectsBelow(`${pointer}/${String(key).replace(/~/g, '~0').replace(/\//g, '~1')}`, field)
}

/** The examples of a media type, parameter or header, each with its name. */
function examplesOf({ example, examples }: JsonObject): [name: string, value: unknown][] {
  if (example !== undefined) return [['example', example]]
  if (!isObject(examples)) return []
  return Object.entries(examples).map(([name, each]) => [name, isObject(each) ? each.value : undefined])
}

/** The places that have a schema and examples of it. */
function illustrated(): Place[] {
  return [...objectsBelow('', document)].filter(({ pointer, value }) => isObject(value.schema) && !pointer.startsWith('/components/schemas/'))
}

describe('docs/openapi.yaml', () => {
  test('is a valid OpenAPI 3.1 document of this version', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(source)
    assert(valid, JSON.stringify(errors, undefined, 2))
    assert.equal(validator.version, '3.1')
    const manifest: unknown = JSON.parse(await readFile('package.json', 'utf8'))
    assert(isObject(manifest))
    assert.equal(placeOf('info')?.value.version, manifest.version)
  })

  test('has schemas that are valid by themselves', () => {
    const ajv = new Ajv2020({ strict: true })
    for (const [name, { value }] of fieldsOf({ pointer: '', value: placeOf('components')?.value ?? {} }, 'schemas')) {
      assert(ajv.validateSchema(value), `${name}: ${ajv.errorsText()}`)
    }
  })

  test('has an example wherever it has a schema, and all of them conform', () => {
    const places = illustrated()
    assert(places.length > 50)
    const found = places.flatMap(({ pointer, value }) => {
      const examples = examplesOf(value)
      if (examples.length === 0) return pointer.includes('multipart') ? [] : [`${pointer} has no example`]
      return examples.flatMap(([name, example]) => schemaProblems(`${pointer}/schema`, example).map(problem => `${pointer}, ${name}: ${problem}`))
    })
    assert.deepEqual(found, [])
  })

  test('has references that lead somewhere, and no component that nothing refers to', () => {
    const used = new Set<string>()
    for (const { pointer, value: { $ref: reference } } of objectsBelow('', document)) {
      if (typeof reference !== 'string') continue
      assert(placeOf(...reference.slice(2).split('/')), `${pointer}: ${reference}`)
      used.add(reference)
    }
    // It is about methods that are not in the document.
    used.add('#/components/responses/MethodNotAllowed')
    const components = ['parameters', 'headers', 'responses', 'schemas'].flatMap(kind =>
      Object.keys(placeOf('components', kind)?.value ?? {}).map(name => `#/components/${kind}/${name}`))
    assert.deepEqual(components.filter(name => !used.has(name)), [])
  })

  test('says the same status in an answer and in its examples', () => {
    for (const path of documentedPaths()) {
      for (const method of methods) {
        const operation = placeOf('paths', path, method)
        for (const [status, response] of operation ? fieldsOf(operation, 'responses') : []) {
          for (const [, content] of fieldsOf(response, 'content')) {
            for (const [name, example] of examplesOf(content.value)) {
              assert(isObject(example))
              const code = status.startsWith('2') ? 0 : Number(status)
              // OneBot 11 answers with 200 to a call that failed as well.
              if (!path.startsWith('/onebot/')) assert.equal(example.code, code, `${method} ${path} ${status} ${name}`)
              else if (code > 0) assert.equal(example.retcode, 1000 + code, `${method} ${path} ${status} ${name}`)
            }
          }
        }
      }
    }
  })

  test('wants the key where the plugin does', async t => {
    const relay = await relayFor(t)
    for (const path of documentedPaths()) {
      for (const method of methods) {
        const operation = placeOf('paths', path, method)
        if (!operation) continue
        const { status, headers } = await fetch(relay.url + concrete(path), { method: method.toUpperCase() })
        const isOpen = status !== 401 || path.startsWith('/media/')
        assert.deepEqual(operation.value.security, isOpen ? [] : undefined, `${method} ${path}`)
        if (!isOpen) assert.equal(headers.get('www-authenticate'), 'Bearer')
      }
    }
  })

  test('has each route of the plugin, with the methods that it allows, and no other', async t => {
    const relay = await relayFor(t)
    const { stack } = relay.app.server
    const routes = [...stack]
    relay.unload()
    const others = new Set(stack)
    await relay.reload()
    const registered: Record<string, string> = {}
    for (const { path } of routes.filter(layer => !others.has(layer))) {
      const response = await relay.request(concrete(path.replace(/:(\w+)/g, '{$1}')), { method: 'PATCH' })
      assert.equal(response.status, 405, path)
      registered[documentedPath(path) ?? path] = response.headers.get('allow') ?? ''
    }
    const documented = documentedPaths().map(path => {
      const operations = methods.filter(method => placeOf('paths', path, method))
      return [path, operations.map(method => method.toUpperCase()).join(', ')]
    })
    assert.deepEqual(registered, Object.fromEntries(documented))
  })
})

/** A path with values for its parameters. */
function concrete(path: string): string {
  return path.replace(/\{\w+\}/g, '01a1f888-5efd-759b-8a19-306f0428960e')
}

describe('the schema of a request', () => {
  const pointer = '/components/schemas/SendRequest'
  const accepted: [string, object][] = [
    ['IDs as text', { group_id: '123456', msg: 'a' }],
    ['IDs as numbers', { user_id: 10001, msg: 'a', self_id: 10000 }],
    ['a target in one word', { to: 'group:123456', msg: 'a' }],
    ['a target with its platform', { to: 'onebot:group:123456', user_id: '', msg: 'a' }],
    ['null and an empty target as absent', { to: '', group_id: group, msg: 'a' }],
    ['null and an empty ID as absent', {
      group_id: group, user_id: null, type: null, msg: 'a', url: null, messages: null, platform: null, self_id: '', expires_in: null,
    }],
    ['an empty platform as absent', { group_id: group, user_id: '', msg: 'a', platform: '' }],
    ['fields that are not known', { group_id: group, msg: 'a', dry_run: true }],
    ['a fraction of a second', { group_id: group, msg: 'a', expires_in: 59.5 }],
    ['a text beside a link', { group_id: group, type: 'text', msg: 'a', url: 7 }],
    ['a batch', { group_id: group, messages: [{ msg: 'a', more: 1 }, { type: 'image', url: 'base64://iVBORw0KGgo=' }] }],
    ['a batch beside the fields of a single message', { group_id: group, type: 'nonsense', msg: 7, messages: [{ type: 'text', msg: 'a' }] }],
  ]
  const refused: [string, object][] = [
    ['no target', { msg: 'a' }],
    ['both targets', { group_id: group, user_id: '10001', msg: 'a' }],
    ['a target in one word beside another', { to: 'group:1', group_id: group, msg: 'a' }],
    ['a target in one word that is a number', { to: 123456, msg: 'a' }],
    ['a target that is no ID', { group_id: true, msg: 'a' }],
    ['a fraction as ID', { group_id: 1.5, msg: 'a' }],
    ['a number as platform', { group_id: group, msg: 'a', platform: 1 }],
    ['an unknown type', { group_id: group, type: 'voice', msg: 'a' }],
    ['a blank text', { group_id: group, msg: ' \n' }],
    ['no text', { group_id: group }],
    ['a picture without a link', { group_id: group, type: 'image', msg: 'a' }],
    ['an empty batch', { group_id: group, msg: 'a', messages: [] }],
    ['messages that are no list', { group_id: group, msg: 'a', messages: {} }],
    ['no time to expire', { group_id: group, msg: 'a', expires_in: 0 }],
    ['too long a time to expire', { group_id: group, msg: 'a', expires_in: 2_592_001 }],
    ['a time to expire as text', { group_id: group, msg: 'a', expires_in: '60' }],
  ]

  test('takes what the relay takes', async t => {
    const relay = await relayFor(t)
    for (const [what, body] of accepted) {
      const { status, headers } = await relay.send(body)
      assert.deepEqual({ status, outcome: headers.get('relay-outcome') }, { status: 200, outcome: 'sent' }, what)
      assert.deepEqual(schemaProblems(pointer, body), [], what)
    }
  })

  test('does not take what the relay refuses', async t => {
    const relay = await relayFor(t)
    for (const [what, body] of refused) {
      assert.equal((await relay.send(body)).status, 400, what)
      assert.notDeepEqual(schemaProblems(pointer, body), [], what)
    }
  })
})

test('a command is posted as described', async t => {
  const bodies: unknown[] = []
  const headers: JsonObject[] = []
  const callback = createServer((request, response) => {
    headers.push(Object.fromEntries(Object.entries(request.headers).filter(([name]) => name.startsWith('webhook-'))))
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => {
      bodies.push(JSON.parse(Buffer.concat(chunks).toString()))
      response.setHeader('content-type', 'application/json').end('{"reply":"pong"}')
    })
  })
  callback.listen(0, '127.0.0.1')
  await once(callback, 'listening')
  t.after(() => callback.close())
  const address = callback.address()
  assert(isObject(address))
  const config = { commandCallbackUrl: `http://127.0.0.1:${String(address.port)}/`, commandCallbackSecret: 'a secret' }
  const { simulator } = await relayFor(t, { config })
  simulator.say({ group, user: '10001', text: '#ping hello' })
  simulator.say({ user: '10001', text: '#ping ' })
  await simulator.until(({ ledger }) => ledger.length === 2)
  assert.equal(bodies.length, 2)
  for (const body of bodies) assert.deepEqual(schemaProblems('/components/schemas/Command', body), [])

  const documented = placeOf('webhooks', 'command', 'post')?.value.parameters
  assert(Array.isArray(documented))
  const names = documented.map((parameter: unknown) => isObject(parameter) ? String(parameter.name) : '')
  for (const each of headers) {
    assert.deepEqual(Object.keys(each).sort(), [...names].sort())
    for (const [index, name] of names.entries()) {
      assert.deepEqual(schemaProblems(`/webhooks/command/post/parameters/${index}/schema`, each[name]), [], name)
    }
  }
})

describe('the check of answers', () => {
  const requestId = ['x-request-id', '01a1f888-5efd-759b-8a19-306f0428960e'] as const
  const json = ['content-type', 'application/json; charset=utf-8'] as const
  const outcome = ['relay-outcome', 'unanswered'] as const
  const failure = JSON.stringify({ code: 504, msg: 'no answer', data: null })
  const conforming = { method: 'POST', route: '/relay/webhook', status: 504, headers: new Map([requestId, json, outcome]), body: failure }
  const cases: [string, Partial<Answer>, string[]][] = [
    ['an answer as documented', {}, []],
    ['another plugin\'s route', { route: '/somewhere', body: 'anything' }, []],
    ['a status that is not documented', { status: 418 }, ['this status is not documented']],
    ['a missing header', { headers: new Map([requestId, json]) }, ['the header Relay-Outcome is missing']],
    ['a header that is not documented', { headers: new Map([requestId, json, outcome, ['x-more', '1']]) }, ['the header x-more is not documented']],
    ['a wrong header', { headers: new Map([requestId, json, ['relay-outcome', 'sent']]) }, ['the header Relay-Outcome: sent: it must be equal to constant {"allowedValue":"unanswered"}']],
    ['a field that is not documented', { body: JSON.stringify({ code: 504, msg: 'a', data: null, hint: 'b' }) }, ['it must NOT have additional properties {"additionalProperty":"hint"}']],
    ['a wrong field', { body: JSON.stringify({ code: 504, msg: '', data: null }) }, ['/msg must NOT have fewer than 1 characters {"limit":1}']],
    ['another type of content', { headers: new Map([requestId, ['content-type', 'text/html'], outcome]) }, ['text/html is not documented']],
    ['a body that is no JSON', { body: '{"' }, ['the body is no JSON']],
    ['a method that the path does not have', { method: 'PUT', status: 200 }, ['this status is not documented']],
  ]
  for (const [what, change, expected] of cases) {
    test(`${expected.length > 0 ? 'finds' : 'passes'} ${what}`, () => {
      const found = problemsOf({ ...conforming, ...change })
      assert.equal(found.length, expected.length, found.join('\n'))
      for (const [index, text] of expected.entries()) assert(found[index]?.includes(text), found[index])
    })
  }

  test('sees what a relay in a test answers', async t => {
    const relay = await relayFor(t, {
      setup(app) {
        app.inject(['server'], ({ server }) => {
          // Changes the answers of the relay, as a mistake in it would.
          server.use(async (context, next) => {
            await next()
            if (context.path === '/healthz') context.set('X-Mistake', 'made')
          })
        })
      },
    })
    await read(await relay.request('/readyz'))
    await assert.rejects(relay.request('/healthz'), /GET \/healthz -> 200: the header x-mistake is not documented/)
    await fetch(`${relay.url}/healthz`)
    assert.throws(() => assertConforming(), /x-mistake/)
  })
})
