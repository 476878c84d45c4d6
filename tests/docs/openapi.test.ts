import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020'
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { json } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { isObject, type JsonObject } from '../../src/lib/shape'
import { serve } from '../support/listen'
import { assertConforming, document, documentedPath, documentedPaths, fieldsOf, methods, placeOf, plainPath, schemaProblems, source, type Place } from '../support/openapi'
import { read, relayFor } from '../support/relay'

const group = '123456'

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

  test('gives no field of a body a default: generators would make callers send it', () => {
    const found = [...objectsBelow('', document)].filter(({ pointer, value }) => 'default' in value && !/\/(?:parameters|responses)/.test(pointer))
    assert.deepEqual(found.map(({ pointer }) => pointer), [])
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
    for (const { path, method, operation } of operations()) {
      for (const [status, response] of fieldsOf(operation, 'responses')) {
        for (const [name, example] of fieldsOf(response, 'content').flatMap(([, content]) => examplesOf(content.value))) {
          assert(isObject(example))
          const code = status.startsWith('2') ? 0 : Number(status)
          // OneBot 11 answers with 200 to a call that failed as well.
          if (!path.startsWith('/onebot/')) assert.equal(example.code, code, `${method} ${path} ${status} ${name}`)
          else if (code > 0) assert.equal(example.retcode, 1000 + code, `${method} ${path} ${status} ${name}`)
        }
      }
    }
  })

  test('has each route of the plugin, with the methods that it allows and the key that they want, and no other', async t => {
    const relay = await relayFor(t)
    const { stack } = relay.app.server
    const routes = [...stack]
    relay.unload()
    const others = new Set(stack)
    await relay.reload()
    const registered: Record<string, string> = {}
    for (const path of routes.filter(layer => !others.has(layer)).map(layer => plainPath(layer.path))) {
      const response = await relay.request(concrete(path.replace(/:(\w+)/g, '{$1}')), { method: 'PATCH' })
      assert.equal(response.status, 405, path)
      registered[documentedPath(path) ?? path] = response.headers.get('allow') ?? ''
    }
    const documented: Record<string, string> = {}
    for (const { path, method } of operations()) documented[path] = [...documented[path]?.split(', ') ?? [], method.toUpperCase()].join(', ')
    assert.deepEqual(registered, documented)

    for (const { path, method, operation } of operations()) {
      const { status, headers } = await fetch(relay.url + concrete(path), { method: method.toUpperCase() })
      const isOpen = status !== 401 || path.startsWith('/media/')
      assert.deepEqual(operation.value.security, isOpen ? [] : undefined, `${method} ${path}`)
      if (!isOpen) assert.equal(headers.get('www-authenticate'), 'Bearer')
    }
  })
})

/** Each operation, by its path. */
function operations(): { path: string, method: string, operation: Place }[] {
  return documentedPaths().flatMap(path => methods.flatMap(method => {
    const operation = placeOf('paths', path, method)
    return operation ? [{ path, method, operation }] : []
  }))
}

/** A path with values for its parameters. */
function concrete(path: string): string {
  return path.replace(/\{\w+\}/g, '01a1f888-5efd-759b-8a19-306f0428960e')
}

describe('the schema of a request', () => {
  const pointer = '/components/schemas/SendRequest'
  const accepted: object[] = [
    { group_id: '123456', msg: 'a' }, { user_id: 10001, msg: 'a', self_id: 10000 }, { to: 'group:123456', msg: 'a' },
    // What is null or empty counts as absent.
    { to: 'onebot:group:123456', user_id: '', msg: 'a' }, { to: '', group_id: group, msg: 'a' }, { group_id: group, user_id: '', msg: 'a', platform: '' },
    { group_id: group, user_id: null, type: null, msg: 'a', url: null, messages: null, platform: null, self_id: '', expires_in: null },
    // Fields that are not known, or are not looked at.
    { group_id: group, msg: 'a', dry_run: true }, { group_id: group, type: 'text', msg: 'a', url: 7 },
    { group_id: group, type: 'nonsense', msg: 7, messages: [{ type: 'text', msg: 'a' }] },
    { group_id: group, msg: 'a', expires_in: 59.5 }, { group_id: group, messages: [{ msg: 'a', more: 1 }, { type: 'image', url: 'base64://iVBORw0KGgo=' }] },
  ]
  const refused: object[] = [
    { msg: 'a' }, { group_id: group, user_id: '10001', msg: 'a' }, { to: 'group:1', group_id: group, msg: 'a' }, { to: 123456, msg: 'a' },
    { group_id: true, msg: 'a' }, { group_id: 1.5, msg: 'a' }, { group_id: group, msg: 'a', platform: 1 }, { group_id: group, type: 'voice', msg: 'a' },
    { group_id: group, msg: ' \n' }, { group_id: group }, { group_id: group, type: 'image', msg: 'a' }, { group_id: group, msg: 'a', messages: [] },
    { group_id: group, msg: 'a', messages: {} }, ...[0, 2_592_001, '60'].map(time => ({ group_id: group, msg: 'a', expires_in: time })),
  ]

  test('takes what the relay takes, and does not take what it refuses', async t => {
    const relay = await relayFor(t)
    for (const body of accepted) {
      const { status, headers } = await relay.send(body)
      assert.deepEqual({ status, outcome: headers.get('relay-outcome') }, { status: 200, outcome: 'sent' }, JSON.stringify(body))
      assert.deepEqual(schemaProblems(pointer, body), [], JSON.stringify(body))
    }
    for (const body of refused) {
      assert.equal((await relay.send(body)).status, 400, JSON.stringify(body))
      assert.notDeepEqual(schemaProblems(pointer, body), [], JSON.stringify(body))
    }
  })
})

test('a command is posted as described', async t => {
  const bodies: unknown[] = []
  const headers: JsonObject[] = []
  const commandCallbackUrl = await serve(t, (request, response) => {
    headers.push(Object.fromEntries(Object.entries(request.headers).filter(([name]) => name.startsWith('webhook-'))))
    void json(request).then(body => {
      bodies.push(body)
      response.setHeader('content-type', 'application/json').end('{"reply":"pong"}')
    })
  })
  const { simulator } = await relayFor(t, { config: { commandCallbackUrl, commandCallbackSecret: 'a secret' } })
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

test('the check of answers sees what a relay in a test answers', async t => {
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
