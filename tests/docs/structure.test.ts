import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { describe, test } from 'node:test'
import { record } from './support/json'
import {
  anchors, cells, chineseNames, chinesePath, destination, englishPath, names, pageAt, pages, repository, versions, type Page,
} from './support/pages'

const readmes = versions('README')
const packageJson = record(JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')))

describe('each page', () => {
  test('has a twin in the other language', () => {
    assert.deepEqual(chineseNames, names)
  })

  for (const name of names.filter(each => chineseNames.includes(each))) {
    const english = pageAt(englishPath(name))
    const chinese = pageAt(chinesePath(name))

    test(`has the headings of its twin: ${name}`, () => {
      assert.deepEqual(chinese.headings.map(({ level }) => level), english.headings.map(({ level }) => level))
    })

    test(`has the blocks of its twin, but for comments and translated texts: ${name}`, () => {
      const outline = ({ blocks }: Page) => blocks.map(({ language, mark, reason }) => [language, mark, reason !== ''])
      assert.deepEqual(outline(chinese), outline(english))
      for (const [index, block] of chinese.blocks.entries()) {
        const original = english.blocks[index]?.text.split('\n') ?? []
        const lines = block.text.split('\n')
        assert.equal(lines.length, original.length, block.text)
        for (const [at, line] of lines.entries()) assertTranslation(line, original[at] ?? '')
      }
    })

    test(`has the tables of its twin, but for their prose: ${name}`, () => {
      const rows = ({ prose }: Page) => prose.split('\n').filter(line => line.startsWith('|'))
        .map(line => [cells(line).length, line.match(/`[^`]+`/g)?.filter(text => !/[^ -~]/.test(text)).sort() ?? []])
      assert.deepEqual(rows(chinese), rows(english))
    })
  }

  for (const page of pages) {
    test(`begins with a title, the link to its twin, and one sentence: ${page.path}`, () => {
      const [title = '', , languages = '', , sentence = ''] = page.text.split('\n')
      assert.match(title, /^# \S/)
      assert.equal(page.headings.filter(({ level }) => level === 1).length, 1)
      const name = page.path.replace(/^.*\//, '')
      const isChinese = page.path.includes('zh')
      if (name.startsWith('README')) {
        assert.equal(languages, isChinese ? '[English](README.md) · 中文' : 'English · [中文](README.zh-CN.md)')
      } else {
        const twin = relative(dirname(page.path), twinOf(page))
        assert.equal(languages, isChinese ? `[English](${twin}) · 中文` : `English · [中文](${twin})`)
        // The dots of a link are no full stops.
        assert.match(sentence.replace(/\]\([^)]*\)/g, ']'), isChinese ? /^[^。]+。$/ : /^[^.]+(?:\.[^.]+)*\.$/)
      }
    })

    test(`links to files and headings that are there: ${page.path}`, () => {
      const links = [...page.prose.matchAll(/\[[^\]]+\]\(([^)\s]+)\)/g)].map(([, link = '']) => link).filter(link => !/^https?:/.test(link))
      for (const link of links) {
        const [file = '', anchor] = link.split('#')
        const path = destination(page, file)
        // The twin has a test of its own.
        if (path === twinOf(page)) continue
        assert(existsSync(join(repository, path)), `${link} is not there`)
        if (anchor !== undefined) assert(anchors(pageAt(path)).has(anchor), `${link} is no heading`)
      }
    })

    test(`names no path of this machine, and no script that is not in package.json: ${page.path}`, () => {
      assert(!page.text.includes(repository) && !page.text.includes(tmpdir() + '/'))
      const scripts = record(packageJson.scripts)
      for (const [, script = ''] of page.text.matchAll(/\bnpm run (?:--silent )?([\w:-]+)/g)) assert(script in scripts, script)
    })

    test(`holds JSON and YAML that can be parsed, and no shell block that no test runs, but for a reason: ${page.path}`, () => {
      for (const { language, mark, reason, text } of page.blocks) {
        if (language === 'json') JSON.parse(text)
        else if (language === 'yaml') load(text)
        else if (language === 'sh') assert(mark !== '' || reason.length > 10, `nothing says whether a test runs this:\n${text}`)
      }
      const comments = page.text.match(/^<!-- (?:test|not run): /gm) ?? []
      assert.equal(comments.length, page.blocks.filter(({ mark, reason }) => mark || reason).length, 'a comment stands before no block')
    })
  }

  test('is reached from the README of its language', () => {
    for (const readme of readmes) {
      const folder = readme.path === 'README.md' ? 'docs' : 'docs/zh'
      for (const name of names.filter(each => each !== 'README' && !each.startsWith('doors/'))) {
        assert(readme.prose.includes(`(${folder}/${name}.md`), `${readme.path}: ${name}`)
      }
      // The pages about callers are reached through the list of them.
      const list = pageAt(`${folder}/doors/senders.md`)
      assert(readme.prose.includes(`(${list.path}`), readme.path)
      for (const name of names.filter(each => each.startsWith('doors/') && each !== 'doors/senders')) {
        assert(list.prose.includes(`(${name.replace('doors/', '')}.md`), `${list.path}: ${name}`)
      }
    }
  })
})

/** The page in the other language. */
function twinOf({ path }: Page): string {
  const name = path.replace(/^docs\/(?:zh\/)?/, '').replace(/(\.zh-CN)?\.md$/, '')
  return path === englishPath(name) ? chinesePath(name) : englishPath(name)
}

/** Whether a line is the translation of another: equal where it is not a comment or a text that is not ASCII. */
function assertTranslation(line: string, original: string): void {
  const withoutComment = (text: string) => text.replace(/(^|\s)(?:#|\/\/)\s.*$/, '').trimEnd()
  const escape = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const parts = withoutComment(line).split(/(["'`]|\$\{[^}]*\}|\\n)/)
  const pattern = parts.map(part => /[^ -~]/.test(part) ? '.+' : escape(part)).join('')
  // The folders of the repository are explained behind two blanks or more.
  const explained = /^(\S+ {2,})\S/.exec(line)?.[1]
  if (explained !== undefined && original.startsWith(explained)) return
  assert.match(withoutComment(original), new RegExp(`^${pattern}$`), `${line}\nis not a translation of\n${original}`)
}

test('the READMEs are short', () => {
  for (const { path, text } of readmes) {
    assert(text.trimEnd().split('\n').length <= 110, path)
    assert(text.split(/\s+/).length <= 900, path)
  }
})

/** Nobody reads a manual twice: what is added somewhere is cut elsewhere. MQTT and scale have a budget of their own. */
test('the English documents have at most 21,000 words', () => {
  const counted = names.filter(name => !['mqtt', 'scale'].includes(name)).map(name => {
    const { path, text } = pageAt(englishPath(name))
    const kept = path === 'docs/benchmark.md' ? text.replace(/^## Beside its peers$[^]*?(?=^## |$(?![^]))/m, '') : text
    return { path, words: kept.match(/\S+/g)?.length ?? 0 }
  }).sort((a, b) => b.words - a.words)
  const total = counted.reduce((sum, { words }) => sum + words, 0)
  assert(total <= 21_000, `${total} words, most of them in ${counted.slice(0, 5).map(({ path, words }) => `${path} (${words})`).join(', ')}`)
})

test('each mark is that of a block which some test looks for', () => {
  const folder = join(repository, 'tests/docs')
  const sources = readdirSync(folder).filter(file => file.endsWith('.test.ts')).map(file => readFileSync(join(folder, file), 'utf8')).join('\n')
  for (const { path, blocks } of pages) {
    for (const { mark } of blocks) assert(mark === '' || sources.includes(`'${mark}'`), `${path}: nothing looks for "${mark}"`)
  }
})

describe('the facts about this repository', () => {
  test('are right where versions are named', () => {
    for (const page of versions('run')) {
      const rows = new Map(page.prose.split('\n').filter(line => line.startsWith('|')).map(line => {
        const [name = '', version = ''] = cells(line)
        return [name, version]
      }))
      const tested = [
        ['Koishi', 'koishi'],
        ['`@koishijs/plugin-server`', '@koishijs/plugin-server'],
        ['`koishi-plugin-adapter-onebot`', '@koishijs/plugin-adapter-onebot'],
      ]
      for (const [name = '', folder = ''] of tested) {
        const installed = record(JSON.parse(readFileSync(join(repository, 'node_modules', folder, 'package.json'), 'utf8')))
        assert(rows.get(name)?.includes(String(installed.version)), name)
      }
      const lines = String(record(packageJson.engines).node).match(/\d+/g) ?? []
      assert.deepEqual(rows.get('Node.js')?.match(/\d+/g), lines)
    }
  })

  test('are right where the packed file is named', () => {
    const file = `${String(packageJson.name)}-${String(packageJson.version)}.tgz`
    for (const page of pages) {
      for (const [found] of page.text.matchAll(/koishi-plugin-message-relay-[\w.-]+\.tgz/g)) assert.equal(found, file, page.path)
    }
  })

  test('are right where folders are listed', () => {
    for (const page of versions('development')) {
      const paths = [...page.blocks.filter(({ language }) => language === 'text').flatMap(({ text }) => text.match(/^\S+/gm) ?? [])]
      const missing = paths.filter(path => !existsSync(join(repository, path)))
      assert.deepEqual(missing, [])
      const folders = readdirSync(join(repository, 'src'), { withFileTypes: true }).filter(entry => entry.isDirectory() && entry.name !== 'locales')
      assert.deepEqual(folders.map(({ name }) => `src/${name}/`).filter(path => !paths.includes(path)), [])
    }
  })
})
