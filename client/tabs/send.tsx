import { defineComponent, reactive, shallowRef, type VNode } from 'vue'
import { call, upload, type Reply } from '../api'
import { curlWithFiles } from '../curl'
import { listOf, textOf, textsOf } from '../fields'
import { field, notice, section, valueOf } from '../parts/basics'
import { button } from '../parts/elements'
import { CopyButton } from '../parts/copy'
import { viewPreview } from '../parts/preview'
import { TargetField } from '../parts/target'
import { about, goTo } from '../state'
import { texts, writeSize } from '../texts'

/** A file that is to be sent. */
interface Attachment {
  file: File
  /** What the relay calls it, once it is there. */
  id: string
}

/** Writes a message, shows how it would leave, sends it. */
export const SendTab = defineComponent({
  setup() {
    const order = reactive({ bot: '', target: '', text: '' })
    const attachments = shallowRef<Attachment[]>([])
    const bots = shallowRef<string[]>([])
    const preview = shallowRef<Reply>()
    const result = shallowRef<Reply>()
    const problem = shallowRef('')
    const isBusy = shallowRef(false)
    void call('GET', '/statusz').then(({ data }) => {
      bots.value = listOf(data.bots).map(({ platform, self_id: id }) => `${textOf(platform)}:${textOf(id)}`)
    })

    const act = async (isDry: boolean): Promise<void> => {
      const t = texts.value.send
      const lack = order.target === '' ? t.needTarget : order.text.trim() === '' && attachments.value.length === 0 ? t.needContent : ''
      problem.value = lack
      if (lack || isBusy.value) return
      isBusy.value = true
      try {
        const failure = await uploadAll(attachments.value)
        if (failure) problem.value = texts.value.common.failed(failure.msg)
        else await submit(isDry)
      } finally {
        isBusy.value = false
      }
    }
    const submit = async (isDry: boolean): Promise<void> => {
      const reply = await call('POST', '/webhook', { ...isDry && { query: { dry_run: '1' } }, body: JSON.stringify(bodyOf(order, attachments.value)) })
      preview.value = isDry && reply.isRight ? reply : undefined
      result.value = isDry ? undefined : reply
      problem.value = reply.isRight ? '' : texts.value.common.failed(reply.msg)
    }
    const choose = (event: Event): void => {
      const { target } = event
      if (!(target instanceof HTMLInputElement)) return
      attachments.value = [...attachments.value, ...[...target.files ?? []].map(file => ({ file, id: '' }))]
      target.value = ''
    }
    const remove = (gone: Attachment): void => {
      attachments.value = attachments.value.filter(each => each !== gone)
    }

    return () => {
      const t = texts.value.send
      return (
        <div>
          {section(texts.value.tabs.send, (
            <form
              onSubmit={(event: Event) => {
                event.preventDefault()
                void act(false)
              }}
            >
              <div class="relay-columns">
                {field(t.bot, (
                  <select
                    value={order.bot}
                    onChange={(event: Event) => {
                      order.bot = valueOf(event)
                    }}
                  >
                    <option value="">{t.anyBot}</option>
                    {bots.value.map(bot => <option value={bot}>{bot}</option>)}
                  </select>
                ))}
                <TargetField
                  modelValue={order.target}
                  bot={order.bot}
                  onUpdate:modelValue={(value: string) => {
                    order.target = value
                  }}
                />
              </div>
              {field(t.text, (
                <textarea
                  value={order.text}
                  onInput={(event: Event) => {
                    order.text = valueOf(event)
                  }}
                />
              ))}
              <div class="relay-field">
                <span class="relay-label" id="relay-files">{t.files}</span>
                <label class="relay-files">
                  <input type="file" multiple aria-labelledby="relay-files" class="relay-hidden" onChange={choose} />
                  {t.choose}
                </label>
              </div>
              {attachments.value.length > 0 && (
                <ul class="relay-list">
                  {attachments.value.map(each => (
                    <li>
                      <span class="relay-said">{texts.value.common.list([each.file.name, writeSize(each.file.size)])}</span>
                      {button(t.removeShort, () => remove(each), { describes: t.remove(each.file.name) })}
                    </li>
                  ))}
                </ul>
              )}
              <div class="relay-row">
                {button(t.preview, () => act(true), { disabled: isBusy.value })}
                {button(t.send, () => act(false), { kind: 'primary', disabled: isBusy.value })}
                <CopyButton
                  text={curlFor(order, attachments.value)}
                  label={texts.value.record.curl}
                />
              </div>
            </form>
          ))}
          {problem.value && notice('bad', problem.value)}
          {preview.value && section(t.previewTitle, viewPreview(preview.value.data))}
          {result.value && section(t.result, viewResult(result.value))}
        </div>
      )
    }
  },
})

/** @returns the answer to the upload that failed, if one did */
async function uploadAll(attachments: Attachment[]): Promise<Reply | undefined> {
  for (const attachment of attachments) {
    if (attachment.id) continue
    const reply = await upload(attachment.file)
    if (!reply.id) return reply
    attachment.id = reply.id
  }
}

/** What is to be sent, but for files. */
interface Order {
  bot: string
  target: string
  text: string
}

function curlFor(order: Order, attachments: Attachment[]): string {
  const names = attachments.map(({ file }) => file.name)
  return curlWithFiles(about.value?.url ?? '', names, ids => bodyOf(order, attachments.map(({ file }, at) => ({ file, id: ids[at] ?? '' }))))
}

/** The body for `/webhook`. */
function bodyOf({ bot, target, text }: Order, attachments: Attachment[]): object {
  const [platform, selfId] = [bot.slice(0, bot.indexOf(':')), bot.slice(bot.indexOf(':') + 1)]
  const words = text.trim() === '' ? [] : [{ type: 'text', msg: text }]
  const files = attachments.map(({ file, id }) => ({ type: kindOf(file.type), url: id }))
  return {
    to: target, ...bot && { platform, self_id: selfId },
    ...files.length === 0 ? { msg: text } : { messages: [...words, ...files] },
  }
}

function kindOf(type: string): string {
  return /^(image|video)\//.exec(type)?.[1] ?? 'file'
}

function viewResult({ isRight, data, headers }: Reply): VNode {
  const t = texts.value
  const several = listOf(data.deliveries)
  const ids = several.length > 0 ? several.map(({ delivery_id: id }) => textOf(id)) : [textOf(headers['x-request-id'])]
  const failed = [...listOf(data.results), ...several].filter(({ success }) => success === false)
  return (
    <div>
      {isRight && failed.length === 0 && notice('good', [t.send.sent, ...textsOf(data.message_ids).map(id => t.record.ids(id))].join(' '))}
      {failed.map(({ msg, outcome }) => notice('bad', `${textOf(outcome)}: ${textOf(msg)}`))}
      <div class="relay-row">{ids.filter(Boolean).map(id => button(t.send.open, () => goTo('deliveries', id)))}</div>
    </div>
  )
}
