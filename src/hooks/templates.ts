import type { Context, Emitter, Liquid, Template } from 'liquidjs'
import { existsSync, readdirSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { RelayError } from '../errors'
import type { Language } from '../texts/language'
import type { JsonObject } from '../lib/shape'
import { writeWhole } from '../lib/whole-file'
import { parseLink } from '../message/link'
import type { Link, Severity } from '../message/model'
import { say, type Text } from '../texts/text'
import { severityOfWord } from './marks'

/** The output of a template. */
export interface Rendered {
  text: string
  pictures: Link[]
  /** What its tag `severity` says. */
  severity: Severity | undefined
}

/** The limits of LiquidJS for a template. */
const limits = {
  /** In characters. */
  parseLimit: 100_000,
  /** In milliseconds, because rendering blocks the process. It is wall-clock time, so there is room for the pauses of a busy machine. */
  renderLimit: 500,
  /** In characters and elements of lists, which together take about 16 MB. What was freed since counts, too. */
  memoryLimit: 3_000_000,
}
/** How many characters an element of a list counts as. */
const elementWeight = 8
/** The most pictures of one message. */
const maxPictures = 10
/** The longest output of a template, in characters. */
const maxOutput = 1_000_000

const extension = '.liquid'
/** Sources that share the built-in template of another source. */
const shared: ReadonlyMap<string, string> = new Map([
  ['alertmanager', 'grafana'], ['apprise', 'message'], ['feishu', 'dingtalk'], ['gitea', 'github'], ['gitee', 'github'], ['push', 'message'],
  ['wecom', 'dingtalk'],
])
export const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
export const nameRule = say('source-name-rule')

/** The folder of the built-in templates, next to the code both before and after the build. */
const builtIn = join(__dirname, 'templates')

/**
 * The templates for events: the built-in ones, and those of the operator, which replace built-in ones or define new sources. LiquidJS is
 * loaded on first use.
 */
export class Templates {
  private engine: Promise<Engine> | undefined
  private readonly parsed = new Map<string, { text: string, template: Template[] }>()
  private readonly builtIn = new Map<string, string>()

  /**
   * @param folder the folder of the operator's templates, `<name>.liquid`; it may be missing
   * @param pictureHosts the hosts whose linked pictures are sent as pictures
   */
  constructor(private readonly folder: string, private readonly pictureHosts: readonly string[]) {}

  /** The names of the operator's templates. */
  names(): string[] {
    return listFolder(this.folder).flatMap(file => {
      const name = file.endsWith(extension) ? file.slice(0, -extension.length) : ''
      return namePattern.test(name) ? name : []
    })
  }

  /** Whether the operator has a template of this name. */
  async has(name: string): Promise<boolean> {
    return await this.readOwn(name) !== undefined
  }

  /** The template of a name: the operator's if there is one, otherwise the built-in one. */
  async find(name: string): Promise<{ template: string, source: 'own' | 'built-in' } | undefined> {
    if (!namePattern.test(name)) return
    const own = await this.readOwn(name)
    if (own !== undefined) return { template: own, source: 'own' }
    const text = await this.readBuiltIn(name).catch(() => undefined)
    return text === undefined ? undefined : { template: text, source: 'built-in' }
  }

  /**
   * Writes a template of the operator. It takes effect at once.
   *
   * @throws RelayError `bad-request` for a malformed name or template, `store-down`
   */
  async put(name: string, text: string): Promise<void> {
    if (!namePattern.test(name)) throw new RelayError('bad-request', nameRule)
    const { parse } = await this.load()
    try {
      parse(text)
    } catch (error) {
      throw new RelayError('bad-request', say('template-flaw', { reason: reasonOf(error) }))
    }
    await writeWhole(this.pathOf(name), text).catch(failToWrite)
  }

  /** Removes a template of the operator. @returns whether there was one */
  async remove(name: string): Promise<boolean> {
    if (!await this.has(name)) return false
    await rm(this.pathOf(name), { force: true }).catch(failToWrite)
    return true
  }

  /** Renders an event with this template. @throws as {@link render} */
  async renderText(text: string, view: JsonObject, lang: Language): Promise<Rendered> {
    const { parse, render } = await this.load()
    return render(parse(text), { ...view, lang })
  }

  /**
   * Renders an event.
   *
   * @param name the name of its source
   * @param given the template that the source defines in code
   * @throws the error of LiquidJS or of the file system
   */
  async render(name: string, view: JsonObject, lang: Language, given?: string): Promise<Rendered> {
    const text = await this.readOwn(name) ?? given ?? await this.readBuiltIn(name)
    const engine = await this.load()
    let known = this.parsed.get(name)
    if (known?.text !== text) this.parsed.set(name, known = { text, template: engine.parse(text) })
    return engine.render(known.template, { ...view, lang })
  }

  /** Checks the operator's templates. @returns a warning for each unusable one, or their folder, with the reason */
  async check(): Promise<Text[]> {
    const warnings: Text[] = []
    const files = await readdir(this.folder).catch((error: unknown) => {
      const reason = reasonOf(error)
      if (reason !== 'ENOENT') warnings.push(say('templates-unreadable', { folder: this.folder, reason }))
      return []
    })
    for (const file of files) {
      if (!file.endsWith(extension)) continue
      const name = file.slice(0, -extension.length)
      const unusable = (reason: Text | string): void => void warnings.push(say('template-unusable', { file: JSON.stringify(file.slice(0, 100)), reason }))
      if (!namePattern.test(name)) {
        unusable(nameRule)
        continue
      }
      try {
        const { parse } = await this.load()
        parse(await readFile(this.pathOf(name), 'utf8'))
      } catch (error) {
        unusable(reasonOf(error))
      }
    }
    return warnings
  }

  private pathOf(name: string): string {
    return join(this.folder, name + extension)
  }

  private load(): Promise<Engine> {
    return this.engine ??= createEngine(this.pictureHosts)
  }

  private async readBuiltIn(name: string): Promise<string> {
    const text = this.builtIn.get(name) ?? await readFile(join(builtIn, (shared.get(name) ?? name) + extension), 'utf8')
    this.builtIn.set(name, text)
    return text
  }

  /** Checks for the file first: most sources have none, and a failed read is many times slower than the check. */
  private async readOwn(name: string): Promise<string | undefined> {
    return namePattern.test(name) && existsSync(this.pathOf(name)) ? readFile(this.pathOf(name), 'utf8') : undefined
  }
}

/** @throws RelayError `store-down` */
function failToWrite(error: unknown): never {
  throw new RelayError('store-down', say('template-unwritten', { reason: reasonOf(error) }))
}

/** The reason of LiquidJS or the file system in one line, without paths and rendered text. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  if ('code' in error && typeof error.code === 'string') return error.code
  return (error.message.split('\n')[0] ?? '').slice(0, 200)
}

interface Engine {
  parse: (text: string) => Template[]
  render: (template: Template[], view: JsonObject & { lang: Language }) => Rendered
}

async function createEngine(pictureHosts: readonly string[]): Promise<Engine> {
  const { Liquid, Tag, toValue, Value } = await import('liquidjs')
  // A template cannot read other templates or files.
  const liquid = new Liquid({ ...limits, templates: {}, ownPropertyOnly: true, strictFilters: true })
  const hosts = new Set(pictureHosts.map(host => host.toLowerCase()))
  // Shared, because rendering is synchronous: only one template renders at a time.
  let pictures: Link[] = []

  let severity: Severity | undefined

  /** @param act is called with the value behind the name of the tag */
  const registerTag = (name: string, act: (value: unknown, emitter: Emitter) => void): void => {
    liquid.registerTag(name, class extends Tag {
      private readonly value: InstanceType<typeof Value>

      constructor(...[token, remaining, engine]: ConstructorParameters<typeof Tag>) {
        super(token, remaining, engine)
        this.value = new Value(token.args, engine)
      }

      override* render(...[context, emitter]: Parameters<InstanceType<typeof Tag>['render']>): Generator<unknown, void, unknown> {
        act(yield this.value.value(context), emitter)
      }
    })
  }
  registerTag('picture', (value, emitter) => {
    if (typeof value !== 'string') return
    const link = pictureOf(value, hosts)
    if (link && pictures.length < maxPictures) pictures.push(link)
    // The tag writes the line break itself, so that a picture leaves no empty line.
    else if (!value.startsWith('data:')) emitter.write(`${value}\n`)
  })
  registerTag('severity', value => {
    severity = severityOfWord(value) ?? severity
  })
  registerFilters(liquid)
  // LiquidJS counts neither captured and written text nor the texts in the lists that its filters get.
  for (const [name, filter] of Object.entries(liquid.filters)) {
    const handler = typeof filter === 'function' ? filter : filter.handler
    liquid.registerFilter(name, function (...given): unknown {
      for (const value of given) if (Array.isArray(value)) charge(this.context, value)
      return handler.apply(this, given)
    })
  }
  // Unlike `String`, `join` makes an empty text of null and undefined.
  const toText = (value: unknown): string => [toValue(value)].flat(Infinity).join('')
  const { renderer } = liquid
  const renderTemplates = renderer.renderTemplates.bind(renderer)
  renderer.renderTemplates = (templates, context, emitter = new CountingEmitter(context, toText)) => (
    renderTemplates(templates, context, emitter)
  )
  return {
    parse: text => liquid.parse(text),
    render(template, view) {
      pictures = []
      severity = undefined
      const text = String(liquid.renderSync(template, view))
      return { text: text.slice(0, maxOutput), pictures, severity }
    },
  }
}

/** Counts a text, or all texts of a list, against the memory of a template. @throws the error of LiquidJS if that is used up */
function charge(context: Context, value: unknown): void {
  context.memoryLimit.use(typeof value === 'string' ? value.length : elementWeight)
  if (Array.isArray(value)) for (const each of value) charge(context, each)
}

/** Collects the output of a template, or of a part of it, and counts it. */
class CountingEmitter implements Emitter {
  buffer = ''

  constructor(private readonly context: Context, private readonly toText: (value: unknown) => string) {}

  write(value: unknown): void {
    charge(this.context, value)
    this.buffer += this.toText(value)
  }
}

/** An inline picture, or a link to a host that the operator allows; `undefined` for any other value. */
function pictureOf(value: string, hosts: ReadonlySet<string>): Link | undefined {
  try {
    const link = parseLink(value)
    if (link.kind === 'data') return /^data:image\//i.test(value) ? link : undefined
    if (link.kind !== 'remote') return
    // The platform gets the normalized address, because other parsers read `http://allowed\@evil` differently.
    const { hostname, href } = new URL(link.url)
    if (hosts.has(hostname)) return { ...link, url: href }
  } catch {
    // The value is not a link.
  }
}

function registerFilters(liquid: Liquid): void {
  liquid.registerFilter('time', function (value: unknown, since: unknown) {
    const lang: unknown = this.context.getSync(['lang'])
    return formatTime(value, since, lang === 'zh-CN' ? 'zh-CN' : 'en-US')
  })
  liquid.registerFilter('lines', (value: unknown, count: unknown) => firstLines(value, Number(count)))
}

/** A time in the time zone of the process, without the day if that is the day of `since`. Returns any other value as it is. */
function formatTime(value: unknown, since: unknown, lang: Language): unknown {
  const date = readTime(value)
  if (!date) return value
  const isSameDay = readTime(since)?.toDateString() === date.toDateString()
  return new Intl.DateTimeFormat(lang, { ...!isSameDay && { dateStyle: 'medium' }, timeStyle: 'short', hourCycle: 'h23' }).format(date)
}

function readTime(value: unknown): Date | undefined {
  const time = typeof value === 'string' && /^\d{9,15}$/.test(value) ? Number(value) : value
  if (typeof time !== 'number' && typeof time !== 'string') return
  // Small numbers count seconds: as milliseconds they would be in the early 1970s.
  const date = new Date(typeof time === 'number' && time < 1e11 ? time * 1000 : time)
  return Number.isNaN(date.getTime()) ? undefined : date
}

/** The first lines of a text, and an ellipsis if there are more. */
function firstLines(value: unknown, count: number): unknown {
  if (typeof value !== 'string') return value
  const all = value.split('\n')
  return all.length > count ? `${all.slice(0, count).join('\n')}\n…` : value
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
