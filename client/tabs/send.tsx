import { defineComponent, onMounted, reactive, shallowRef, watch, type VNode } from 'vue'
import { writeSize } from '../../src/lib/words'
import { parsePayload } from '../admin'
import { call, readHold, upload, whyTooLarge, type Reply } from '../api'
import { bots } from '../contacts'
import { curlWithFiles } from '../curl'
import { listOf, numberOf, textOf, textsOf, type Fields } from '../fields'
import { refreshInventory } from '../inventory'
import { notice, section } from '../parts/basics'
import { pickPeople } from '../parts/ack'
import { bind, button, checkbox, inputField, model, plain, selectField, submitting } from '../parts/elements'
import { CopyButton } from '../parts/copy'
import { viewPreview } from '../parts/preview'
import { describeChat, TargetPicker } from '../parts/target'
import { freshWord } from '../random'
import { about, goTo } from '../state'
import { describeHold, fromLocal, texts, toLocal, wordFor } from '../texts'

/** A file to send. */
interface Attachment {
  file: File
  /** The path that the relay gave to the file; empty until it is uploaded. */
  id: string
}

/** The result of the last message. */
interface Outcome {
  reply: Reply
  /** The description of its target. */
  target: string
  /** What the parts of the message are called. */
  parts: string[]
}

/** The draft in the browser's storage. The console reloads the page after a restart of the bot. */
const draftName = 'message-relay.draft'
const draft = parsePayload(sessionStorage.getItem(draftName) ?? '')
/** The draft outlives the tab, so that the user can look something up on another. */
const order = reactive<Order>({
  bot: textOf(draft?.bot), targets: textsOf(draft?.targets), text: textOf(draft?.text), isUrgent: draft?.isUrgent === true,
  sendAt: textOf(draft?.sendAt), thread: textOf(draft?.thread), mention: textsOf(draft?.mention),
})
watch(order, () => sessionStorage.setItem(draftName, JSON.stringify(order)))
const attachments = shallowRef<Attachment[]>([])
const preview = shallowRef<Reply>()
const outcome = shallowRef<Outcome>()
const problem = shallowRef('')
/** The action in progress. */
const busy = shallowRef<'preview' | 'send'>()
/** The idempotency key of a message, so that a repeated click sends it only once, and the body that the key belongs to. */
let sending = { key: '', body: '' }

/** Composes, previews and sends a message. */
export const SendTab = defineComponent({
  setup() {
    onMounted(() => void refreshInventory())

    const act = async (deed: 'preview' | 'send'): Promise<void> => {
      if (busy.value) return
      outcome.value = preview.value = undefined
      problem.value = missingPart(order, attachments.value)
      if (problem.value) return
      busy.value = deed
      try {
        const failure = await uploadAll(attachments.value)
        if (failure) problem.value = texts.value.common.failed(failure)
        else await (deed === 'preview' ? show() : submit())
      } finally {
        busy.value = undefined
      }
    }
    const show = async (): Promise<void> => {
      const reply = await call('POST', '/webhook', { query: { dry_run: '1' }, body: JSON.stringify(bodyOf(order, attachments.value)) })
      if (reply.isRight) preview.value = reply
      else problem.value = texts.value.common.failed(reply.msg)
    }
    const submit = async (): Promise<void> => {
      const body = JSON.stringify(bodyOf(order, attachments.value))
      if (sending.body !== body) sending = { key: freshWord(), body }
      const target = texts.value.common.list(order.targets.map(describeChat))
      const parts = [...order.text.trim() === '' ? [] : [texts.value.send.text], ...attachments.value.map(({ file }) => file.name)]
      const reply = await call('POST', '/webhook', { headers: { 'idempotency-key': sending.key }, body })
      outcome.value = { reply, target, parts }
      // Keeps a draft that was changed during the request.
      const isSame = JSON.stringify(bodyOf(order, attachments.value)) === body
      if (isSame && reply.isRight && entriesOf(reply).flatMap(failuresOf).length === 0) clear()
    }
    const clear = (): void => {
      Object.assign(order, { text: '', isUrgent: false, sendAt: '', thread: '', mention: [] })
      attachments.value = []
      sending = { key: '', body: '' }
    }
    const add = (files: Iterable<File>): void => {
      attachments.value = [...attachments.value, ...[...files].map(file => ({ file, id: '' }))]
    }
    const choose = (event: Event): void => {
      const { target } = event
      if (!(target instanceof HTMLInputElement)) return
      add(target.files ?? [])
      target.value = ''
    }
    const paste = (event: ClipboardEvent): void => add(event.clipboardData?.files ?? [])
    const remove = (gone: Attachment): void => {
      attachments.value = attachments.value.filter(each => each !== gone)
    }

    return () => {
      const t = texts.value.send
      return (
        <div>
          {section(t.compose, (
            <form onSubmit={submitting(() => act('send'))}>
              <div class="relay-columns">
                <TargetPicker {...bind(order, 'targets')} label={t.target} hint={t.targetHint} bot={order.bot} />
                {selectField(t.bot, bind(order, 'bot'), [{ value: '', label: t.anyBot }, ...bots.value.map(plain)])}
              </div>
              <div onPaste={paste}>{inputField(t.text, bind(order, 'text'), { type: 'textarea', rows: 6 })}</div>
              <div class="relay-field">
                <span class="relay-label" id="relay-files">{t.files}</span>
                <label class="relay-files">
                  <input type="file" multiple aria-labelledby="relay-files" class="relay-hidden" onChange={choose} />
                  {t.choose}
                </label>
                {attachments.value.length > 0 && (
                  <ul class="relay-list">
                    {attachments.value.map(each => (
                      <li>
                        <span class="relay-said">{texts.value.common.list([each.file.name, writeSize(each.file.size)])}</span>
                        {button(t.remove, () => remove(each), { look: 'small', describes: texts.value.common.pair(t.remove, each.file.name) })}
                      </li>
                    ))}
                  </ul>
                )}
              </div>
              {viewMore()}
              {problem.value && notice('bad', problem.value)}
              {outcome.value && viewOutcome(outcome.value)}
              <div class="relay-row">
                {button(t.send, undefined, { kind: 'primary', submits: true, busy: busy.value === 'send' })}
                {button(t.preview, () => act('preview'), { busy: busy.value === 'preview' })}
                <CopyButton text={curlFor(order, attachments.value)} label={texts.value.record.curl} />
              </div>
            </form>
          ))}
          {preview.value && section(t.previewTitle, viewPreview(preview.value.data), <span class="relay-aside">{t.nothingSent}</span>)}
        </div>
      )
    }
  },
})

/** What most messages lack. */
function viewMore(): VNode {
  const t = texts.value.send
  const { isUrgent, sendAt, thread, mention } = order
  return (
    <details open={isUrgent || `${sendAt}${thread}` !== '' || mention.length > 0}>
      <summary>{t.more}</summary>
      <div class="relay-field">{checkbox(t.urgent, bind(order, 'isUrgent'))}</div>
      <div class="relay-pair">
        {inputField(t.sendAt, model(toLocal(sendAt), value => {
          order.sendAt = fromLocal(value)
        }), { type: 'datetime-local', hint: t.sendAtHint })}
        {inputField(t.thread, bind(order, 'thread'), { hint: t.threadHint })}
        {pickPeople(t.mention, mention, words => {
          order.mention = [...words]
        }, t.mentionHint)}
      </div>
    </details>
  )
}

/** What is missing before sending; empty if nothing is. */
function missingPart({ targets, text }: Order, attachments: readonly Attachment[]): string {
  const t = texts.value.send
  if (targets.length === 0) return t.needTarget
  return text.trim() === '' && attachments.length === 0 ? t.needContent : ''
}

/** @returns the reason if an upload failed */
async function uploadAll(attachments: Attachment[]): Promise<string | undefined> {
  for (const attachment of attachments) {
    if (attachment.id) continue
    const obstacle = whyTooLarge(attachment.file, about.value?.maxUploadSize ?? Infinity)
    if (obstacle !== undefined) return obstacle
    const reply = await upload(attachment.file)
    if (!reply) return texts.value.send.unreadable(attachment.file.name)
    attachment.id = textOf(reply.data.path)
    if (!attachment.id) return reply.msg
  }
}

/** The draft of a message without its files. */
interface Order {
  bot: string
  targets: string[]
  text: string
  isUrgent: boolean
  /** Empty for now. */
  sendAt: string
  thread: string
  mention: string[]
}

function curlFor(order: Order, attachments: Attachment[]): string {
  const names = attachments.map(({ file }) => file.name)
  return curlWithFiles(about.value?.url ?? '', names, ids => bodyOf(order, attachments.map(({ file }, at) => ({ file, id: ids[at] ?? '' }))))
}

/** The body for `/webhook`. */
function bodyOf({ bot, targets, text, isUrgent, sendAt, thread, mention }: Order, attachments: Attachment[]): object {
  const [platform, selfId] = [bot.slice(0, bot.indexOf(':')), bot.slice(bot.indexOf(':') + 1)]
  const words = text.trim() === '' ? [] : [{ type: 'text', msg: text }]
  const files = attachments.map(({ file, id }) => ({ type: kindOf(file.type), url: id }))
  return {
    to: targets.length === 1 ? targets[0] : targets, ...bot && { platform, self_id: selfId },
    ...isUrgent && { urgent: true }, ...sendAt && { send_at: sendAt },
    ...thread.trim() && { thread: thread.trim() }, ...mention.length > 0 && { mention },
    ...files.length === 0 ? { msg: text } : { messages: [...words, ...files] },
  }
}

/** Chats show no drawings and no formats of phones and scanners: `/send` sends them as files, too. */
function kindOf(type: string): string {
  return /^(image|video)\/(?!svg|hei[cf]|tiff)/.exec(type)?.[1] ?? 'file'
}

/** The entries of an answer, one per target. */
function entriesOf({ data }: Reply): Fields[] {
  const several = listOf(data.deliveries)
  return several.length > 0 ? several : [data]
}

/** The results of the items that did not arrive at a target. */
function failuresOf(entry: Fields): Fields[] {
  return ('results' in entry ? listOf(entry.results) : [entry]).filter(({ success }) => success === false)
}

function viewOutcome(outcome: Outcome): VNode {
  return <div>{entriesOf(outcome.reply).map(entry => viewEntry(entry, outcome))}</div>
}

function viewEntry(entry: Fields, { reply: { isRight, msg }, target: sole, parts }: Outcome): VNode {
  const t = texts.value
  const isOne = entry.target === undefined
  const target = isOne ? sole : describeChat(textOf(entry.target))
  const id = textOf(entry.delivery_id)
  const failed = failuresOf(entry)
  const results = listOf(entry.results)
  // The setting `longText` makes several parts of a long text.
  const names = results.length === parts.length ? parts : []
  return (
    <div>
      {failed.map(({ index, outcome, msg: why }) => {
        const heads = [isOne ? '' : target, names[numberOf(index)] ?? '', wordFor(t.outcomes, textOf(outcome))]
        return notice('bad', heads.filter(Boolean).reduceRight((rest, name) => t.common.pair(name, rest), textOf(why)))
      })}
      {failed.length > 0 && results.length > failed.length && notice('info', t.send.rest(target))}
      {failed.length === 0 && (isRight ? viewSent(entry, target) : notice('bad', t.common.failed(msg)))}
      {id && <div class="relay-row relay-records">{button(t.send.open, () => goTo('deliveries', id), { look: 'link' })}</div>}
    </div>
  )
}

/** Only a message that has not been sent yet has a state. */
function viewSent({ state, held }: Fields, target: string): VNode {
  const t = texts.value.send
  if (state === undefined) return notice('good', t.sent(target))
  const hold = readHold(held)
  return notice('info', hold ? `${t.accepted(target)} ${describeHold(hold)}` : t.accepted(target))
}
