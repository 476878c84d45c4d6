import { defineComponent, onMounted, ref, shallowRef, watch, type VNode } from 'vue'
import { call, readDelivery, type Delivery } from '../api'
import { curlOf } from '../curl'
import { numberOf, textOf, textsOf, type Fields } from '../fields'
import { usePolling } from '../poll'
import { about } from '../state'
import { texts, writeMoment } from '../texts'
import { button, fact, notice, stateMark } from './basics'
import { CopyButton } from './copy'
import { confirmation, type Question } from './dialog'

/** A delivery with all that is known of it, in a dialog. */
export const RecordDialog = defineComponent({
  props: { id: { type: String, required: true } },
  emits: ['close'],
  setup(props, { emit }) {
    const dialog = ref<HTMLDialogElement>()
    const delivery = shallowRef<Delivery>()
    const problem = shallowRef('')
    const said = shallowRef('')
    const question = shallowRef<Question>()
    const look = usePolling(async () => {
      const { id } = props
      const reply = await call('GET', `/deliveries/${encodeURIComponent(id)}`)
      if (id !== props.id) return
      if (reply.isRight) delivery.value = readDelivery(reply.data)
      else if (!delivery.value) problem.value = texts.value.common.failed(reply.msg)
    })
    onMounted(() => dialog.value?.showModal())
    watch(() => props.id, () => {
      delivery.value = undefined
      void look()
    })

    const act = async (method: 'POST' | 'DELETE', path: string, done: string): Promise<void> => {
      question.value = undefined
      const reply = await call(method, path)
      said.value = reply.isRight ? done : ''
      problem.value = reply.isRight ? '' : texts.value.common.failed(reply.msg)
      await look()
    }
    const again = ({ id, state }: Delivery): void => {
      const t = texts.value.record
      question.value = {
        title: t.again_title, text: state === 'unanswered' ? t.again_doubt : t.again_text, verb: t.again,
        act: () => act('POST', `/deliveries/${id}/retry`, t.sentAgain),
      }
    }

    return () => {
      const t = texts.value.record
      const shown = delivery.value
      return (
        <dialog ref={dialog} class="relay-dialog" aria-labelledby="relay-record" onClose={() => emit('close')}>
          <header class="relay-row">
            <h2 id="relay-record">{shown ? `${t.title}: ${shown.target}` : t.title}</h2>
            {shown && stateMark(shown.state)}
          </header>
          {problem.value && notice('bad', problem.value)}
          {said.value && notice('good', said.value)}
          {shown && <RecordContent delivery={shown} />}
          <div class="relay-row end">
            {shown && ['failed', 'expired', 'unanswered'].includes(shown.state) && button(t.again, () => again(shown), { kind: 'primary' })}
            {shown?.state === 'queued' && button(t.withdraw, () => act('DELETE', `/deliveries/${shown.id}`, t.withdrawn))}
            {shown && <CopyButton text={curlFor(shown)} label={t.curl} />}
            {button(texts.value.common.close, () => dialog.value?.close())}
          </div>
          {confirmation(question)}
        </dialog>
      )
    }
  },
})

function curlFor({ id, state }: Delivery): string {
  const url = `${about.value?.url ?? ''}/deliveries/${id}`
  if (state === 'queued') return curlOf('DELETE', url)
  return ['failed', 'expired', 'unanswered'].includes(state) ? curlOf('POST', `${url}/retry`) : curlOf('GET', url)
}

/** What is known of a delivery. */
const RecordContent = defineComponent({
  props: { delivery: { type: Object as () => Delivery, required: true } },
  setup: props => () => {
    const { delivery } = props
    const t = texts.value.record
    const means: Partial<Record<string, string>> = t.means
    return (
      <div>
        {notice('info', means[delivery.state] ?? delivery.state)}
        <dl class="relay-facts">
          {fact(t.created, writeMoment(delivery.createdAt))}
          {fact(t.updated, writeMoment(delivery.updatedAt))}
          {delivery.expiresAt && fact(t.expires, writeMoment(delivery.expiresAt))}
          {fact(t.bot, delivery.bot || '–')}
          {delivery.door && fact(texts.value.deliveries.door, delivery.door)}
          {fact(texts.value.deliveries.key, delivery.key || texts.value.deliveries.master)}
          {delivery.waitedMs !== undefined && fact(t.waited, texts.value.common.milliseconds(delivery.waitedMs))}
          {delivery.platformMs !== undefined && fact(t.platform, texts.value.common.milliseconds(delivery.platformMs))}
          {fact(t.id, <span class="mono">{delivery.id}</span>)}
        </dl>
        <h3>{t.items}</h3>
        {delivery.items.length === 0 ? <p>{t.noContent}</p> : <ul class="relay-list">{delivery.items.map((item, at) => <RecordItem key={at} id={delivery.id} at={at} item={item} hasContent={delivery.hasContent} />)}</ul>}
        <h3>{t.results}</h3>
        {delivery.results.length === 0 ? <p>–</p> : <ul class="relay-timeline">{delivery.results.map(viewResult)}</ul>}
        <h3>{t.timeline}</h3>
        {delivery.history.length === 0 ? <p>{delivery.attempts > 0 ? t.attempt(delivery.attempts) : t.noAttempts}</p> : <ol class="relay-timeline">{delivery.history.map(viewAttempt)}</ol>}
      </div>
    )
  },
})

function viewResult({ index, success, message_ids: ids, code, msg, outcome }: Fields): VNode {
  const t = texts.value.record
  return (
    <li>
      <strong>{t.item(numberOf(index) + 1)}</strong>
      {' '}
      {success === true
        ? <span>{[texts.value.states.sent, ...textsOf(ids).length > 0 ? [t.ids(textsOf(ids).join(', '))] : []].join(', ')}</span>
        : <span class="relay-said">{`${textOf(code)} ${textOf(outcome)}: ${textOf(msg)}`}</span>}
    </li>
  )
}

function viewAttempt({ at, took_ms: took, outcome, reason }: Fields, index: number): VNode {
  const t = texts.value.record
  return (
    <li>
      <strong>{t.attempt(index + 1)}</strong>
      {` ${writeMoment(textOf(at))}, ${t.took(numberOf(took))}, ${textOf(outcome)}`}
      {textOf(reason) && <div class="relay-said">{textOf(reason)}</div>}
    </li>
  )
}

/** One item of a delivery; a picture whose bytes are kept is shown. */
const RecordItem = defineComponent({
  props: {
    id: { type: String, required: true },
    at: { type: Number, required: true },
    item: { type: Object as () => Fields, required: true },
    hasContent: Boolean,
  },
  setup(props) {
    const picture = shallowRef('')
    onMounted(async () => {
      if (props.item.type !== 'image' || !props.hasContent) return
      const { isRight, base64, headers } = await call('GET', `/deliveries/${props.id}/items/${props.at}`)
      const type = textOf(headers['content-type'])
      // Nothing else is shown: a file may be a page with scripts.
      if (isRight && base64) picture.value = `data:${/^image\/(?:png|jpeg|gif|webp)$/.test(type) ? type : 'image/png'};base64,${base64}`
    })
    return () => {
      const t = texts.value.record
      const kinds: Partial<Record<string, string>> = t.kinds
      const { type, msg, name, size } = props.item
      return (
        <li>
          <span>{[kinds[textOf(type)] ?? textOf(type), textOf(name), size === undefined ? '' : `${numberOf(size)} B`].filter(Boolean).join(', ')}</span>
          {textOf(msg) && <span class="relay-said">{textOf(msg)}</span>}
          {picture.value && <img class="relay-picture" src={picture.value} alt={t.picture(textOf(name))} />}
        </li>
      )
    }
  },
})
