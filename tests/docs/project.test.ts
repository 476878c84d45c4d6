import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../support/folder'
import { record, records } from './support/json'
import { anchors, pageAt, pages, repository, versions } from './support/pages'

const read = (path: string): string => readFileSync(join(repository, path), 'utf8')
const manifest = record(JSON.parse(read('package.json')))
const scripts = record(manifest.scripts)

function list(folder: string): string[] {
  return readdirSync(join(repository, folder)).map(name => `${folder}/${name}`)
}

const guides = ['CONTRIBUTING.md', 'SECURITY.md']
const workflows = list('.github/workflows')
/** The rights of jobs beyond reading the repository. */
const rights: Readonly<Record<string, Record<string, string>>> = {
  analyze: { 'contents': 'read', 'security-events': 'write' },
  publish: { 'contents': 'write', 'packages': 'write', 'id-token': 'write', 'attestations': 'write' },
}
const forms = list('.github/ISSUE_TEMPLATE').filter(path => !path.endsWith('/config.yml'))

describe('the pages for those who carry on', () => {
  for (const path of guides) {
    test(`link to files and headings that are there: ${path}`, () => {
      for (const [, link = ''] of read(path).matchAll(/\]\(([^)\s]+)\)/g)) {
        if (link.startsWith('https:')) continue
        const [file = '', anchor] = link.split('#')
        assert(existsSync(join(repository, file)), link)
        if (anchor !== undefined) assert(anchors(pageAt(file)).has(anchor), link)
      }
    })

    test(`name folders and scripts that are there: ${path}`, () => {
      const text = read(path)
      for (const [, name = ''] of text.matchAll(/`((?:src|tests|docs|client|container)\/[\w./-]*[\w/])`/g)) assert(existsSync(join(repository, name)), name)
      for (const [, name = ''] of text.matchAll(/npm run ([\w:]+)/g)) assert(name in scripts, name)
    })
  }
})

test('each dependency at run time is in the table of both languages', () => {
  const packages = ['.', 'plugins/mqtt'].map(path => record(JSON.parse(read(`${path}/package.json`))))
  const names = packages.flatMap(({ dependencies }) => Object.keys(record(dependencies))).sort()
  for (const { text } of versions('development')) {
    const [, table = ''] = text.split(/^## (?:Dependencies at run time|运行时依赖)$/m)
    assert.deepEqual([...table.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name).sort(), names)
  }
})

describe('the workflows', () => {
  for (const path of workflows) {
    test(`name actions by their commits, each with its version: ${path}`, () => {
      for (const [line, action = ''] of read(path).matchAll(/^.*\buses: (\S+).*$/gm)) {
        assert(action.startsWith('./') || /@[\da-f]{40} # v\d+\.\d+\.\d+$/.test(line), line)
      }
    })

    test(`run what is there, with no more rights than they need: ${path}`, () => {
      const { jobs, permissions } = record(load(read(path)))
      assert.deepEqual(permissions, { contents: 'read' })
      for (const [name, job] of Object.entries(record(jobs)).map(([name, value]) => [name, record(value)] as const)) {
        assert.deepEqual(job.permissions, rights[name], name)
        if (typeof job.uses === 'string') {
          assert(existsSync(join(repository, job.uses)), job.uses)
          continue
        }
        for (const { run, uses } of records(job.steps)) {
          const command = typeof run === 'string' ? run : ''
          assert(command || typeof uses === 'string')
          for (const [, name = ''] of command.matchAll(/npm run ([\w:]+)/g)) assert(name in scripts, name)
          for (const [name] of command.matchAll(/(?:\.ci|scripts)\/[\w.-]+/g)) assert(existsSync(join(repository, name)), name)
        }
      }
    })
  }

  test('test the lines of Node.js that package.json names', () => {
    const lines = String(record(manifest.engines).node).match(/\d+/g) ?? []
    const { strategy } = record(record(record(load(read('.github/workflows/ci.yml'))).jobs).all)
    assert.deepEqual(record(record(strategy).matrix).node, [...lines.slice(0, -1), 'current'])
  })

  test('have no address of the repository in any file: the release enters it', () => {
    for (const field of ['repository', 'homepage', 'bugs']) assert(!(field in manifest), field)
    const release = read('.github/workflows/release.yml')
    for (const field of ['repository.url', 'homepage', 'bugs.url']) assert(release.includes(`"${field}=`), field)
    const texts = [...guides, ...workflows, ...forms, 'action.yml', 'package.json'].map(read).concat(pages.map(({ text }) => text))
    for (const text of texts) assert.doesNotMatch(text, /github\.com\/[\w-]+\/koishi-plugin-message-relay|\bOWNER\b/)
  })
})

describe('the README has two commands, each on a line', () => {
  const run = read('.ci/run')
  const packages = ['chromium-headless-shell', 'prometheus', 'prometheus-alertmanager', 'apprise', 'borgmatic', 'mosquitto']
  // Without Debian's packages, the tests that need them are left out.
  for (const { path, prose } of versions('development')) {
    test(`with the packages that .ci/run installs: ${path}`, () => {
      for (const name of packages) assert(prose.includes(` ${name}`) && run.includes(name), name)
    })
  }
  for (const { path, blocks, prose } of versions('README')) {
    test(`to start, and to test as .ci/run does: ${path}`, () => {
      const commands = blocks.flatMap(({ text }) => text.startsWith('npm ') ? [text] : [])
      assert.deepEqual(commands, ['npm ci && npm start\n', 'npm ci && npm test\n'])
      assert(run.includes(`step bash -c '${commands[1]?.trim() ?? ''}'\n`))
      assert.match(prose, /`0\.0\.0\.0`[^]*`WEBHOOK_HOST=127\.0\.0\.1 npm start`/)
    })
  }
})

test('a release moves the tag by which workflows name the Action', () => {
  const version = String(manifest.version)
  const major = `v${version.split('.')[0] ?? ''}`
  for (const page of versions('ci')) assert(page.prose.includes(`\`${major}\``), page.path)
  const steps = records(record(record(record(load(read('.github/workflows/release.yml'))).jobs).publish).steps)
  const command = steps.map(({ run }) => String(run)).find(run => run.startsWith('git tag'))
  assert(command)
  const folder = temporaryFolder()
  const shell = (text: string): string => {
    const names = { GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@x', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@x' }
    const env = { ...process.env, ...names, VERSION: version }
    const { status, stdout, stderr } = spawnSync('bash', ['-ec', text], { cwd: folder, encoding: 'utf8', env })
    assert.equal(status, 0, stderr)
    return stdout.trim()
  }
  shell('git init -q --bare origin.git && git init -q . && git remote add origin origin.git')
  for (const release of ['first', 'second']) {
    shell(`git commit -q --allow-empty -m ${release}`)
    shell(command)
    assert.equal(shell(`git -C origin.git log -1 --format=%s ${major}`), release)
  }
})

describe('the notes of a release', () => {
  const run = (changelog: string): { status: number | null, stdout: string } => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'scripts'))
    for (const name of ['notes.mjs', 'pack.mjs']) copyFileSync(join(repository, 'scripts', name), join(folder, 'scripts', name))
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'x', version: '2.1.0' }))
    writeFileSync(join(folder, 'CHANGELOG.md'), changelog)
    return spawnSync(process.execPath, ['scripts/notes.mjs'], { cwd: folder, encoding: 'utf8' })
  }

  test('are the section of its version', () => {
    const { stdout } = run('# Changelog\n\n## [2.1.0]\n\n### Added\n\n- This.\n\n## [2.0.0]\n\n- That.\n')
    assert.equal(stdout, '### Added\n\n- This.\n')
  })

  test('have to be there', () => {
    assert.equal(run('# Changelog\n\n## [Unreleased]\n\n- This.\n').status, 1)
    assert.equal(run('# Changelog\n\n## [2.1.0]\n\n## [2.0.0]\n\n- That.\n').status, 1)
  })
})

describe('the forms for issues', () => {
  for (const path of forms) {
    test(`are as GitHub takes them: ${path}`, () => {
      const { name, description, body } = record(load(read(path)))
      assert(name && description)
      const ids = new Set<unknown>()
      const fields = records(body)
      for (const { type, id, attributes, validations } of fields) {
        const given = record(attributes)
        if (type === 'markdown') {
          assert(given.value)
          continue
        }
        assert(type === 'input' || type === 'textarea' || type === 'dropdown', String(type))
        assert(typeof id === 'string' && /^[\w-]+$/.test(id) && !ids.has(id), String(id))
        ids.add(id)
        assert(given.label)
        if (type === 'dropdown') assert(Array.isArray(given.options) && new Set(given.options).size === given.options.length)
        if (validations !== undefined) assert.deepEqual(validations, { required: true })
      }
      assert(fields.some(({ validations }) => validations !== undefined))
    })
  }
})

test('the answers of the OpenSSF Best Practices badge name files that are there', () => {
  const answers = record(JSON.parse(read('.bestpractices.json')))
  const names = Object.keys(answers).filter(name => name.endsWith('_status')).map(name => name.replace(/_status$/, ''))
  assert.equal(names.length * 2, Object.keys(answers).length)
  for (const name of names) {
    assert(['Met', 'N/A', '?'].includes(String(answers[`${name}_status`])), name)
    const reason = String(answers[`${name}_justification`])
    assert(reason.length > 2, name)
    for (const [path] of reason.matchAll(/(?<![\w/.])(?:(?:docs|tests|\.github)\/[\w./-]*\w|[A-Z]+\.md|LICENSE|\.ci\/run)/g)) {
      assert(existsSync(join(repository, path)), path)
    }
    for (const [, script = ''] of reason.matchAll(/npm run ([\w:]+)/g)) assert(script in scripts, script)
  }
})

test('the market of Koishi finds the plugin, in English and in Chinese', () => {
  assert.match(String(manifest.name), /^koishi-plugin-[a-z-]+$/)
  assert(!('private' in manifest))
  assert('koishi' in record(manifest.peerDependencies))
  const koishi = record(manifest.koishi)
  const descriptions = [manifest.description, ...Object.values(record(koishi.description))].map(String)
  assert.equal(descriptions.length, 3)
  for (const description of descriptions) {
    for (const name of ['GitHub', 'Grafana', 'Alertmanager', 'QQ', 'Telegram', 'Discord']) assert(description.includes(name), name)
  }
  const { keywords } = manifest
  assert(Array.isArray(keywords))
  for (const word of ['notify', 'notification', 'webhook', 'alertmanager', 'github', 'napcat', '推送', '告警', '通知']) assert(keywords.includes(word), word)
})
