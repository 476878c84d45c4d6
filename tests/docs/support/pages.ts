import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** A code block of a page. */
export interface Block {
  language: string
  /** The word behind `test:` in the comment before the block, by which a test finds it. */
  mark: string
  /** Why no test runs it, from `not run:` in that comment. */
  reason: string
  text: string
}

/** A page of the documentation, taken apart. */
export interface Page {
  /** From the repository's folder, such as `docs/zh/ci.md`. */
  path: string
  text: string
  blocks: Block[]
  /** The text without its code blocks. */
  prose: string
  headings: { level: number, title: string }[]
}

/** The repository's folder. */
export const repository = resolve(__dirname, '../../..')

/** The name of each English page without its ending, the README among them. */
export const names = ['README', ...list('docs')]

/** The Chinese pages, in the same way. */
export const chineseNames = ['README', ...list('docs/zh')]

/** All pages in both languages. */
export const pages = [...names.map(name => read(englishPath(name))), ...chineseNames.map(name => read(chinesePath(name)))]

export function englishPath(name: string): string {
  return name === 'README' ? 'README.md' : `docs/${name}.md`
}

export function chinesePath(name: string): string {
  return name === 'README' ? 'README.zh-CN.md' : `docs/zh/${name}.md`
}

/** One page in each language in which it exists; that the Chinese ones are all there is for one test to say. */
export function versions(name: string): Page[] {
  const found = pages.filter(({ path }) => path === englishPath(name) || path === chinesePath(name))
  assert(found[0]?.path === englishPath(name), `there is no page ${name}`)
  return found
}

/** @throws when there is no such page */
export function pageAt(path: string): Page {
  const found = pages.find(page => page.path === path)
  assert(found, `there is no ${path}`)
  return found
}

/** Those of the folder and of `doors/` in it. */
function list(folder: string): string[] {
  return ['', 'doors/'].flatMap(inner => {
    const path = join(repository, folder, inner)
    return existsSync(path) ? readdirSync(path).filter(file => file.endsWith('.md')).map(file => inner + file.slice(0, -3)).sort() : []
  })
}

function read(path: string): Page {
  const text = readFileSync(join(repository, path), 'utf8')
  const blocks: Block[] = []
  const fence = /(?:^<!-- (?:test: (\S+)|not run: (.+?)) -->\n)?^```(\w*)\n(.*?)^```$/gms
  const prose = text.replace(fence, (_, mark: string | undefined, reason: string | undefined, language: string, content: string) => {
    blocks.push({ language, mark: mark ?? '', reason: reason ?? '', text: content })
    return ''
  })
  const headings = [...prose.matchAll(/^(#+) (.+)$/gm)].map(([, level = '', title = '']) => ({ level: level.length, title }))
  return { path, text, blocks, prose, headings }
}

/** The text of the one block of a page that has this mark. */
export function marked({ path, blocks }: Page, mark: string): string {
  const [found, ...others] = blocks.filter(block => block.mark === mark)
  assert(found && others.length === 0, `${path} must have one block with the mark "${mark}"`)
  return found.text
}

/** The rows of the first table whose first heading is like this, without their header. */
export function table({ path, prose }: Page, firstCell: RegExp): string[][] {
  const rows = prose.split('\n').map(line => line.startsWith('|') ? cells(line) : [])
  const start = rows.findIndex(row => firstCell.test(row[0] ?? ''))
  assert(start >= 0, `no table of ${path} begins with ${firstCell.source}`)
  const end = rows.findIndex((row, index) => index > start && row.length === 0)
  return rows.slice(start + 2, end)
}

/** The cells of a line of a table. */
export function cells(line: string): string[] {
  return line.slice(1, -1).split(/(?<!\\)\|/).map(cell => cell.trim())
}

/** The first `code` of a cell. */
export function code(cell = ''): string | undefined {
  return /`([^`]*)`/.exec(cell)?.[1]
}

/** The anchors that GitHub gives the headings of a page. */
export function anchors({ headings }: Page): Set<string> {
  return new Set(headings.map(({ title }) => title.toLowerCase().replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, '').replace(/ /g, '-')))
}

/** Where a link of a page leads, from the repository's folder. */
export function destination({ path }: Page, file: string): string {
  return file === '' ? path : join(dirname(path), file)
}
