import { loadAll } from 'js-yaml'
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import ts from 'typescript'
import { resolveSettings } from '../../src/config/settings'
import { healthRoute } from '../../src/http/monitoring'
import { record, records } from '../docs/support/json'
import { repository } from '../docs/support/pages'

const read = (file: string): string => readFileSync(join(repository, file), 'utf8')
const documents = loadAll(read('deploy/kubernetes.yaml')).map(record)

/** The module and the type of `kubernetes-types` that describe a kind. */
const types: Readonly<Record<string, string>> = {
  Service: 'import(\'kubernetes-types/core/v1\').Service',
  StatefulSet: 'import(\'kubernetes-types/apps/v1\').StatefulSet',
}

/**
 * Checks values against types: each is a literal on a line of its own, in which TypeScript refuses unknown fields, too.
 *
 * @returns what is wrong with each value
 */
function complaints(values: readonly Record<string, unknown>[]): string[][] {
  const path = join(repository, 'tests/image/values.ts')
  const text = values.map((value, index) => `export const value${index}: ${types[String(value.kind)]} = ${JSON.stringify(value)}`).join('\n')
  const options: ts.CompilerOptions = {
    strict: true, noEmit: true, skipLibCheck: true, types: [], lib: ['lib.es5.d.ts'], moduleResolution: ts.ModuleResolutionKind.Bundler,
  }
  const files = ts.createCompilerHost(options)
  const host: ts.CompilerHost = {
    ...files,
    fileExists: name => name === path || files.fileExists(name),
    getSourceFile: (name, language) => name === path ? ts.createSourceFile(name, text, language) : files.getSourceFile(name, language),
  }
  const found: string[][] = values.map(() => [])
  for (const { messageText, file, start = 0 } of ts.getPreEmitDiagnostics(ts.createProgram([path], options, host))) {
    const line = file?.getLineAndCharacterOfPosition(start).line ?? 0
    found[line]?.push(ts.flattenDiagnosticMessageText(messageText, '\n'))
  }
  return found
}

function only(kind: string): Record<string, unknown> {
  const found = documents.filter(document => document.kind === kind)
  assert.equal(found.length, 1, kind)
  return record(found[0])
}

describe('deploy/kubernetes.yaml', () => {
  const service = record(only('Service').spec)
  const set = record(only('StatefulSet').spec)
  const template = record(set.template)
  const pod = record(template.spec)
  const [container = {}] = records(pod.containers)
  const environment = new Map(records(container.env).map(({ name, value, valueFrom }) => [String(name), value ?? valueFrom]))
  const dockerfile = read('Dockerfile')

  test('has the fields and types of the Kubernetes API', () => {
    assert.deepEqual(documents.map(({ kind }) => kind), Object.keys(types))
    // The last two show that a wrong file would be refused.
    const wrong = [{ ...only('Service'), spec: { ...service, port: 8081 } }, { ...only('StatefulSet'), spec: { ...set, replicas: 'one' } }]
    const [ofService, ofSet, unknown, mistyped] = complaints([...documents, ...wrong])
    assert.deepEqual([ofService, ofSet], [[], []])
    assert.match(String(unknown), /'"port"' does not exist in type 'ServiceSpec'/)
    assert.match(String(mistyped), /'string' is not assignable to type 'number'/)
  })

  test('starts one relay, which the service finds', () => {
    assert.equal(set.replicas, 1)
    assert.equal(set.serviceName, record(only('Service').metadata).name)
    const { labels } = record(template.metadata)
    assert.deepEqual(record(set.selector).matchLabels, labels)
    assert.deepEqual(service.selector, labels)
    const [port = {}] = records(container.ports)
    assert.equal(port.containerPort, Number(/^EXPOSE (\d+)$/m.exec(dockerfile)?.[1]))
    assert.deepEqual(records(service.ports).map(({ targetPort }) => targetPort), [port.name])
    assert.equal(environment.get('WEBHOOK_SELF_URL'), `http://${String(set.serviceName)}:${String(records(service.ports)[0]?.port)}`)
  })

  test('keeps the folders of the image on volumes, which belong to its user', () => {
    const folders: unknown = JSON.parse(/^VOLUME (.+)$/m.exec(dockerfile)?.[1] ?? '')
    const mounts = records(container.volumeMounts)
    assert.deepEqual(mounts.map(({ mountPath }) => mountPath), folders)
    assert.deepEqual(records(set.volumeClaimTemplates).map(({ metadata }) => record(metadata).name), mounts.map(({ name }) => name))
    const user = Number(/^ARG USER_ID=(\d+)$/m.exec(dockerfile)?.[1])
    const { runAsUser, runAsGroup, fsGroup } = record(pod.securityContext)
    assert.deepEqual([runAsUser, runAsGroup, fsGroup], [user, user, user])
  })

  test('gives settings that there are, and no secret in clear text', () => {
    const known = new Set([
      'TZ', ...resolveSettings({}, {}).origins.map(({ variable }) => variable),
      ...[...read('container/koishi.yml').matchAll(/env\.([A-Z_]+)/g)].map(([, name = '']) => name),
    ])
    for (const name of environment.keys()) assert(known.has(name), name)
    for (const name of ['WEBHOOK_API_KEY', 'ONEBOT_TOKEN']) {
      assert.deepEqual(environment.get(name), { secretKeyRef: { name: 'message-relay', key: name } })
    }
    const plain: Record<string, string> = {}
    for (const [name, value] of environment) if (typeof value === 'string') plain[name] = value
    assert.deepEqual(resolveSettings({}, plain).warnings, [])
  })

  test('probes the route that answers whatever the account does, and lets the relay end by itself', () => {
    for (const name of ['startupProbe', 'readinessProbe', 'livenessProbe']) {
      assert.deepEqual(record(container[name]).httpGet, { path: healthRoute.path, port: 'http' }, name)
    }
    const { periodSeconds, failureThreshold } = record(container.startupProbe)
    const waits = /otherMachineTime = ([\d_]+)/.exec(read('bot/start.ts'))?.[1] ?? ''
    assert(Number(periodSeconds) * Number(failureThreshold) > 2 * Number(waits.replace('_', '')) / 1000)
    const patience = /patience = ([\d_]+)/.exec(read('bot/end.ts'))?.[1] ?? ''
    assert(Number(pod.terminationGracePeriodSeconds) > 2 * Number(patience.replace('_', '')) / 1000)
  })
})
