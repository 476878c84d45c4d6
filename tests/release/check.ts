// Carries the release workflow out in a clean folder, with stand-ins for what would publish anything: npm packs for itself what it would
// publish; docker and gh, and the actions, are written down. Then it checks what came out.
import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { record, records } from '../docs/support/json'
import { repository } from '../docs/support/pages'

const digest = `sha256:${'0123456789abcdef'.repeat(4)}`
const address = 'https://github.example/Owner/relay'
const manifest = record(JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')))
const version = String(manifest.version)

const folder = mkdtempSync(join(tmpdir(), 'relay-release-'))
const work = join(folder, 'work')
const temp = join(folder, 'temp')
const bin = join(folder, 'bin')
/** The variables that the steps see; some add to them. */
const environment: Record<string, string> = {
  PATH: `${bin}:${process.env.PATH ?? ''}`, HOME: folder, RUNNER_TEMP: temp, GITHUB_REF_NAME: `v${version}`, GITHUB_ACTOR: 'owner', GITHUB_REPOSITORY: 'Owner/relay',
  GITHUB_REPOSITORY_OWNER: 'Owner', GITHUB_SERVER_URL: 'https://github.example', CALLS: join(folder, 'calls'), DIGEST: digest, FOUND: '',
  MODULES: join(repository, 'node_modules'), npm_config_cache: join(folder, 'cache'), npm_config_update_notifier: 'false',
  ...Object.fromEntries(['AUTHOR', 'COMMITTER'].flatMap(who => [[`GIT_${who}_NAME`, 'a'], [`GIT_${who}_EMAIL`, 'a@x']])),
}
const outputs: Record<string, string> = { 'github.token': 'the-token' }

/** The programs that would publish, and what they do instead. */
const programs = {
  npm: `
    case $1 in
      ci) ln -s "$MODULES" node_modules;;
      view) echo "$FOUND"; [ -n "$FOUND" ];;
      publish) exec "$REAL_NPM" "$@" --dry-run --offline --ignore-scripts > /dev/null;;
      *) exec "$REAL_NPM" "$@";;
    esac`,
  docker: `
    if [ "$1" = login ]; then grep -qx the-token; fi
    while [ $# -gt 0 ]; do
      if [ "$1" = --metadata-file ]; then echo "{\\"containerimage.digest\\": \\"$DIGEST\\"}" > "$2"; fi
      shift
    done`,
  gh: `
    if [ "$2" = view ]; then [ -n "$FOUND" ]; exit; fi
    notes=; for word; do if [ "$notes" = - ]; then notes=$word; fi; if [ "$word" = --notes-file ]; then notes=-; fi; done
    cp "$notes" "$RUNNER_TEMP/published-notes.md"`,
}

/** What a stand-in for an action checks, besides that its inputs have values. */
const actions: Readonly<Record<string, (inputs: Record<string, string>) => void>> = {
  'actions/checkout': () => undefined,
  'actions/setup-node': inputs => assert(Number(inputs['node-version']) >= 24),
  'docker/setup-qemu-action': () => undefined,
  'docker/setup-buildx-action': () => undefined,
  'actions/attest': inputs => {
    const { 'subject-checksums': checksums, 'subject-name': name, 'subject-digest': signed } = inputs
    if (checksums !== undefined) assert(existsSync(join(work, checksums)))
    else assert.deepEqual([name, signed], ['ghcr.io/owner/koishi-plugin-message-relay', digest])
    signatures.push(checksums ?? name ?? '')
  },
}
const signatures: string[] = []

function run(command: string, cwd = work, env = environment): string {
  const { status, stdout, stderr } = spawnSync('bash', ['-eo', 'pipefail', '-c', command], { cwd, encoding: 'utf8', env })
  assert.equal(status, 0, `failed: ${command}\n${stdout}${stderr}`)
  return stdout.trim()
}

/** The values of a step's `env` or `with`, filled in. */
function filled(values: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(record(values)).map(([name, value]) => [name, fill(value)]))
}

/** Fills the expressions of a value in. */
function fill(value: unknown): string {
  return String(value).replace(/\$\{\{ *(\S+) *\}\}/g, (whole, name: string) => {
    const found = name.startsWith('env.') ? environment[name.slice('env.'.length)] : outputs[name]
    assert(found, `${whole} has no value`)
    return found
  })
}

/** The lines `name=value` that a step has written to a file of the runner. */
function readPairs(file: string): [string, string][] {
  const lines = readFileSync(file, 'utf8').split('\n').filter(line => line !== '')
  rmSync(file)
  return lines.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
}

function carryOut({ id, run: command, uses, with: inputs = {}, env = {} }: Record<string, unknown>): void {
  if (typeof uses === 'string') {
    const [name = ''] = uses.split('@')
    const act = actions[name]
    assert(act, `there is no stand-in for ${name}`)
    act(filled(inputs))
    return
  }
  const files = { GITHUB_ENV: join(temp, 'env'), GITHUB_OUTPUT: join(temp, 'output') }
  for (const file of Object.values(files)) writeFileSync(file, '')
  Object.assign(environment, files)
  run(fill(command), work, { ...environment, ...filled(env) })
  Object.assign(environment, Object.fromEntries(readPairs(files.GITHUB_ENV)))
  for (const [name, value] of readPairs(files.GITHUB_OUTPUT)) outputs[`steps.${String(id)}.outputs.${name}`] = value
}

function prepare(): void {
  for (const each of [work, temp, bin]) mkdirSync(each)
  environment.REAL_NPM = run('command -v npm', repository)
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/usr/bin/env bash\nset -e\necho "${name} $*" >> "$CALLS"\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  // What git would check out of a commit of what is here now.
  run(`git ls-files -co --exclude-standard -z | xargs -0 ls -d 2> /dev/null | tar -cT - | tar -xC '${work}'`, repository)
  run(`git init -q --bare ../origin.git && git init -q . && git remote add origin ../origin.git && git add -A && git commit -qm release && git tag ${environment.GITHUB_REF_NAME ?? ''}`)
}

/** Installs the packages as they would be published, beside what they depend on. */
function checkPackages(files: readonly string[]): void {
  const app = join(folder, 'app')
  const modules = join(app, 'node_modules')
  for (const file of files.filter(name => name.endsWith('.tgz'))) {
    const name = file.replace(`-${version}.tgz`, '')
    const installed = join(modules, name)
    mkdirSync(installed, { recursive: true })
    run(`tar -xzf '${join(work, 'release', file)}' --strip-components=1 -C '${installed}'`)
    const packed = record(JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')))
    assert.deepEqual([packed.name, packed.version, record(packed.repository).url], [name, version, `git+${address}.git`])
    assert.deepEqual(packed.engines, manifest.engines, name)
    for (const dependency of Object.keys({ ...record(packed.dependencies), ...record(packed.peerDependencies) })) {
      const to = join(modules, dependency)
      if (!dependency.startsWith('koishi-plugin-message-relay') && !existsSync(to)) symlinkSync(join(repository, 'node_modules', dependency), to)
    }
  }
  for (const name of readdirSync(modules).filter(each => each.startsWith('koishi-plugin-message-relay'))) {
    run(`node -e "if (typeof require('${name}').apply !== 'function') throw new Error('it is no plugin')"`, app)
  }
  cpSync(join(work, 'release/relay.js'), join(app, 'relay.js'))
  assert.equal(run('node relay.js --version', app), version)
}

function check(): void {
  const release = join(work, 'release')
  const files = readdirSync(release).sort()
  assert.deepEqual(files, [
    'SHA256SUMS', 'kubernetes.yaml', `koishi-plugin-message-relay-${version}.tgz`, `koishi-plugin-message-relay-mqtt-${version}.tgz`, 'relay.js', 'sbom.cdx.json',
  ].sort())
  assert.equal(run('sha256sum --check --strict SHA256SUMS | wc -l', release), String(files.length - 1))
  checkPackages(files)

  assert.match(readFileSync(join(release, 'kubernetes.yaml'), 'utf8'), new RegExp(`^ +image: ghcr\\.io/owner/koishi-plugin-message-relay:${version}$`, 'm'))

  const { components } = record(JSON.parse(readFileSync(join(release, 'sbom.cdx.json'), 'utf8')))
  const named = new Map(records(components).map(component => [component.name, component]))
  const packages = ['.', 'plugins/mqtt'].map(path => record(JSON.parse(readFileSync(join(repository, path, 'package.json'), 'utf8'))))
  for (const name of packages.flatMap(({ dependencies }) => Object.keys(record(dependencies)))) {
    assert.deepEqual(named.get(name)?.properties, [], `${name} is not among the dependencies`)
  }

  const notes = readFileSync(join(temp, 'published-notes.md'), 'utf8').trim()
  assert(notes.length > 100 && readFileSync(join(repository, 'CHANGELOG.md'), 'utf8').includes(`## [${version}]\n\n${notes}`))
  const calls = readFileSync(join(folder, 'calls'), 'utf8')
  for (const file of files.filter(name => name.endsWith('.tgz'))) assert(calls.includes(`npm publish --provenance --access public ./release/${file}\n`), file)
  const [created = ''] = /^gh release create .*$/m.exec(calls) ?? []
  for (const file of files) assert(created.includes(` release/${file}`), file)
  assert.match(calls, new RegExp(`^docker buildx build \\. --push .* -t ghcr\\.io/owner/koishi-plugin-message-relay:${version} `, 'm'))
  assert.deepEqual(signatures, ['ghcr.io/owner/koishi-plugin-message-relay', 'release/SHA256SUMS'])
  assert.equal(run(`git -C ../origin.git log -1 --format=%s v${version.split('.')[0] ?? ''}`), 'release')
}

/** A second run, after one that failed at the end, publishes nothing twice. */
function checkAgain(steps: readonly Record<string, unknown>[]): void {
  const calls = join(folder, 'calls')
  const before = readFileSync(calls, 'utf8').length
  environment.FOUND = version
  for (const step of steps.slice(steps.findIndex(({ name }) => name === 'Publish the packages'))) carryOut(step)
  assert.doesNotMatch(readFileSync(calls, 'utf8').slice(before), /npm publish|release create/)
}

try {
  prepare()
  const { jobs } = record(load(readFileSync(join(repository, '.github/workflows/release.yml'), 'utf8')))
  const steps = records(record(record(jobs).publish).steps)
  for (const step of steps) carryOut(step)
  check()
  checkAgain(steps)
  console.log('release check passed; called in place of what publishes:')
  console.log(readFileSync(join(folder, 'calls'), 'utf8').replace(/^npm (?:ci|pkg|sbom|run|view).*\n/gm, '').trim())
} finally {
  rmSync(folder, { recursive: true, force: true })
}
