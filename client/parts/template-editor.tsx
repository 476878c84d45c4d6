import { defineComponent, onBeforeUnmount, onMounted, reactive, shallowRef, watch, type PropType, type VNode } from 'vue'
import { loadTemplate, parsePayload, previewTemplate, resetTemplate, saveTemplate, templateFor, type Rendering, type Template } from '../admin'
import { call } from '../api'
import { textOf } from '../fields'
import type { Source } from '../sources'
import { refreshAbout } from '../state'
import { texts, writeMoment } from '../texts'
import { notice, section } from './basics'
import { bind, button, confirm, inputField, model, say } from './elements'
import { useTask, viewProblem } from './task'

/** How long typing must pause before the preview is updated, in milliseconds. */
const pause = 400

/** The template of a source, beside its preview with the last payload. */
export const TemplateEditor = defineComponent({
  props: {
    source: { type: Object as PropType<Source>, required: true },
    /** Increases with each call, because its payload can then be used. */
    calls: { type: Number, default: 0 },
    /** Whether the source has no template yet. */
    isNew: Boolean,
  },
  setup(props) {
    const { name, event } = props.source
    const saved = shallowRef<Template>()
    /** `receivedAt` is empty if the payload was typed in. */
    const draft = reactive({ template: '', payload: '', event: event?.[1] ?? '', receivedAt: '' })
    const task = useTask()
    const rendering = shallowRef<Rendering>()
    const flaw = shallowRef('')
    let timer: number | undefined

    const load = async (): Promise<void> => {
      if (props.isNew) {
        draft.template ||= templateFor(parsePayload(draft.payload) ?? {}) || texts.value.integrations.newTemplate
        return
      }
      const result = await task.run(() => loadTemplate(name))
      if (!result) return
      saved.value = result.value
      draft.template = result.value.text
    }
    const take = async (): Promise<void> => {
      const { isRight, status, msg, data } = await call('GET', `/payloads/${encodeURIComponent(name)}`)
      const t = texts.value
      flaw.value = isRight ? '' : status === 404 ? t.integrations.noPayload : t.common.failed(msg)
      if (!isRight) return
      const payload = JSON.stringify(data.payload, undefined, 2)
      Object.assign(draft, { payload, event: textOf(data.event) || draft.event, receivedAt: textOf(data.received_at) })
    }
    const render = async (): Promise<void> => {
      const payload = parsePayload(draft.payload)
      if (!payload) {
        rendering.value = undefined
        if (draft.payload.trim() !== '') flaw.value = texts.value.integrations.badPayload
        return
      }
      const asked = JSON.stringify(draft)
      const result = await previewTemplate(name, draft.template, payload, event ? draft.event : '')
      if (asked !== JSON.stringify(draft)) return
      rendering.value = 'value' in result ? result.value : undefined
      flaw.value = 'problem' in result ? result.problem : ''
    }
    const save = async (): Promise<void> => {
      const text = draft.template
      if (!await task.run(() => saveTemplate(name, text))) return
      saved.value = { text, isOwn: true }
      say('good', texts.value.integrations.saved)
      await refreshAbout()
    }
    const reset = async (): Promise<void> => {
      const t = texts.value.integrations
      const isOurs = props.source.guide !== 'own'
      const question = isOurs
        ? { title: t.resetTitle, text: t.resetText, verb: t.reset }
        : { title: t.removeTitle, text: t.removeText, verb: t.remove }
      if (!await confirm(question) || !await task.run(() => resetTemplate(name))) return
      say('good', isOurs ? t.isReset : t.isRemoved)
      await (isOurs ? load() : refreshAbout())
    }

    onMounted(async () => {
      await take()
      await load()
    })
    watch(() => props.calls, () => {
      if (draft.payload === '') void take()
    })
    watch(draft, () => {
      clearTimeout(timer)
      timer = window.setTimeout(() => void render(), pause)
    })
    onBeforeUnmount(() => clearTimeout(timer))

    const viewActions = (): VNode => {
      const t = texts.value.integrations
      const isChanged = draft.template !== saved.value?.text
      return (
        <div class="relay-row">
          {button(t.save, save, { kind: 'primary', busy: task.isBusy, disabled: !isChanged })}
          {saved.value?.isOwn && button(props.source.guide === 'own' ? t.remove : t.reset, reset)}
          {saved.value && isChanged && <span class="relay-aside">{t.unsaved}</span>}
        </div>
      )
    }
    return () => {
      const t = texts.value.integrations
      return section(t.template, (
        <div>
          <p class="relay-hint">{t.templateHint}</p>
          {viewProblem(task)}
          <div class="relay-columns">
            <div>
              {inputField(t.liquid, bind(draft, 'template'), { type: 'textarea', mono: true, rows: 14 })}
              {viewActions()}
            </div>
            <div class="relay-preview">
              <div aria-live="polite">
                <span class="relay-label">{t.preview}</span>
                {flaw.value && notice(flaw.value === t.noPayload ? 'info' : 'bad', flaw.value)}
                {rendering.value ? viewRendering(rendering.value) : !flaw.value && <p class="relay-hint">{t.needPayload}</p>}
              </div>
              {event && inputField(t.event, bind(draft, 'event'), { hint: t.eventHint(event[0]) })}
              {inputField(t.payload, model(draft.payload, payload => Object.assign(draft, { payload, receivedAt: '' })), {
                hint: draft.receivedAt ? t.taken(writeMoment(draft.receivedAt)) : undefined, type: 'textarea', mono: true, rows: 7,
              })}
              {button(t.take, take, { look: 'small' })}
            </div>
          </div>
        </div>
      ), saved.value && <span class="relay-badge">{saved.value.isOwn ? t.yours : t.builtIn}</span>)
    }
  },
})

/** A message as a chat would show it. */
function viewRendering(rendering: Rendering): VNode {
  const t = texts.value.integrations
  if ('skipped' in rendering) return notice('info', t.skipped(rendering.skipped))
  if (rendering.text === '' && rendering.pictures.length === 0) return notice('info', t.skipped(t.noText))
  return (
    <div class="relay-bubble">
      {rendering.text && <p class="relay-said">{rendering.text}</p>}
      {rendering.pictures.map(link => link.startsWith('data:image/') ? <img class="relay-picture" src={link} alt={t.picture} /> : <p class="relay-said">{`[${t.picture}] ${link}`}</p>)}
    </div>
  )
}
